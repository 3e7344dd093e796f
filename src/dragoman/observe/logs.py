"""Logs: stdlib logging to stderr, one JSON object a line, or short lines for people.

Payloads are never logged. A line inside a call has the call's ids. The line of each finished call is written elsewhere
(`calls.py`): there are too many of them for a logging record each.
"""

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from dragoman.model.task import Task
from dragoman.model.times import in_words
from dragoman.observe.lines import LineWriter

HUB: Final = logging.getLogger("dragoman")
MAX_LINE: Final = 8 * 1024
MAX_FIELD: Final = 1024  # of what stands in a line that would be too long, in characters
AUDIT: Final = "dragoman.audit"

IN_CALL: Final[ContextVar[Task | None]] = ContextVar("in_call", default=None)

_encode = msgspec.json.Encoder(enc_hook=str).encode


Line = dict[str, object]
Redact = Callable[[Line], Line]  # a line without its secrets


def as_it_is(line: Line) -> Line:
    """A line of a program that has nobody's secrets."""
    return line


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, redact: Redact = as_it_is) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """A record as JSON; what was said with `extra={"fields": …}` stands beside the message."""
        line: Line = {
            "timestamp": in_words(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
            **_ids(),
        }
        line.update(getattr(record, "fields", None) or {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return bounded(_clean(record, line, self._redact)).decode()


class PrettyLines(logging.Formatter):
    """Short lines for a terminal."""

    def __init__(self, redact: Redact = as_it_is) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message, and the fields that were said with it."""
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        line: Line = {"message": record.getMessage(), **_ids(), **(getattr(record, "fields", None) or {})}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        said = _clean(record, line, self._redact)
        message, traceback = said.pop("message"), said.pop("traceback", None)
        rest = "".join(f" {name}={value}" for name, value in said.items() if value is not None)
        shown = f"{at} {record.levelname.lower():7} {message}{rest}"[:MAX_LINE]
        return shown if traceback is None else f"{shown}\n{traceback}"


class LineHandler(logging.Handler):
    """Hands formatted lines to the thread that writes them."""

    def __init__(self, lines: LineWriter) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Have a record written."""
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - whatever a record holds, logging breaks nothing
            self.handleError(record)
        else:
            self._lines.put(1, lambda: text.encode("utf-8", "replace") + b"\n")

    def flush(self) -> None:
        """Wait until all is written, but not for long; logging does so when the process ends."""
        self._lines.flush()


def configure(form: Literal["json", "pretty"], level: str = "info", redact: Redact = as_it_is) -> LineWriter:
    """Send the hub's logs to stderr in one form; what writes them."""
    lines = LineWriter(sys.stderr.buffer)
    handler = LineHandler(lines)
    handler.setFormatter(JsonLines(redact) if form == "json" else PrettyLines(redact))
    HUB.handlers[:] = [handler]
    HUB.setLevel(level.upper())
    # The heads of the audit are for whoever collects the logs; people at a terminal see warnings of it.
    HUB.getChild("audit").setLevel("WARNING" if form == "pretty" else "NOTSET")
    HUB.propagate = False
    return lines


def bounded(line: Line) -> bytes:
    """A line that is never too long and always whole: its longest fields are cut first."""
    encoded = _encode(line)
    longest = MAX_FIELD
    while len(encoded) > MAX_LINE and longest:
        encoded = _encode({name: _cut(value, longest) for name, value in line.items()})
        longest //= 4
    return encoded


def _cut(value: object, longest: int) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else _encode(value).decode()
    if len(text) <= longest:
        return value
    # The end of a traceback says what happened, its beginning where.
    return f"{text[: longest // 2]} … {text[-longest // 2 :]}"


def _clean(record: logging.LogRecord, line: Line, redact: Redact) -> Line:
    """The line without secrets; the audit's heads are signatures that everybody may see."""
    return line if record.name == AUDIT else redact(line)


def _ids() -> Line:
    task = IN_CALL.get()
    return (
        {} if task is None else {"call_id": task.id, "trace_id": task.trace.given_id or f"trace_{task.trace.trace_id}"}
    )
