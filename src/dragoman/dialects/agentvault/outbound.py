"""Calling an AgentVault agent: a task is sent, then listened to, or asked for until it is done."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.agent_errors import busy, failed
from dragoman.dialects.agentvault.answers import AS, STATUS
from dragoman.dialects.agentvault.content import block_of, read_artifact, read_message, wire_message
from dragoman.dialects.agentvault.turns import TURN, Turns, echoes
from dragoman.dialects.agentvault.wire import STATES
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.hints import HINTS, conversation_of, hints_of
from dragoman.dialects.jsonrpc import RpcError, read_reply, request_body, shows, unreadable
from dragoman.dialects.kinds import sent_once
from dragoman.dialects.shapes import account_in, read_state
from dragoman.model.content import Message, Role
from dragoman.model.errors import (
    AgentError,
    BadAgentReply,
    DragomanError,
    InputRefused,
    NotSupported,
)
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, StatusChanged, TaskEvent
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import history_of
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

HEADERS: Final[Headers] = {
    b"content-type": b"application/json",
    b"accept": b"application/json, text/event-stream",
}
_METHODS: Final = {
    Verb.SEND: "tasks/send",
    Verb.SUBSCRIBE: "tasks/sendSubscribe",
    Verb.GET: "tasks/get",
    Verb.CANCEL: "tasks/cancel",
}
# Codes by which a server says that it does not know the method, or fell over it.
_NO: Final = frozenset({-32601, -32603})
_WITH_WORDS: Final = INTERRUPTED | {TaskState.FAILED, TaskState.REJECTED}
_decode = msgspec.json.Decoder().decode


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to hear of, get or cancel.

    Raises ContentRefused for files inside the message.
    """
    task, asked, message = outgoing.task, outgoing.asked, outgoing.message
    known = task.remote.task_id if task.remote is not None else None
    headers = {**HEADERS, **outgoing.headers}
    params: JsonObject
    if outgoing.verb is Verb.SEND and message is not None:
        about = {HINTS: {**hints_of(task, outgoing.timeout_ms), **conversation_of(task)}}
        params = {"message": wire_message(message, {**(asked.metadata or {}), **(message.metadata or {}), **about})}
        if asked.continues is not None and known is not None:
            params = {"id": known, **params}
        headers[b"idempotency-key"] = sent_once(outgoing)
    elif known is None or outgoing.verb not in _METHODS:
        return None
    else:
        params = {"id": known}
    body = request_body(_METHODS[outgoing.verb], task.id, params)
    return HttpRequest(method="POST", url=outgoing.endpoint.url or "", headers=headers, body=body)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error is a failed task with the agent's words; rubbish raises BadAgentReply.

    What is answered in place of a stream, and is no task, raises NotSupported.
    """
    if outgoing.verb is Verb.SUBSCRIBE:
        return _instead_of_stream(outgoing, reply, at)
    if reply.status in (429, 503):
        return failed(at, busy(reply))
    plain = _plain_error(reply)
    if plain is not None:
        return failed(at, plain)
    result = read_reply(reply)
    if isinstance(result, RpcError):
        return failed(at, _error_of(result, outgoing.verb))
    if not is_object(result):
        raise unreadable(reply)
    if isinstance(result.get("state"), str):
        return _task(outgoing, result, at)
    task_id: Json = result.get("id")
    if outgoing.verb is Verb.SEND and isinstance(task_id, str) and task_id:
        return Heard(events=(), settled=False, remote=Remote(task_id=task_id))
    if outgoing.verb is Verb.CANCEL:
        return Heard(events=(), settled=False)
    raise BadAgentReply("The agent's answer has neither a task nor its id.", reason="invalid_response")


def probe(url: str) -> HttpRequest:
    """A request for a task that nobody has."""
    body = request_body("tasks/get", "dragoman-probe", {"id": "dragoman-probe-no-such-task"})
    return HttpRequest(method="POST", url=url, headers=HEADERS, body=body)


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer shows that the method is spoken: any application error does."""
    return shows(reply, lambda result: not (isinstance(result, RpcError) and result.code in _NO))


