"""Logs: stdlib logging to stderr, one JSON object a line, or short lines for people.

Payloads are never logged. The line of each finished call is written elsewhere (`calls.py`): there are too many of them
for a logging record each.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

HUB: Final = logging.getLogger("dragoman")
MAX_LINE: Final = 8 * 1024

_encode = msgspec.json.Encoder().encode


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as JSON; what was said with `extra={"fields": …}` stands beside the message."""
        line: dict[str, object] = {
            "timestamp": _time(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        line.update(getattr(record, "fields", None) or {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encode(line).decode()[:MAX_LINE]


class PrettyLines(logging.Formatter):
    """Short lines for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message, and the fields that were said with it."""
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields: dict[str, object] = getattr(record, "fields", None) or {}
        rest = "".join(f" {name}={value}" for name, value in fields.items() if value is not None)
        shown = f"{at} {record.levelname.lower():7} {record.getMessage()}{rest}"
        if record.exc_info:
            shown += "\n" + self.formatException(record.exc_info)
        return shown


def configure(form: Literal["json", "pretty"], level: str = "info") -> None:
    """Send the hub's logs to stderr in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else PrettyLines())
    HUB.handlers[:] = [handler]
    HUB.setLevel(level.upper())
    # The heads of the audit are for whoever collects the logs; people at a terminal see warnings of it.
    HUB.getChild("audit").setLevel("WARNING" if form == "pretty" else "NOTSET")
    HUB.propagate = False


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")[:-6] + "Z"
