"""What an agent's refusal means for the call: told by the HTTP status alone, or as an error of the A2A family."""

from datetime import datetime
from typing import Final

from dragoman.dialects.dialect import Heard
from dragoman.dialects.times import retry_after_s
from dragoman.model.errors import (
    AgentError,
    AgentUnavailable,
    ContentRefused,
    DragomanError,
    InputRefused,
    RateLimited,
)
from dragoman.model.events import StatusChanged
from dragoman.model.http import HttpReply
from dragoman.model.json import JsonObject, is_array, is_object
from dragoman.model.states import TaskState

_NO_METHOD: Final = (-32601, -32004)  # no set: an agent may say anything as its code, also what has no hash
_NO_METHOD_REASONS: Final = frozenset({"METHOD_NOT_FOUND", "UNSUPPORTED_OPERATION"})
_NO_METHOD_STATUSES: Final = frozenset({404, 405, 501})


def refused_by(reply: HttpReply, at: datetime) -> Heard | None:
    """What the HTTP status alone says: that the agent is busy, or does not take the hub's credential."""
    if reply.status in (429, 503):
        return failed(at, busy(reply))
    if reply.status in (401, 403):
        return failed(at, locked_out(reply))
    return None


def busy(reply: HttpReply, words: str | None = None) -> DragomanError:
    """That the agent is to be asked later: after the time it names, else after a second."""
    kind = RateLimited if reply.status == 429 else AgentUnavailable
    said = words or f"The agent answered HTTP {reply.status}."
    return kind(said, retry_after=retry_after_s(reply.headers) or 1, agent_status=reply.status)


def locked_out(reply: HttpReply) -> DragomanError:
    """That the agent does not take the hub's credential."""
    said = f"The agent refused the hub's credential: HTTP {reply.status}."
    return AgentError(said, reason="agent_refused_hub", agent_status=reply.status)


def failed(at: datetime, error: DragomanError) -> Heard:
    """The call ended with this error."""
    return Heard(events=(StatusChanged(at=at, state=TaskState.FAILED, failure=error.failure()),), settled=True)


def error_of(error: JsonObject, status: int = 200) -> DragomanError:
    """The agent's error, in either framing: what the caller got wrong keeps that meaning, all else is its failure."""
    said, code = error.get("message"), error.get("code")
    message = said if isinstance(said, str) and said else "The agent gave no message."
    framed = isinstance(code, int) and code < 0
    facts: JsonObject = {"agent_code": code} if framed else {"agent_status": status}
    reason = reason_of(error)
    if reason is not None:
        facts["agent_reason"] = reason
    if status in (401, 403):
        return AgentError(message, **facts, reason="agent_refused_hub")
    if code == -32005 or reason == "CONTENT_TYPE_NOT_SUPPORTED" or status == 415:
        return ContentRefused(message, **facts)
    if code == -32602 or reason == "INVALID_PARAMS" or error.get("status") == "INVALID_ARGUMENT":
        return InputRefused(message, **facts)
    return AgentError(message, **facts)


def reason_of(error: JsonObject) -> str | None:
    """The name the agent gave its error, where it has the specification's form."""
    for holder in (error.get("data"), error.get("details")):
        for item in holder if is_array(holder) else ():
            if is_object(item) and isinstance(item.get("reason"), str):
                reason: str = item["reason"]
                return reason
    return None


def lacks_method(error: JsonObject, status: int = 200) -> bool:
    """Whether an error says that the agent does not do this at all; the name of an error counts before its number."""
    reason, code = reason_of(error), error.get("code")
    if reason is not None:
        return reason in _NO_METHOD_REASONS
    return code in _NO_METHOD or error.get("status") == "UNIMPLEMENTED" or status in _NO_METHOD_STATUSES
