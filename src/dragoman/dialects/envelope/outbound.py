"""The envelope's agent side: the assignment that the hub posts to an agent, and what its answer means.

Most agents only acknowledge, and post their reports to the hub later; one may answer with the completion itself.
"""

from datetime import datetime, timedelta
from typing import Final, assert_never

import msgspec

from dragoman.dialects.agent_errors import busy
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.envelope.errors import INTERNAL_ERROR, agent_error
from dragoman.dialects.envelope.reports import completion_events, error_event, update_event
from dragoman.dialects.envelope.sealed import Letter, letter_of
from dragoman.dialects.envelope.wire import (
    ASSIGNMENT,
    COMPLETION,
    ERROR,
    NOBODY,
    PING,
    PRIORITY_WORDS,
    REPLY_TO,
    STATES,
    TRACEPARENT,
    UPDATE,
    envelope_of,
    messages_url,
)
from dragoman.dialects.hints import HINTS, conversation_of, hints_of
from dragoman.dialects.jsonrpc import unreadable
from dragoman.dialects.times import wire_time
from dragoman.dialects.uuids import uuid_of
from dragoman.model.content import Message
from dragoman.model.errors import AgentError, DragomanError
from dragoman.model.events import Remote, StatusChanged, TaskEvent
from dragoman.model.http import JSON_TYPE, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.objects import input_object
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

_HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"accept": JSON_TYPE}
_PROBE: Final = "dragoman-probe"
_PROBED_AT: Final = "2026-01-01T00:00:00.000Z"  # a dialect reads no clock, and no rule asks for a message's age
_ENDS: Final = ("completed", "failed")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The message for one verb; such an agent reports by itself and cannot be asked how far it is."""
    match outgoing.verb:
        case Verb.SEND:
            return None if outgoing.message is None else _assignment(outgoing, outgoing.message)
        case Verb.CANCEL:
            asked = outgoing.task.asked
            # An encrypted task is known to its agent by its giver's name for it.
            named = asked.alias if asked.sealed and asked.alias else outgoing.task.id
            payload: JsonObject = {"task_id": named, "status": "cancelled"}
            if outgoing.reason:
                payload["message"] = outgoing.reason
            message_id = uuid_of(outgoing.task.id, "cancel")
            return _posted(outgoing, message_id, outgoing.at, UPDATE, payload)
        case Verb.GET | Verb.STREAM | Verb.SUBSCRIBE:
            return None
        case _ as never:
            assert_never(never)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says: an acknowledgement, the outcome itself, or an error. Rubbish raises BadAgentReply."""
    remote = Remote(task_id=outgoing.task.id)
    body = _body_of(reply)
    if reply.status >= 300 or body.get("type") == ERROR or body.get("status") == "error":
        return Heard(events=(error_event(_error_of(reply, body), at),), settled=True, remote=remote)
    events = _told(outgoing, body, at)
    last = events[-1]
    state = last.state if isinstance(last, StatusChanged) else TaskState.SUBMITTED
    return Heard(events=events, settled=state in FINAL or state in INTERRUPTED, remote=remote)


def probe(url: str) -> HttpRequest:
    """A ping: it starts no work."""
    nobody = uuid_of(_PROBE)
    body = envelope_of(uuid_of(_PROBE, url), _PROBED_AT, nobody, nobody, PING, {"nonce": _PROBE})
    return HttpRequest(method="POST", url=messages_url(url), headers=_HEADERS, body=_encode(body))


def answers_probe(reply: HttpReply) -> bool:
    """Whether the answer echoes the ping, or refuses it in the words of this dialect."""
    if reply.status in (401, 403):
        return True
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if not is_object(body):
        return False
    payload = body.get("payload")
    told: JsonObject = payload if is_object(payload) else {}
    echoed = _PROBE in (body.get("nonce"), told.get("nonce"))
    return echoed or isinstance(body.get("error_code") or told.get("error_code"), str)


