"""The call line: one line for each finished call, encoded from one struct and written by one thread, many at a time.

Too many lines are dropped and counted: a slow disk or a stuck pipe never delays a call.
"""

import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal

import msgspec

from dragoman.model.ended import Ended
from dragoman.model.errors import DragomanError
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.times import in_words
from dragoman.observe import names
from dragoman.observe.lines import LineWriter, Sink
from dragoman.observe.logs import MAX_LINE, Redact, as_it_is, bounded

_encode_lines = msgspec.json.Encoder().encode_lines
_MESSAGES: Final = {TaskState.COMPLETED: names.CALL_COMPLETED, TaskState.CANCELED: names.CALL_CANCELLED}
_STATUS: Final = {TaskState.COMPLETED: "completed", TaskState.CANCELED: "cancelled"}
_END: Final = Wait.END
_INFO: Final = logging.INFO
_SIGNS: Final = (b"ap_", b"whsec_", b"eyJ", b"KEY-", b"earer", b"=")  # of what is secret
_MODES: Final = {Wait.END: "sync", Wait.NONE: "async", Wait.STREAM: "stream"}


class _DocumentLine(msgspec.Struct, omit_defaults=True, gc=False):
    """The platform document's fields, in its order; none of them is ever left out."""

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


class CallLine(_DocumentLine, kw_only=True, omit_defaults=True, gc=False):
    """The line of one call: behind the document's fields ours, without those that are absent."""

    request_id: str | None = None
    dialect_in: str
    dialect_out: str | None = None
    mode: str
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
        form: Literal["json", "pretty"],
        level: str = "info",
        sink: Sink | None = None,
        lines: LineWriter | None = None,
        replica: str = "hub",
        redact: Redact = as_it_is,
    ) -> None:
        self._shown = _pretty if form == "pretty" else partial(_json, redact)
        self._writer = lines or LineWriter(sink or sys.stderr.buffer)
        self._replica = replica
        self.set_level(level)

    @property
    def dropped(self) -> int:
        """How many lines were dropped, those of others that are written with them included."""
        return self._writer.dropped

    def set_level(self, level: str) -> None:
        """Write only what is as grave as this, from now on."""
        self._level = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)

    def write(self, ended: Sequence[Ended]) -> None:
        """Have the lines of finished calls written."""
        replica, level = self._replica, self._level
        # Made here: a sink that is stuck holds lines, not calls.
        lines = [_line(each, replica) for each in ended if level <= _INFO or level <= _gravity(each.task)]
        if lines:
            self._writer.put(len(lines), lambda: self._shown(lines))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


def _gravity(task: Task) -> int:
    """An error is a fault of the hub itself; all else that fails is its agent's or its caller's matter."""
    if task.state in _STATUS:
        return _INFO
    broken = task.failure is not None and task.failure.code == DragomanError.code
    return logging.ERROR if broken else logging.WARNING


def _line(ended: Ended, replica: str) -> CallLine:
    task, carried = ended.task, ended.carried
    asked, state, trace = task.asked, task.state, task.trace
    line = CallLine(
        in_words(ended.at),
        "info",
        _MESSAGES.get(state, names.CALL_FAILED),
        task.id,
        task.caller_id,
        task.agent_id,
        task.skill,
        _STATUS.get(state, "failed"),
        round(ended.took_s * 1000),
        trace.given_id or f"trace_{trace.trace_id}",
        f"span_{trace.span_id}",
        request_id=asked.request_id,
        dialect_in=task.dialect,
        dialect_out=None if carried is None else carried.dialect,
        mode=_MODES[asked.wait],
        attempts=0 if carried is None else carried.attempts,
        hub_ms=None if carried is None or asked.wait is not _END else round(ended.hub_s * 1000),
        conversation_id=task.context_id,
        parent_id=task.parent_id,
        depth=len(task.chain),
        replica=replica,
    )
    if state not in _STATUS:
        line.level = logging.getLevelName(_gravity(task)).lower()
        line.error_code = None if task.failure is None else task.failure.code
    if carried is not None and carried.waited_ms:
        line.queued_ms = carried.waited_ms
    if task.usage is not None:
        line.tokens = task.usage.tokens
        line.cost_usd = task.usage.cost_usd
    return line


def _json(redact: Redact, lines: Sequence[CallLine]) -> bytes:
    text = _encode_lines(lines)
    if _has_sign(text) or max(map(len, text.splitlines())) > MAX_LINE:
        text = b"".join([_looked_at(redact, line) for line in lines])
    return text


def _looked_at(redact: Redact, line: CallLine) -> bytes:
    """A line within its bound, without what is secret in it: a caller may have given that as a name."""
    text = _encode_lines((line,))
    if len(text) > MAX_LINE or _has_sign(text):
        return bounded(redact(msgspec.to_builtins(line))) + b"\n"
    return text


def _has_sign(text: bytes) -> bool:
    return any(sign in text for sign in _SIGNS)


def _pretty(lines: Sequence[CallLine]) -> bytes:
    return "".join([_short(line) for line in lines]).encode("utf-8", "replace")


def _short(line: CallLine) -> str:
    at = datetime.fromisoformat(line.timestamp).astimezone(UTC).astimezone().strftime("%H:%M:%S")
    outcome = f"{line.status} {line.error_code}" if line.error_code else line.status
    return (
        f"{at} {line.level:7} {line.caller_agent_id} → {line.target_agent_id} {line.skill} "
        f"{outcome} {line.duration_ms} ms  {line.call_id}\n"
    )
