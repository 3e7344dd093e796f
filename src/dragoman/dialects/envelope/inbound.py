"""The envelope's receiving side: messages, mailbox and card requests read into operations, and answered.

Does not decide anything: whether there is such an agent or task, and what becomes of it, is the hub's.
"""

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.dialect import place_of, unasked
from dragoman.dialects.envelope.answers import assigned, json_reply, mail, pong, refusal, taken
from dragoman.dialects.envelope.card import write_card
from dragoman.dialects.envelope.checks import Checked, bad_field, checked, decoded, payload_of, payload_or_problem
from dragoman.dialects.envelope.errors import agent_error
from dragoman.dialects.envelope.reports import completion_events, error_event, sealed_events, update_event
from dragoman.dialects.envelope.sealed import sealed_assignment, sealed_completion, sealed_update
from dragoman.dialects.envelope.wire import (
    ASSIGNMENT,
    COMPLETION,
    ERROR,
    PING,
    PRIORITIES,
    REPLY_TO,
    SLUG,
    UPDATE,
    Assignment,
    Completion,
    Envelope,
    ErrorPayload,
    PingPayload,
    Update,
    read_moment,
    read_party,
)
from dragoman.dialects.hints import HINTS, read_hints, without_hints
from dragoman.dialects.jsonrpc import given_ids, require_json
from dragoman.model.answers import Accepted, Answer, Card, Mail, Noted, Pong
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Message, Part, Role
from dragoman.model.errors import BadParams, DragomanError
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.objects import parts_of_object
from dragoman.model.operations import (
    GetCard,
    Operation,
    Ping,
    Priority,
    ReadMail,
    ReportTask,
    SendTask,
    Signed,
    Unreadable,
    Wait,
)
from dragoman.model.task import Task

MESSAGES: Final = "messages"
MAILBOX: Final = "mailbox"
CARD: Final = "card"

TASK_PREFIX: Final = "env-"
LONGEST_WAIT_S: Final = 30.0
DEFAULT_TIMEOUT_S: Final = 86_400.0
LONGEST_TIMEOUT_S: Final = 366 * 86_400.0
AT_ONCE_S: Final = 0.001  # a deadline that has passed: the task fails as soon as it is looked at

_NOTHING: Final = Envelope()
_ASSIGNMENTS: Final = msgspec.json.Decoder(Assignment)
_UPDATES: Final = msgspec.json.Decoder(Update)
_COMPLETIONS: Final = msgspec.json.Decoder(Completion)
_PINGS: Final = msgspec.json.Decoder(PingPayload)
_ERRORS: Final = msgspec.json.Decoder(ErrorPayload)


