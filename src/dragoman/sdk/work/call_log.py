"""A handler's own log lines: for the local log, and for the call's timeline in the hub."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from dragoman.model.json import Json, JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.agent.schema import to_json

LOG_LINES: Final = 100
LOG_BYTES: Final = 2048

_log = logging.getLogger("dragoman.agent")


class Noting(Protocol):
    """Takes what may be told when there is time."""

    def note(self, event: str, data: JsonObject) -> None:
        """Tell it when there is time; from any thread."""
        ...


class CallLog:
    """Lines for the local log, and for the call's timeline in the hub: 100 of them, of 2 KiB each."""

    def __init__(self, call_id: str, line: Noting, clock: Clock) -> None:
        self._call_id = call_id
        self._line = line
        self._clock = clock
        self._lines = 0

    def debug(self, message: str, **fields: object) -> None:
        """A line for who looks for a fault."""
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        """A line that tells what happens."""
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        """A line that somebody should see."""
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, **fields: object) -> None:
        """A line that somebody has to see."""
        self._write(logging.ERROR, message, fields)

    def _write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        _log.log(level, "%s", message, extra={"fields": {"call_id": self._call_id, **fields}})
        self._lines += 1
        if self._lines > LOG_LINES:
            return
        shown: JsonObject = {
            "level": logging.getLevelName(level).lower(),
            "message": message,
            "at": self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        told = {name: _told(value) for name, value in fields.items()}
        if told and len(msgspec.json.encode(shown | {"fields": told})) <= LOG_BYTES:
            shown["fields"] = told
        if len(msgspec.json.encode(shown)) > LOG_BYTES:
            # Each character takes up to six bytes in JSON.
            shown["message"] = message[: LOG_BYTES // 8] + "…"
        self._line.note("log", shown)


def _told(value: object) -> Json:
    try:
        return to_json(value)
    except (TypeError, ValueError):
        return str(value)
