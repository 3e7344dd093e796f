"""What a body of one dialect is and says: a request, an answer, an event or a card, in no dialect's words.

It is told by its shape. A body without its frame gets one: a message that of a request, all else that of an answer.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from dragoman.dialects.dialect import RPC, Dialect, Heard, Outgoing, Verb
from dragoman.dialects.shapes import read_message, unwrapped
from dragoman.dialects.times import read_time
from dragoman.model.agent import AgentCard, Endpoint
from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import BadAgentReply, BadParams, DragomanError
from dragoman.model.events import Remote, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import CancelTask, GetTask, Operation, ReportTask, SendTask, Signed, Unreadable
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace

HUB: Final = "http://localhost:8700"
NOBODY: Final = "msg-none"  # the message that opened a task, where an answer does not show it
_EVENTS: Final = frozenset({"status-update", "artifact-update"})
_TURNS: Final = ("history", "messages")
_encode = msgspec.json.Encoder().encode


class Kind(StrEnum):
    """What a body is."""

    REQUEST = "request"
    ANSWER = "answer"
    EVENT = "event"
    CARD = "card"


class Understood(msgspec.Struct, frozen=True, kw_only=True):
    """What a body says: one of these, by its kind."""

    kind: Kind
    asked: SendTask | GetTask | CancelTask | None = None
    task: Task | None = None
    events: tuple[TaskEvent, ...] = ()  # of an event: what happened, the task being as it is after them
    card: AgentCard | None = None
    bare: bool = False  # it came without its frame
    request_id: Json = None


def understand(body: JsonObject, source: Dialect, kind: Kind | None, at: datetime) -> Understood:
    """What a body of that dialect says. Raises BadParams where it says nothing in it."""
    if kind is Kind.CARD or (kind is None and "jsonrpc" not in body and source.owns_card(body)):
        return Understood(kind=Kind.CARD, card=source.read_card(body))
    said, is_event = _told(body)
    problem: BadParams | None = None
    if kind in (None, Kind.REQUEST) and not is_event and not ("jsonrpc" in body and "method" not in body):
        asked, problem = _asked(body, source, at)
        if isinstance(asked, ReportTask):
            return _reported(asked, body, source, at)
        if asked is not None:
            return Understood(kind=Kind.REQUEST, asked=asked, bare="role" in body, request_id=body.get("id"))
    if problem is not None and (kind is Kind.REQUEST or "method" in body or _is_message(body, source)):
        raise problem
    meant = Kind.EVENT if kind is Kind.EVENT or (kind is None and is_event) else Kind.ANSWER
    try:
        return _answered(body, said, source, meant, at)
    except BadParams as error:
        raise BadParams("; ".join(each.message for each in (problem, error) if each is not None)) from None


def outgoing(verb: Verb, task: Task, dialect: Dialect, at: datetime, *, timeout_ms: int = 0) -> Outgoing:
    """A request to an agent of that dialect, before it is put into words."""
    asked = task.asked
    return Outgoing(
        verb=verb,
        task=task,
        asked=asked,
        endpoint=Endpoint(dialect=dialect.slug, url="http://agent.example/", features=dialect.features),
        at=at,
        message=asked.message if verb is Verb.SEND else None,
        caller=asked.sender or "agt_caller",
        timeout_ms=timeout_ms,
        hub_url=HUB,
        hub_id="d4a60a7e-0000-4000-8000-000000000000",
    )


def blank_task(asked: SendTask, dialect: Dialect, at: datetime) -> Task:
    """The task that a request would open."""
    return Task(
        id=asked.continues or asked.alias or f"{dialect.task_prefix}1",
        tenant="default",
        caller_id=asked.sender or "agt_caller",
        agent_id=asked.agent or "agt_target",
        agent_version="1.0.0",
        dialect=dialect.slug,
        context_id=asked.context_id or "ctx-1",
        asked=asked,
        trace=Trace(trace_id="0" * 32, span_id="0" * 16),
        created_at=at,
        updated_at=at,
        skill=asked.skill,
    )


def read_back(request: HttpRequest, dialect: Dialect, at: datetime) -> Operation | None:
    """What a request that the dialect itself wrote asks for."""
    for route in [RPC] if dialect.methods or dialect.methods_begin else _posts(dialect):
        operation = _read(request.body, dict(request.headers), route, dialect, at)
        if not isinstance(operation, Unreadable):
            return operation
    return None


def _told(body: JsonObject) -> tuple[JsonObject, bool]:
    """What a body tells, without its frame, and whether that is one event."""
    data: Json = body.get("data")
    if isinstance(body.get("event"), str) and is_object(data):
        return data, True
    result: Json = body.get("result")
    said = result if "jsonrpc" in body and is_object(result) else body
    kind, inner = unwrapped(said)[0], _piece(said)
    piece = "taskId" in inner and not {"state", "artifact", "message"}.isdisjoint(inner)
    return said, (kind in _EVENTS or piece) and "method" not in body and "action" not in body


def _is_message(body: JsonObject, source: Dialect) -> bool:
    """Whether a body is a whole message of a dialect whose agents report by such: then it can be nothing else."""
    return Feature.REPORTS in source.features and "payload" in body and "status" not in body


def _asked(
    body: JsonObject, source: Dialect, at: datetime
) -> tuple[SendTask | GetTask | CancelTask | ReportTask | None, BadParams]:
    """What a body asks for; a bare message is what a request would send. Or why it asks for nothing."""
    headers = _headers(source, at)
    problem: DragomanError | None = None
    tries = [body] if "jsonrpc" in body else [body, *_around_message(body, source, at)]
    for tried in tries:
        for route in [RPC] if "jsonrpc" in tried else _posts(source):
            operation = _read(_encode(tried), headers, route, source, at)
            if isinstance(operation, SendTask | GetTask | CancelTask | ReportTask):
                return operation, BadParams()
            if isinstance(operation, Unreadable):
                problem = problem or operation.error
    said = problem.message if problem is not None else "it asks for nothing that is carried to an agent"
    return None, BadParams(f"not a request of {source.slug}: {said}")


def _around_message(body: JsonObject, source: Dialect, at: datetime) -> list[JsonObject]:
    """The request that would send a bare message, in the dialect's own frame."""
    if "role" not in body:
        return []
    sample = SendTask(message=Message(id="msg-1", role=Role.USER, parts=(Text(text="-"),)))
    request = source.ask(outgoing(Verb.SEND, blank_task(sample, source, at), source, at))
    frame: Json = None if request is None else msgspec.json.decode(request.body)
    if not is_object(frame) or not is_object(frame.get("params")) or "message" not in frame["params"]:
        return []
    return [{**frame, "params": {"message": body}}]


