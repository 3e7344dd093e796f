"""The call line: one line for each finished call, encoded from one struct and written in batches by one thread.

Too many lines are dropped and counted: a slow disk or a stuck pipe never delays a call.
"""

import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal

import msgspec

from dragoman.model.errors import DragomanError
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.times import in_words
from dragoman.observe import names
from dragoman.observe.lines import MOST, LineWriter, Sink
from dragoman.observe.logs import MAX_LINE, Line, Redact, as_it_is, bounded
from dragoman.observe.metrics import Carried
from dragoman.ports.clock import Clock, Timer

FLUSH_S: Final = 0.1

_encode_into = msgspec.json.Encoder().encode_into
_MESSAGES: Final = {TaskState.COMPLETED: names.CALL_COMPLETED, TaskState.CANCELED: names.CALL_CANCELLED}
_STATUS: Final = {TaskState.COMPLETED: "completed", TaskState.CANCELED: "cancelled"}
_END: Final = Wait.END
_INFO: Final = logging.INFO
_MODES: Final = {Wait.END: "sync", Wait.NONE: "async", Wait.STREAM: "stream"}


class CallLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The line of one call: the platform document's fields in its order, ours after them. What is absent is left out,
    save the document's own."""

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
    request_id: str | None = None
    dialect_in: str
    dialect_out: str | None = None
    mode: str = ""  # always set, though not at once: a call with more than 15 names makes a dictionary
    attempts: int = 0
    queued_ms: int | None = None
    hub_ms: int | None = None
    error_code: str | None = None
    conversation_id: str
    parent_id: str | None = None
    depth: int
    tokens: int | None = None
    cost_usd: float | None = None
    replica: str


class CallLog:
    """Writes the call lines of one process."""

    def __init__(
        self,
        *,
        clock: Clock,
        form: Literal["json", "pretty"],
        level: str = "info",
        sink: Sink | None = None,
        lines: LineWriter | None = None,
        replica: str = "hub",
        redact: Redact = as_it_is,
    ) -> None:
        self._clock = clock
        self._shown = _pretty if form == "pretty" else partial(_json, redact)
        self._writer = lines or LineWriter(sink or sys.stderr.buffer)
        self._replica = replica
        self._ended: list[tuple[Task, Carried | None]] = []
        self._timer: Timer | None = None
        self.set_level(level)

    @property
    def dropped(self) -> int:
        """How many lines were dropped, those of others that are written with them included."""
        return self._writer.dropped

    def set_level(self, level: str) -> None:
        """Write only what is as grave as this, from now on."""
        self._level = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)

    def write(self, task: Task, carried: Carried | None = None) -> None:
        """Note a finished call; the line is written within a tenth of a second."""
        if self._level > (_INFO if task.state in _STATUS else _gravity(task)):
            return
        if len(self._ended) >= MOST:
            self._writer.drop(1)
            return
        self._ended.append((task, carried))
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + FLUSH_S, self._flush)

    def close(self) -> None:
        """Write what is left."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._timer = None
        if self._ended:
            # Made together, they are made in half the time; and a sink that is stuck holds lines, not calls.
            replica = self._replica
            lines = [_line(task, carried, replica) for task, carried in self._ended]
            self._ended = []
            self._writer.put(len(lines), lambda: self._shown(lines))


def _gravity(task: Task) -> int:
    """An error is a fault of the hub itself; all else that fails is its agent's or its caller's matter."""
    broken = task.failure is not None and task.failure.code == DragomanError.code
    return logging.ERROR if broken else logging.WARNING


def _line(task: Task, carried: Carried | None, replica: str) -> CallLine:
    ended = task.ended_at or task.updated_at
    asked, state, trace, usage = task.asked, task.state, task.trace, task.usage
    line = CallLine(
        timestamp=in_words(ended),
        level="info",
        message=_MESSAGES.get(state, names.CALL_FAILED),
        call_id=task.id,
        caller_agent_id=task.caller_id,
        target_agent_id=task.agent_id,
        skill=task.skill,
        status=_STATUS.get(state, "failed"),
        duration_ms=round((ended - task.created_at).total_seconds() * 1000),
        trace_id=trace.given_id or f"trace_{trace.trace_id}",
        span_id=f"span_{trace.span_id}",
        dialect_in=task.dialect,
        conversation_id=task.context_id,
        depth=len(task.chain),
        replica=replica,
    )
    line.request_id = asked.request_id
    line.mode = _MODES[asked.wait]
    line.parent_id = task.parent_id
    if state not in _STATUS:
        line.level = logging.getLevelName(_gravity(task)).lower()
        line.error_code = None if task.failure is None else task.failure.code
    if carried is not None:
        line.dialect_out = carried.dialect
        line.attempts = carried.attempts
        line.queued_ms = carried.waited_ms or None
        if asked.wait is _END:
            line.hub_ms = round(carried.hub_s * 1000)
    if usage is not None:
        line.tokens = usage.tokens
        line.cost_usd = usage.cost_usd
    return line


def _json(redact: Redact, lines: Sequence[CallLine]) -> bytes:
    text = bytearray()
    for line in lines:
        begin = len(text)
        _encode_into(line, text, begin)
        if len(text) - begin > MAX_LINE or _is_suspect(line):
            text[begin:] = bounded(redact(_given(line)))
        text += b"\n"
    return bytes(text)


def _is_suspect(line: CallLine) -> bool:
    """Whether a name that its caller chose has a sign of something secret: then the line is looked at closely."""
    said = f"{line.request_id} {line.parent_id} {line.trace_id} {line.conversation_id}"
    return "ap_" in said or "whsec_" in said or "eyJ" in said or "KEY-" in said or "earer" in said or "=" in said


def _given(line: CallLine) -> Line:
    return {name: value for name, value in msgspec.structs.asdict(line).items() if value is not None or name == "skill"}


def _pretty(lines: Sequence[CallLine]) -> bytes:
    return "".join([_short(line) for line in lines]).encode("utf-8", "replace")


def _short(line: CallLine) -> str:
    at = datetime.fromisoformat(line.timestamp).astimezone(UTC).astimezone().strftime("%H:%M:%S")
    outcome = f"{line.status} {line.error_code}" if line.error_code else line.status
    return (
        f"{at} {line.level:7} {line.caller_agent_id} → {line.target_agent_id} {line.skill} "
        f"{outcome} {line.duration_ms} ms  {line.call_id}\n"
    )