class EnvelopeExchange(msgspec.Struct, frozen=True):
    """One request, and how to answer it."""

    request: HttpRequest
    operation: Operation
    envelope: Envelope

    def reply(self, answer: Answer) -> HttpReply:
        """The answer in the envelope's words."""
        at = self.request.at
        match answer:
            case Accepted(task=task) | (Task() as task):
                return assigned(self.envelope, task, self._task_id(task), at)
            case Noted(applied=applied):
                # An error that changes nothing any more is on record all the same.
                return taken(self.envelope, at, applied=applied or self.envelope.type == ERROR)
            case Pong():
                return pong(self.envelope, at)
            case Mail():
                return mail(answer)
            case Card():
                return json_reply(write_card(answer.agent, place_of(answer, self.request.hub)))
            case _:
                raise unasked(answer, SLUG)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal as an error envelope that names the message it is about."""
        return refusal(self.request, self.envelope, error)

    def _task_id(self, task: Task) -> str:
        """What the caller calls its task."""
        asked = self.operation.operation if isinstance(self.operation, Signed) else self.operation
        return asked.alias if isinstance(asked, SendTask) and asked.alias else task.asked.alias or task.id


def read(request: HttpRequest, *, lenient_ids: bool = False) -> EnvelopeExchange:
    """The exchange of one request; never raises."""
    envelope = _NOTHING
    try:
        if request.route == CARD:
            operation: Operation = GetCard(agent=request.params.get("agent"), public=True)
        elif request.route == MAILBOX:
            operation = _read_mailbox(request)
        else:
            require_json(request)
            envelope = decoded(request.body)
            message = checked(envelope, lenient_ids=lenient_ids)
            operation = _READERS[message.type](request, message)
            if message.signature is not None:
                operation = Signed(
                    operation=operation,
                    sender=message.sender,
                    signature=message.signature,
                    body=request.body,
                    at=message.at,
                )
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        operation = Unreadable(error=error.with_traceback(None))
    return EnvelopeExchange(request, operation, envelope)


def _read_assignment(request: HttpRequest, message: Checked) -> SendTask:
    asked = payload_or_problem(message, _ASSIGNMENTS)
    if isinstance(asked, BadParams):
        # Plain messages pay nothing for it that some are encrypted.
        return _read_sealed_assignment(request, message, asked)
    hints = read_hints(asked.metadata)
    # Where nobody gave a title the hub sends the task's type, and the title as description: coming back, that is none.
    title = None if asked.title == asked.task_type else asked.title
    key, request_id = given_ids(request)
    return SendTask(
        message=Message(id=message.message_id, role=Role.USER, parts=parts_of_object(asked.payload)),
        agent=request.params.get("agent") or message.to,
        skill=asked.task_type,
        alias=asked.task_id,
        context_id=hints.context,
        wait=Wait.NONE,
        priority=PRIORITIES[asked.priority] if asked.priority else Priority.NORMAL,
        timeout_s=_allowed_s(message, asked.deadline) or hints.timeout_s or DEFAULT_TIMEOUT_S,
        callback=_callback(request, message, asked.metadata),
        parent_id=hints.parent,
        within=hints.within,
        title=title,
        description=None if asked.description == asked.title else asked.description,
        sender=message.sender,
        sender_registered=True,
        idempotency_key=key or message.key,
        key_scope=SLUG if key is None else "key",
        request_id=request_id,
        metadata=_own_metadata(asked.metadata),
        signature=message.signature,
    )


def _read_sealed_assignment(request: HttpRequest, message: Checked, problem: BadParams) -> SendTask:
    asked, part = sealed_assignment(message, problem)
    key, request_id = given_ids(request)
    return SendTask(
        message=Message(id=message.message_id, role=Role.USER, parts=(part,)),
        agent=request.params.get("agent") or message.to,
        skill=asked.task_type,
        alias=asked.task_id,
        wait=Wait.NONE,
        priority=PRIORITIES[asked.priority] if asked.priority else Priority.NORMAL,
        timeout_s=_allowed_s(message, asked.deadline) or DEFAULT_TIMEOUT_S,
        callback=_callback(request, message, None),
        sender=message.sender,
        sender_registered=True,
        idempotency_key=key or message.key,
        key_scope=SLUG if key is None else "key",
        request_id=request_id,
        sealed=True,
        signature=message.signature,
    )


def _read_update(request: HttpRequest, message: Checked) -> ReportTask:
    told = payload_or_problem(message, _UPDATES)
    if isinstance(told, BadParams):
        sealed, part = sealed_update(message, told)
        return _sealed_report(request, message, sealed.task_id, sealed.status, part)
    event = update_event(told.status, told.message, told.progress, told.metadata, message.message_id, request.at)
    return ReportTask(
        task_id=told.task_id,
        events=(event,),
        sender=message.sender,
        recipient=message.to,
        key=message.key,
        digest=message.digest,
        cancels=told.status == "cancelled",
    )


def _sealed_report(request: HttpRequest, message: Checked, task_id: str, status: str, part: Part) -> ReportTask:
    return ReportTask(
        task_id=task_id,
        events=sealed_events(status, part, message.message_id, request.at),
        sender=message.sender,
        recipient=message.to,
        key=message.key,
        digest=message.digest,
        cancels=status == "cancelled",
        sealed=True,
    )


def _read_completion(request: HttpRequest, message: Checked) -> ReportTask:
    told = payload_or_problem(message, _COMPLETIONS)
    if isinstance(told, BadParams):
        sealed, part = sealed_completion(message, told)
        return _sealed_report(request, message, sealed.task_id, sealed.status, part)
    return ReportTask(
        task_id=told.task_id,
        events=completion_events(told.status, told.result, told.execution_time_ms, told.metadata, request.at),
        sender=message.sender,
        recipient=message.to,
        key=message.key,
        digest=message.digest,
    )


def _read_ping(request: HttpRequest, message: Checked) -> Ping:
    ping = payload_of(message, _PINGS)
    return Ping(
        agent=message.to,
        sender=message.sender,
        nonce=ping.nonce,
        echo=None if ping.echo is msgspec.UNSET else ping.echo,
    )


def _read_error(request: HttpRequest, message: Checked) -> ReportTask:
    """An agent could not use a message: the task it was about is named in the details, or else by the message's id."""
    told = payload_of(message, _ERRORS)
    named: Json = (told.details or {}).get("task_id")
    return ReportTask(
        task_id=named if isinstance(named, str) and named else told.original_message_id or "",
        events=(error_event(agent_error(told.error_code, told.error_message, told.details), request.at),),
        sender=message.sender,
        recipient=message.to,
        about=(SLUG, f"{message.to} {told.original_message_id}") if told.original_message_id else None,
        key=message.key,
        digest=message.digest,
    )


