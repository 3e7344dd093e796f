"""Calling agents of A2A 0.3 and of dotted: the message they are sent, and what their answers mean."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from dragoman.dialects.agent_errors import failed, refused_by
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.hints import HINTS, hints_of
from dragoman.dialects.jsonrpc import RpcError, read_reply, unreadable
from dragoman.dialects.kinds.objects import restored, wire_message
from dragoman.dialects.shapes import account_in, read_message, read_task, unwrapped
from dragoman.dialects.uuids import uuid_of
from dragoman.model.content import Artifact, Message, Role
from dragoman.model.errors import (
    AgentError,
    BadAgentReply,
    ContentRefused,
    DragomanError,
    InputRefused,
    NotSupported,
)
from dragoman.model.events import ArtifactChunk, Logged, MessageAdded, Remote, Sent, StatusChanged, TaskEvent, Watched
from dragoman.model.http import Headers, HttpReply
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import history_of
from dragoman.model.operations import Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

Holder = TypeVar("Holder", Message, Artifact)

JSON_OR_STREAM: Final[Headers] = {
    b"content-type": b"application/json",
    # Some servers refuse a request whose Accept lacks one of these.
    b"accept": b"application/json, text/event-stream",
}
SENDING: Final = frozenset({Verb.SEND, Verb.STREAM})
MAX_KEY: Final = 256
_NO_STREAM: Final = frozenset({-32601, -32004})
_KEPT: Final[dict[int, type[DragomanError]]] = {-32602: InputRefused, -32005: ContentRefused}


def sent_params(outgoing: Outgoing, message: Message) -> JsonObject:
    """What a message is sent with: itself, as one of the agent's own task or context where it has one."""
    task, asked, remote = outgoing.task, outgoing.asked, outgoing.task.remote
    known = None if remote is None else remote.context_id
    continued = remote.task_id if remote is not None and asked.continues is not None else None
    shown = wire_message(message, context_id=known or task.context_id, task_id=continued)
    metadata: JsonObject = shown.get("metadata", {})
    told: Json = metadata.get(HINTS)
    hints = hints_of(task, outgoing.timeout_ms)
    shown["metadata"] = {**metadata, HINTS: {**told, **hints} if is_object(told) else hints}
    # Whoever waits gets the answer the fastest way; what nobody waits for need not hold a connection.
    configuration: JsonObject = {"blocking": asked.wait is not Wait.NONE}
    if asked.accepts:
        configuration["acceptedOutputModes"] = asked.accepts
    params: JsonObject = {"message": shown, "configuration": configuration}
    if asked.metadata:
        params["metadata"] = asked.metadata
    return params


def sent_once(outgoing: Outgoing) -> bytes:
    """The idempotency key, under which a message counts once; one that continues is another than that which began."""
    key = outgoing.task.id
    if outgoing.asked.continues is not None and outgoing.message is not None:
        key = outgoing.message.id
    if not (key.isascii() and key.isprintable()) or len(key) > MAX_KEY:
        key = uuid_of(key)  # The caller's own id, which is no header as it is.
    return key.encode()


def error_of(error: RpcError) -> DragomanError:
    """The agent's error: what the caller got wrong keeps that meaning, all else is the agent's failure."""
    return _KEPT.get(error.code, AgentError)(error.message, agent_code=error.code)


def has_no_stream(outgoing: Outgoing, code: int) -> bool:
    """Whether an error means that the stream that was asked for is not to be had, the call itself perhaps."""
    return outgoing.verb is Verb.STREAM and code in _NO_STREAM


def heard_result(outgoing: Outgoing, reply: HttpReply, at: datetime) -> JsonObject | Heard:
    """The object that an answer holds, or what its refusal means.

    Raises BadAgentReply for what is neither, NotSupported where the agent has no streams.
    """
    refused = refused_by(reply, at)
    if refused is not None:
        return refused
    result = read_reply(reply)
    if isinstance(result, RpcError):
        if has_no_stream(outgoing, result.code):
            raise NotSupported(result.message)
        return failed(at, error_of(result))
    if not is_object(result):
        raise unreadable(reply)
    return result


def hear_object(outgoing: Outgoing, value: JsonObject, at: datetime) -> Heard:
    """What a result says: a task as it stands, or a message that is the answer.

    Raises BadAgentReply for anything else.
    """
    kind, inner = unwrapped(value)
    if kind == "task":
        # Who asks again and again is shown what grows; that is all there is of what was told while nobody listened.
        asks = outgoing.verb is Verb.GET
        events, state, remote = read_task(with_history(inner), at, known=history_of(outgoing.task), unfinished=asks)
        return Heard(events=restored_events(events), settled=state in FINAL or state in INTERRUPTED, remote=remote)
    if kind == "message":
        return _direct(outgoing, inner, at)
    raise BadAgentReply("The agent's answer is neither a task nor a message.", reason="invalid_response")


def restored_events(events: Iterable[TaskEvent]) -> tuple[TaskEvent, ...]:
    """The events with every part's own facts back in their place."""
    return tuple([_restored_event(event) for event in events])


def with_history(task: JsonObject) -> JsonObject:
    """The task with its turns where A2A has them: dotted agents call them messages, or both."""
    history: Json = task.get("history")
    if is_array(history) and history:
        return task
    return {**task, "history": task.get("messages")}


def _direct(outgoing: Outgoing, value: JsonObject, at: datetime) -> Heard:
    message = read_message(value, f"{outgoing.task.id}-answer", at)
    if message.role is Role.USER:
        raise BadAgentReply("The agent sent the caller's own message back.", reason="invalid_response")
    context_id: Json = value.get("contextId")
    done = StatusChanged(at=at, state=TaskState.COMPLETED, usage=account_in(value.get("metadata")))
    return Heard(
        events=restored_events((MessageAdded(at=at, message=message, direct=True), done)),
        settled=True,
        remote=Remote(context_id=context_id) if isinstance(context_id, str) and context_id else None,
    )


def _restored_event(event: TaskEvent) -> TaskEvent:
    match event:
        case ArtifactChunk(artifact=artifact):
            return msgspec.structs.replace(event, artifact=_restored_holder(artifact))
        case MessageAdded(message=message):
            return msgspec.structs.replace(event, message=_restored_holder(message))
        case StatusChanged(message=Message() as message):
            return msgspec.structs.replace(event, message=_restored_holder(message))
        case StatusChanged() | Sent() | Watched() | Logged():
            return event


def _restored_holder(holder: Holder) -> Holder:
    if all(part.metadata is None for part in holder.parts):
        return holder
    return msgspec.structs.replace(holder, parts=tuple([restored(part) for part in holder.parts]))