def _headers(dialect: Dialect, at: datetime) -> dict[bytes, bytes]:
    """What the dialect's own requests carry, of which some tell its version."""
    sample = SendTask(message=Message(id="msg-1", role=Role.USER, parts=(Text(text="-"),)), skill="default")
    request = dialect.ask(outgoing(Verb.SEND, blank_task(sample, dialect, at), dialect, at))
    headers = {} if request is None else dict(request.headers)
    headers.pop(b"idempotency-key", None)
    return {b"content-type": b"application/json", **headers}


def _read(
    body: bytes, headers: dict[bytes, bytes], route: str, dialect: Dialect, at: datetime
) -> Operation | Unreadable:
    if dialect.read is None:
        return Unreadable(error=BadParams(f"{dialect.slug} is only spoken to agents"))
    kept = {name: value for name, value in headers.items() if name != b"idempotency-key"}
    request = HttpRequest(method="POST", url="/", headers=kept, body=body, id="1", at=at, route=route, hub=HUB)
    operation = dialect.read(request).operation
    return operation.operation if isinstance(operation, Signed) else operation


def _posts(dialect: Dialect) -> list[str]:
    """The paths at which a body says all there is to say."""
    return [route.name for route in dialect.routes if route.method == "POST" and "{" not in route.path]


def _reported(asked: ReportTask, body: JsonObject, source: Dialect, at: datetime) -> Understood:
    """What a target tells of its task: an end is an answer, all else an event."""
    task = _blank_answer(body, asked.task_id, None, source, at)
    events = tuple(legal(task.state, asked.events))
    task = fold(task, events) if events else task
    return Understood(kind=Kind.ANSWER if task.ended else Kind.EVENT, task=task, events=events, bare=True)