_READERS: Final[Mapping[str, Callable[[HttpRequest, Checked], SendTask | ReportTask | Ping]]] = {
    ASSIGNMENT: _read_assignment,
    UPDATE: _read_update,
    COMPLETION: _read_completion,
    PING: _read_ping,
    ERROR: _read_error,
}


def _allowed_s(message: Checked, deadline: str | None) -> float | None:
    """How long the task may take: both times are by the sender's clock, so only their difference counts."""
    if deadline is None:
        return None
    until = read_moment(deadline)
    if until is None:
        raise bad_field("payload.deadline", "expected ISO 8601, date and time")
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - message.at).total_seconds(), AT_ONCE_S), LONGEST_TIMEOUT_S)


def _callback(request: HttpRequest, message: Checked, metadata: JsonObject | None) -> Callback:
    """Whom to tell: the sender, at its own endpoint or in its mailbox; another hub says where it wants to be told."""
    reply_to = metadata.get(REPLY_TO) if metadata and HINTS in metadata else None
    url = reply_to if isinstance(reply_to, str) and reply_to.startswith(("http://", "https://")) else None
    callback_id = f"cb_{TASK_PREFIX}{request.id}"
    return Callback(
        id=callback_id, dialect=SLUG, url=url, agent_id=message.sender, sender=message.to, tells=Tells.STATES
    )


def _own_metadata(metadata: JsonObject | None) -> JsonObject | None:
    """The caller's own metadata: beside another hub's block, that hub's address is not the caller's word either."""
    if metadata and HINTS in metadata:
        metadata = {name: value for name, value in metadata.items() if name != REPLY_TO}
    return without_hints(metadata)


def _read_mailbox(request: HttpRequest) -> ReadMail:
    query = dict(parse_qsl(request.url.partition("?")[2], keep_blank_values=True))
    after, wait, box = query.get("after") or "0", query.get("wait") or "0", query.get("agent")
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise bad_field("after", "expected the cursor of the answer before")
    try:
        wait_s = float(wait)
    except ValueError:
        wait_s = -1.0
    if not wait_s >= 0:
        raise bad_field("wait", f"expected seconds, at most {LONGEST_WAIT_S:g}")
    named = read_party(box) if box else None
    if box and named is None:
        raise bad_field("agent", "expected a UUID of version 4, or an agent's id")
    return ReadMail(after=int(after), wait_s=min(wait_s, LONGEST_WAIT_S), box=named)
