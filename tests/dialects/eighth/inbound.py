"""The eighth dialect's caller side: one URL, three things to do."""

from typing import Annotated, Final, Literal

import msgspec

from dragoman.dialects.dialect import ErrorTable, wire_error
from dragoman.dialects.jsonrpc import RPC_ERRORS, bad_field, given_ids, require_json
from dragoman.dialects.refusals import JSON_HEADERS, error_headers, failure_of, text_of
from dragoman.model.answers import Accepted, Answer
from dragoman.model.content import Message, Part, Role
from dragoman.model.errors import BadParams, DragomanError, NotJson
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import output_of
from dragoman.model.objects import plain_part, read_plain_part
from dragoman.model.operations import CancelTask, GetTask, Operation, SendTask, Unreadable, Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task

ERRORS: Final[ErrorTable] = RPC_ERRORS
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is posted."""

    do: Literal["send", "get", "cancel"]
    to: Id | None = None
    task: Id | None = None
    id: Id | None = None
    context: Id | None = None
    skill: Id | None = None
    say: list[Json] = []
    wait: bool = True
    ms: Annotated[int, msgspec.Meta(ge=1, le=86_400_000)] | None = None
    about: JsonObject | None = None


_decode = msgspec.json.Decoder(Said).decode
_encode = msgspec.json.Encoder().encode


class EighthExchange(msgspec.Struct, frozen=True):
    """One request, and how to answer it."""

    operation: Operation

    def reply(self, answer: Answer) -> HttpReply:
        """The task."""
        task = answer.task if isinstance(answer, Accepted) else answer
        if not isinstance(task, Task):
            raise AssertionError(f"nothing here is answered by {type(answer).__name__}")
        return HttpReply(status=200, headers=JSON_HEADERS, body=_encode(shown_task(task)))

    def refuse(self, error: DragomanError) -> HttpReply:
        """What is wrong, and why."""
        code, status = wire_error(ERRORS, error)
        body = _encode({"wrong": code, "why": error.message})
        return HttpReply(status=max(status, error.http_status), headers=error_headers(error), body=body)


def read(request: HttpRequest) -> EighthExchange:
    """The exchange of one request; never raises."""
    try:
        require_json(request)
        return EighthExchange(_operation(request, _said(request.body)))
    except DragomanError as error:
        return EighthExchange(Unreadable(error=error.with_traceback(None)))


def shown_task(task: Task) -> JsonObject:
    """A task: its state, its answer, and the words that go with it."""
    shown: JsonObject = {"task": task.id, "context": task.context_id, "state": task.state.value}
    if task.state is TaskState.COMPLETED:
        shown["say"] = [plain_part(part) for part in output_of(task)]
    failed = task.state in (TaskState.FAILED, TaskState.REJECTED)
    words = failure_of(task).message if failed else text_of(task.status_message)
    if words is not None:
        shown["words"] = words
    return shown


def _said(body: bytes) -> Said:
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        problem: DragomanError = bad_field(error, "body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = NotJson()
    raise problem


def _operation(request: HttpRequest, said: Said) -> Operation:
    if said.do == "send":
        wait = Wait.END if said.wait else Wait.NONE
        key, request_id = given_ids(request)
        return SendTask(
            message=Message(id=said.id or f"msg-{request.id}", role=Role.USER, parts=_parts(said.say)),
            agent=said.to,
            skill=said.skill,
            continues=said.task,
            context_id=said.context,
            wait=wait,
            timeout_s=said.ms / 1000 if said.ms else 3600.0,
            idempotency_key=key,
            request_id=request_id,
            metadata=said.about,
        )
    if said.task is None:
        raise BadParams("task: required", errors=[{"path": "task", "message": "required"}])
    if said.do == "get":
        return GetTask(task_id=said.task)
    return CancelTask(task_id=said.task)


def _parts(listed: list[Json]) -> tuple[Part, ...]:
    parts = [read_plain_part(each) for each in listed]
    found = tuple(part for part in parts if part is not None)
    if not found or len(found) != len(listed):
        raise BadParams("say: one or more parts", errors=[{"path": "say", "message": "one or more parts"}])
    return found