def _assignment(outgoing: Outgoing, message: Message) -> HttpRequest:
    task, asked = outgoing.task, outgoing.asked
    continues = asked.continues is not None or message.id != task.asked.message.id
    letter = letter_of(message.parts)
    if letter is not None:
        return _sealed(outgoing, letter, continues=continues)
    task_type = task.skill or "default"
    title = task_type if asked.title is None else asked.title
    # Sent again, a message is the same to the last byte: its times are the task's, not those of the attempt.
    sent_at = outgoing.at if continues else task.created_at
    payload: JsonObject = {
        "task_id": task.id,
        "task_type": task_type,
        "title": title,
        "description": title if asked.description is None else asked.description,
        "payload": input_object(message.parts, None) if message.parts else {},
        "priority": PRIORITY_WORDS[asked.priority],
    }
    deadline = task.deadline
    if deadline is None and outgoing.timeout_ms:
        deadline = sent_at + timedelta(milliseconds=outgoing.timeout_ms)
    if deadline is not None:
        payload["deadline"] = wire_time(deadline)
    metadata: JsonObject = {**(asked.metadata or {}), **(message.metadata or {})}
    if outgoing.hub_url:
        metadata[REPLY_TO] = outgoing.hub_url
    payload["metadata"] = {**metadata, HINTS: {**hints_of(task, 0), **conversation_of(task), **_trace_of(outgoing)}}
    message_id = uuid_of(task.id, message.id, "assignment")
    request = _posted(outgoing, message_id, sent_at, ASSIGNMENT, payload)
    # A message that continues is another one than that which began: it needs a key of its own.
    key = message_id if continues else task.id
    return msgspec.structs.replace(request, headers={**request.headers, b"idempotency-key": key.encode()})


def _sealed(outgoing: Outgoing, letter: Letter, *, continues: bool) -> HttpRequest:
    """An encrypted assignment, under the names and the id that it is bound to; nothing may stand beside it."""
    sent_at = outgoing.at if continues else outgoing.task.created_at
    body = envelope_of(letter.message_id, wire_time(sent_at), letter.sender, letter.to, ASSIGNMENT, letter.payload)
    key = letter.message_id if continues else outgoing.task.id
    return HttpRequest(
        method="POST",
        url=messages_url(outgoing.endpoint.url or ""),
        headers={**_HEADERS, **outgoing.headers, b"idempotency-key": key.encode()},
        body=_encode(body),
    )


def _trace_of(outgoing: Outgoing) -> JsonObject:
    """The trace, where no headers go along."""
    parent = outgoing.headers.get(b"traceparent")
    return {} if outgoing.endpoint.url is not None or parent is None else {TRACEPARENT: parent.decode()}


def _posted(outgoing: Outgoing, message_id: str, at: datetime, kind: str, payload: JsonObject) -> HttpRequest:
    endpoint = outgoing.endpoint
    to = endpoint.tenant or outgoing.task.agent_id
    body = envelope_of(message_id, wire_time(at), outgoing.hub_id or NOBODY, to, kind, payload)
    headers = {**_HEADERS, **outgoing.headers}
    return HttpRequest(method="POST", url=messages_url(endpoint.url or ""), headers=headers, body=_encode(body))


def _body_of(reply: HttpReply) -> JsonObject:
    """The answer's object; an empty one to a message that was taken, for the document asks for no more."""
    try:
        body: Json = _decode(reply.body) if reply.body.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if is_object(body):
        return body
    if reply.status < 300:
        raise unreadable(reply, "an acknowledgement or an envelope")
    return {}


def _told(outgoing: Outgoing, body: JsonObject, at: datetime) -> tuple[TaskEvent, ...]:
    """What an acknowledgement tells of the task; without a word of it the agent has it now."""
    told: Json = body.get("payload")
    payload: JsonObject = told if is_object(told) else body
    status, result, metadata = payload.get("status"), payload.get("result"), payload.get("metadata")
    about = metadata if is_object(metadata) else None
    if status in _ENDS and (body.get("type") == COMPLETION or "result" in payload):
        outcome = result if is_object(result) else {} if result is None else {"result": result}
        return completion_events(str(status), outcome, _number(payload.get("execution_time_ms")), about, at)
    known = status if isinstance(status, str) and status in STATES else "assigned"
    said, progress = payload.get("message") or payload.get("error"), _number(payload.get("progress"))
    return (
        update_event(
            known,
            said if isinstance(said, str) and said else None,
            progress if progress is not None and progress <= 1 else None,
            about,
            f"{outgoing.task.id}-answer",
            at,
        ),
    )


def _error_of(reply: HttpReply, body: JsonObject) -> DragomanError:
    payload = body.get("payload")
    told: JsonObject = payload if is_object(payload) else {}
    code = told.get("error_code") or body.get("error_code")
    said = told.get("error_message") or body.get("error")
    message = said if isinstance(said, str) and said else f"The agent answered HTTP {reply.status}."
    facts: JsonObject = dict(told["details"]) if is_object(told.get("details")) else {}
    if reply.status >= 300:
        facts["agent_status"] = reply.status
    if reply.status in (429, 503):
        # What the agent's own details say is dropped: they describe its trouble, not the caller's.
        return busy(reply, message)
    if reply.status in (401, 403):
        return AgentError(message, reason="agent_refused_hub", agent_status=reply.status)
    error = agent_error(code, message, facts)
    if code == INTERNAL_ERROR:
        error.details["retryable"] = True  # envelope.md, Retryable Errors
    return error


def _number(value: Json) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value <= 1e15 else None
