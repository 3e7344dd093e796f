"""The call line: one line for each finished call, encoded from one struct and written in batches by one thread.

A full buffer drops lines and counts them: a slow disk or a stuck pipe never delays a call.
"""

import logging
import queue
import sys
import threading
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

import msgspec

from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import Clock, Timer

FLUSH_S: Final = 0.1
MAX_LINES: Final = 10_000

_encode = msgspec.json.Encoder().encode
_MESSAGES: Final = {TaskState.COMPLETED: "A2A call completed", TaskState.CANCELED: "A2A call cancelled"}
_STATUS: Final = {TaskState.COMPLETED: "completed", TaskState.CANCELED: "cancelled"}


class CallLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The line of one call: the platform document's fields, ours after them."""

    timestamp: str
    level: str
    message: str
    call_id: str
    caller_agent_id: str
    target_agent_id: str
    skill: str | None
    status: str
    duration_ms: int
    trace_id: str
    span_id: str
    dialect_in: str
    error_code: str | None = None


class Sink(Protocol):
    """Where lines go."""

    def write(self, data: bytes, /) -> object:
        """Write some whole lines."""
        ...

    def flush(self) -> object:
        """Hand them to the system."""
        ...


class CallLog:
    """Writes the call lines of one process."""

    def __init__(
        self, *, clock: Clock, form: Literal["json", "pretty"], level: str = "info", sink: Sink | None = None
    ) -> None:
        self._clock = clock
        self._pretty = form == "pretty"
        self._level = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        self._sink: Sink = sink or sys.stderr.buffer
        self._lines: list[CallLine] = []
        self._timer: Timer | None = None
        # One batch each 100 ms: so many batches behind is a sink that takes nothing.
        self._batches: queue.Queue[list[CallLine] | None] = queue.Queue(maxsize=50)
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def write(self, task: Task) -> None:
        """Note a finished call; the line is written within a tenth of a second."""
        failed = task.state not in _STATUS
        if self._level > (logging.WARNING if failed else logging.INFO):
            return
        if len(self._lines) >= MAX_LINES:
            self.dropped += 1
            return
        self._lines.append(_line(task, failed))
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + FLUSH_S, self._flush)

    def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        if self._thread is not None:
            self._batches.put(None)
            self._thread.join(timeout=2.0)

    def _flush(self) -> None:
        self._timer = None
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="call-log", daemon=True)
            self._thread.start()
        try:
            self._batches.put_nowait(lines)
        except queue.Full:
            self.dropped += len(lines)

    def _run(self) -> None:
        shown = _pretty if self._pretty else _encode
        while (lines := self._batches.get()) is not None:
            self._sink.write(b"".join([shown(line) + b"\n" for line in lines]))
            self._sink.flush()


def _line(task: Task, failed: bool) -> CallLine:
    ended = task.ended_at or task.updated_at
    return CallLine(
        timestamp=ended.isoformat(timespec="milliseconds")[:-6] + "Z",
        level="warning" if failed else "info",
        message=_MESSAGES.get(task.state, "A2A call failed"),
        call_id=task.id,
        caller_agent_id=task.caller_id,
        target_agent_id=task.agent_id,
        skill=task.skill,
        status=_STATUS.get(task.state, "failed"),
        duration_ms=round((ended - task.created_at).total_seconds() * 1000),
        trace_id=task.trace.given_id or f"trace_{task.trace.trace_id}",
        span_id=f"span_{task.trace.span_id}",
        dialect_in=task.dialect,
        error_code=None if task.failure is None else task.failure.code,
    )


def _pretty(line: CallLine) -> bytes:
    at = datetime.fromisoformat(line.timestamp).astimezone(UTC).astimezone().strftime("%H:%M:%S")
    outcome = f"{line.status} {line.error_code}" if line.error_code else line.status
    return (
        f"{at} {line.level:7} {line.caller_agent_id} → {line.target_agent_id} {line.skill} "
        f"{outcome} {line.duration_ms} ms  {line.call_id}"
    ).encode()