def _instead_of_stream(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """Whoever has no stream may still show the task; any other answer says nothing of it: it is asked for."""
    try:
        result = read_reply(reply)
    except BadAgentReply:
        result = None
    if is_object(result) and isinstance(result.get("state"), str):
        return _task(outgoing, result, at)
    raise NotSupported(f"The agent answered HTTP {reply.status} where a stream was asked for.")


def _task(outgoing: Outgoing, task: JsonObject, at: datetime) -> Heard:
    state = _state(task)
    known = outgoing.task.remote.task_id if outgoing.task.remote is not None else None
    task_id = task.get("id")
    remote = Remote(task_id=task_id if isinstance(task_id, str) and task_id else known)
    listed = task.get("messages")
    turns = [turn for turn in listed if is_object(turn)] if is_array(listed) else []
    if state in INTERRUPTED and outgoing.asked.continues is not None and _waits(turns):
        # The agent has the answer to its question, but has not looked at it yet.
        state = TaskState.WORKING
    if state not in FINAL and state not in INTERRUPTED:
        now = StatusChanged(at=at, state=state, usage=account_in(task.get("metadata")))
        return Heard(events=(now,), settled=False, remote=remote)
    said = list(_said(outgoing, turns))
    words = next((message for message, mark in said if mark == STATUS), None)
    if words is None and (state in _WITH_WORDS or outgoing.task.status_message is not None):
        # Where an earlier turn ended with a question, the task still has it: only later words take its place.
        words = _last_words(turns)
    known = Turns(outgoing.task)
    events: list[TaskEvent] = [
        MessageAdded(at=at, message=message) for message, mark in said if mark is None and known.is_new(message)
    ]
    artifacts = task.get("artifacts")
    events += [
        ArtifactChunk(at=at, artifact=read_artifact(artifact, f"artifact-{index}"))
        for index, artifact in enumerate(artifacts if is_array(artifacts) else [])
        if is_object(artifact)
    ]
    events.append(StatusChanged(at=at, state=state, message=words, usage=account_in(task.get("metadata"))))
    return Heard(events=tuple(events), settled=True, remote=remote)


def _state(task: JsonObject) -> TaskState:
    """The state; another hub tells which of two that share a word it was."""
    state = read_state(task.get("state"))
    finer = block_of(task.get("metadata")).get("state")
    if isinstance(finer, str) and finer in set(TaskState) and STATES[TaskState(finer)] == STATES[state]:
        return TaskState(finer)
    return state


def _said(outgoing: Outgoing, turns: list[JsonObject]) -> Iterable[tuple[Message, str | None]]:
    """What the agent said, each with the mark that another hub put on it.

    The caller's own turns come back as an echo, in their order, whatever their role.
    """
    own = [
        message
        for message in history_of(outgoing.task)
        if message.role is not Role.USER and not message.id.startswith(TURN)
    ]
    for index, turn in enumerate(turns):
        message = read_message(turn, f"{TURN}{index}")
        if message.role is Role.USER:
            continue
        if own and echoes(message, own[0]):
            own.pop(0)
            continue
        mark = block_of(turn.get("metadata")).get(AS)
        yield message, mark if isinstance(mark, str) else None


def _waits(turns: list[JsonObject]) -> bool:
    return bool(turns) and turns[-1].get("role") == "user"


def _last_words(turns: list[JsonObject]) -> Message | None:
    """The agent's last message after the caller's last."""
    for turn in reversed(turns):
        message = read_message(turn, "status-message")
        if message.role is Role.USER:
            return None
        if message.role is Role.AGENT and message.parts:
            return message
    return None


def _plain_error(reply: HttpReply) -> DragomanError | None:
    """An error without a frame: `{error, message}` of the published server, `{detail}` of what it is built on."""
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    said: JsonObject = body if is_object(body) else {}
    error, detail = said.get("error"), said.get("detail")
    if isinstance(error, str):
        message = said.get("message")
        return AgentError(message if isinstance(message, str) and message else error, agent_code=error)
    if reply.status in (401, 403):
        message = error.get("message") if is_object(error) else detail
        shown = message if isinstance(message, str) and message else f"The agent answered HTTP {reply.status}."
        return AgentError(shown, reason="agent_refused_hub", agent_status=reply.status)
    if reply.status >= 400 and isinstance(detail, str):
        return AgentError(detail, agent_status=reply.status)
    return None


def _error_of(error: RpcError, verb: Verb) -> DragomanError:
    """The agent's error: what the caller got wrong keeps that meaning, all else is the agent's failure."""
    if error.code == -32602 and verb is Verb.SEND:
        return InputRefused(error.message, agent_code=error.code)
    return AgentError(error.message, agent_code=error.code)
