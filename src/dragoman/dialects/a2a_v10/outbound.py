"""Calling an agent of A2A 1.0 over JSON-RPC: what is asked, and what its answers mean."""

from datetime import datetime
from typing import Final

from dragoman.dialects.a2a_v10.strict import hear_strict
from dragoman.dialects.a2a_v10.wire import wire_message
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import RpcError, read_reply, request_body, unreadable
from dragoman.dialects.shapes import may_hold_doubles, read_message, read_task, unwrapped, whole_numbers
from dragoman.dialects.times import retry_after_s
from dragoman.model.content import Role
from dragoman.model.errors import (
    AgentError,
    AgentUnavailable,
    BadAgentReply,
    ContentRefused,
    DragomanError,
    InputRefused,
    RateLimited,
)
from dragoman.model.events import MessageAdded, Remote, StatusChanged
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import JsonObject, is_array, is_object
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

HEADERS: Final[Headers] = {
    b"content-type": b"application/json",
    # Some servers refuse a request whose Accept lacks one of these.
    b"accept": b"application/json, text/event-stream",
    b"a2a-version": b"1.0",
}
_METHODS: Final = {Verb.SEND: "SendMessage", Verb.GET: "GetTask", Verb.CANCEL: "CancelTask"}


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to get or cancel."""
    task, endpoint = outgoing.task, outgoing.endpoint
    params: JsonObject
    if outgoing.verb is Verb.SEND and outgoing.message is not None:
        params = {"message": wire_message(task, outgoing.message, outgoing.timeout_ms)}
        if task.asked.accepts:
            params["configuration"] = {"acceptedOutputModes": task.asked.accepts}
    elif task.remote is None or task.remote.task_id is None:
        return None
    else:
        params = {"id": task.remote.task_id}
    if endpoint.tenant is not None:
        params["tenant"] = endpoint.tenant
    headers = {**HEADERS, **outgoing.headers}
    if outgoing.verb is Verb.SEND:
        # A message that continues is another one than that which began: it needs a key of its own.
        key = task.id if task.asked.continues is None or outgoing.message is None else outgoing.message.id
        headers[b"idempotency-key"] = key.encode()
        if task.asked.extensions:
            headers[b"a2a-extensions"] = ",".join(task.asked.extensions).encode()
    body = request_body(_METHODS[outgoing.verb], task.id, params)
    return HttpRequest(method="POST", url=endpoint.url or "", headers=headers, body=body)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error of the protocol is a failed task with the agent's words; rubbish raises."""
    if reply.status == 200 and (heard := hear_strict(reply.body, at)) is not None:
        return heard
    if reply.status in (429, 503):
        return _failed(at, _busy(reply))
    result = read_reply(reply)
    if isinstance(result, RpcError):
        return _failed(at, _error_of(result))
    if not is_object(result):
        raise unreadable(reply)
    kind, value = unwrapped(whole_numbers(result) if may_hold_doubles(reply.body) else result)
    if kind == "task":
        events, state, remote = read_task(value, at)
        return Heard(events=events, settled=state in FINAL or state in INTERRUPTED, remote=remote)
    if kind == "message":
        return _direct(outgoing, value, at)
    raise BadAgentReply("The agent's answer is neither a task nor a message.", reason="invalid_response")


def _direct(outgoing: Outgoing, value: JsonObject, at: datetime) -> Heard:
    message = read_message(value, f"{outgoing.task.id}-answer", at)
    if message.role is Role.USER:
        raise BadAgentReply("The agent sent the caller's own message back.", reason="invalid_response")
    said = MessageAdded(at=at, message=message, direct=True)
    done = StatusChanged(at=at, state=TaskState.COMPLETED)
    context_id = value.get("contextId")
    remote = Remote(context_id=context_id) if isinstance(context_id, str) else None
    return Heard(events=(said, done), settled=True, remote=remote)


def _failed(at: datetime, error: DragomanError) -> Heard:
    ended = StatusChanged(at=at, state=TaskState.FAILED, failure=error.failure())
    return Heard(events=(ended,), settled=True)


def _busy(reply: HttpReply) -> DragomanError:
    kind = RateLimited if reply.status == 429 else AgentUnavailable
    return kind(
        f"The agent answered HTTP {reply.status}.",
        retry_after=retry_after_s(reply.headers) or 1,
        agent_status=reply.status,
    )


def _error_of(error: RpcError) -> DragomanError:
    """The agent's error: what the caller got wrong keeps that meaning, all else is the agent's failure."""
    if error.code == -32602:
        return InputRefused(error.message, agent_code=error.code)
    if error.code == -32005:
        return ContentRefused(error.message, agent_code=error.code)
    return AgentError(error.message, agent_code=error.code, **_reason_of(error))


def _reason_of(error: RpcError) -> JsonObject:
    """The name the agent gave its error, where it has the specification's form."""
    for item in error.data if is_array(error.data) else ():
        if is_object(item) and isinstance(item.get("reason"), str):
            return {"agent_reason": item["reason"]}
    return {}
