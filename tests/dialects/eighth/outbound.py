"""Calling an agent of the eighth dialect."""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import unreadable
from dragoman.dialects.kinds import sent_once
from dragoman.model.content import Artifact, Message, Part, Role, Text
from dragoman.model.errors import AgentError, AgentUnavailable, InputRefused, RateLimited
from dragoman.model.events import ArtifactChunk, Remote, StatusChanged, TaskEvent
from dragoman.model.http import JSON_TYPE, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.objects import plain_part, read_plain_part
from dragoman.model.operations import Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"accept": JSON_TYPE}
_STATUS_ERRORS: Final = {400: InputRefused, 429: RateLimited, 503: AgentUnavailable}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to get or cancel."""
    task, remote, message = outgoing.task, outgoing.task.remote, outgoing.message
    headers = {**HEADERS, **outgoing.headers}
    said: JsonObject = {"do": outgoing.verb.value}
    if outgoing.verb is Verb.SEND and message is not None:
        headers[b"idempotency-key"] = sent_once(outgoing)
        said |= {"to": task.agent_id, "id": message.id, "say": [plain_part(part) for part in message.parts]}
        said |= {"context": task.context_id, "wait": outgoing.asked.wait is not Wait.NONE}
        known = remote.task_id if remote is not None and outgoing.asked.continues is not None else None
        optional = {"task": known, "skill": task.skill, "ms": outgoing.timeout_ms, "about": outgoing.asked.metadata}
        said |= {name: value for name, value in optional.items() if value}
    elif remote is None or remote.task_id is None:
        return None
    else:
        said["task"] = remote.task_id
    return HttpRequest(method="POST", url=outgoing.endpoint.url or "", headers=headers, body=_encode(said))


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says; rubbish raises BadAgentReply."""
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if not is_object(body):
        raise unreadable(reply)
    if reply.status != 200:
        words = _text(body, "why") or f"The agent answered HTTP {reply.status}."
        error = _STATUS_ERRORS.get(reply.status, AgentError)(words, agent_status=reply.status)
        return Heard(events=(StatusChanged(at=at, state=TaskState.FAILED, failure=error.failure()),), settled=True)
    named = _text(body, "state")
    if named not in set(TaskState):
        raise unreadable(reply)
    state, words = TaskState(named), _text(body, "words")
    events: list[TaskEvent] = []
    if state is TaskState.COMPLETED:
        events.append(ArtifactChunk(at=at, artifact=Artifact(id=RESULT_ARTIFACT, parts=_parts(body.get("say")))))
    said = Message(id="words", role=Role.AGENT, parts=(Text(text=words),), at=at) if words else None
    events.append(StatusChanged(at=at, state=state, message=said))
    remote = Remote(task_id=_text(body, "task"), context_id=_text(body, "context"))
    return Heard(events=tuple(events), settled=state in FINAL or state in INTERRUPTED, remote=remote)


def _parts(value: Json) -> tuple[Part, ...]:
    parts = [read_plain_part(each) for each in value] if is_array(value) else []
    return tuple(part for part in parts if part is not None)


def _text(body: JsonObject, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None