def _answered(body: JsonObject, said: JsonObject, source: Dialect, kind: Kind, at: datetime) -> Understood:
    """What an answer or an event says. Raises BadParams."""
    at = _time_in(said, at)
    is_piece = kind is Kind.EVENT and bool(source.methods)
    shown = _as_task(said) if is_piece else body if "jsonrpc" in body else said
    if "jsonrpc" not in shown and _is_object_of_frames(shown):
        shown = {"jsonrpc": "2.0", "id": "1", "result": shown}
    try:
        heard = _heard(shown, _blank_answer(said, None, None, source, at), source, at)
    except DragomanError as error:
        raise BadParams(f"not an {kind} of {source.slug}: {error.message}") from None
    remote = heard.remote or Remote()
    task = _blank_answer(said, remote.task_id, remote.context_id, source, at)
    events = tuple(legal(task.state, _of_event(said, heard.events) if is_piece else heard.events))
    task = fold(task, events) if events else task
    if is_piece and not any(isinstance(event, StatusChanged) for event in events):
        task = msgspec.structs.replace(task, state=TaskState.WORKING)  # Whoever makes or says something is at work.
    task = msgspec.structs.replace(task, remote=remote)
    return Understood(kind=kind, task=task, events=events, bare="jsonrpc" not in body, request_id=body.get("id"))


def _heard(shown: JsonObject, task: Task, source: Dialect, at: datetime) -> Heard:
    """What an agent's reply says; one that knows a method by another name is asked by that. Raises DragomanError."""
    asked = outgoing(Verb.SEND, task, source, at)
    reply = HttpReply(status=200, body=_encode(shown))
    try:
        return source.hear(asked, reply, at)
    except BadAgentReply as error:
        version: Json = error.details.get("try_version")
        if not isinstance(version, str):
            raise
    named = msgspec.structs.replace(asked.endpoint, version=version)
    return source.hear(msgspec.structs.replace(asked, endpoint=named), reply, at)


def _is_object_of_frames(said: JsonObject) -> bool:
    """Whether a body is what JSON-RPC answers hold: a task or a message of the A2A family."""
    return unwrapped(said)[0] is not None or ("id" in said and "state" in said)


def _as_task(event: JsonObject) -> JsonObject:
    """An event in the form of a task, as readers of whole tasks take it; only an ended one shows what was made.

    Raises BadParams for what tells nothing of a task.
    """
    inner = _piece(event)
    ended: JsonObject = {"state": "COMPLETED", "status": {"state": "completed"}}
    shown: JsonObject = {"id": inner.get("taskId"), "contextId": inner.get("contextId"), **ended}
    made, said = inner.get("artifact"), inner.get("message")
    if is_object(made):
        return {**shown, "artifacts": [made]}
    if is_object(said) and "status" not in inner:
        return {**shown, "messages": [said], "history": [said]}
    if "state" not in inner and "status" not in inner:
        raise BadParams("an event that tells of no task")
    return {**shown, **{name: inner[name] for name in ("state", "status", "message") if name in inner}}


def _piece(event: JsonObject) -> JsonObject:
    """An event without its wrapper; a message in it is what it tells, and no wrapper."""
    return event if "taskId" in event else unwrapped(event)[1]


def _of_event(event: JsonObject, events: tuple[TaskEvent, ...]) -> tuple[TaskEvent, ...]:
    """What of a task's events the one event was: not the end that was only there to show it."""
    inner = _piece(event)
    return events if "status" in inner or "state" in inner else events[:-1]


def _blank_answer(said: JsonObject, task_id: str | None, context_id: str | None, source: Dialect, at: datetime) -> Task:
    """The task that an answer is about, as it was before: asked by the message that the answer itself shows, if any."""
    first = next((turn for turn in _turns(said) if str(turn.get("role")).lower().endswith("user")), None)
    opening = Message(id=NOBODY, role=Role.USER, parts=())
    if first is not None:
        opening = msgspec.structs.replace(read_message(first, "msg-1", at), role=Role.USER)
    asked = SendTask(message=opening, alias=task_id, context_id=context_id)
    return blank_task(asked, source, at)


def _turns(said: JsonObject) -> list[JsonObject]:
    _, task = unwrapped(said)
    for name in _TURNS:
        turns = task.get(name)
        if is_array(turns):
            return [turn for turn in turns if is_object(turn)]
    return []


def _time_in(said: JsonObject, at: datetime) -> datetime:
    inner = _piece(said)
    status = inner.get("status")
    told = status.get("timestamp") if is_object(status) else inner.get("updatedAt", inner.get("timestamp"))
    return read_time(told, at)
