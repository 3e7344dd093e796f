"""The directory's caller side: its requests read into operations, framed or bare.

Published clients disagree with their own document, so what is meant is told by three things: the path, where it names
what it serves; the method otherwise; and the shape of the params where the method is a2a/register, which one of the
clients sends for everything.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from dragoman.dialects.dialect import Streaming, unasked
from dragoman.dialects.directory.answers import (
    STATUSES,
    bare_refusal,
    bare_reply,
    name_of,
    refusal,
    task_reply,
)
from dragoman.dialects.directory.card import CANCEL_METHOD, SLUG, STREAM_METHOD, card_of, record
from dragoman.dialects.directory.streams import change_frame, event_frames, last_change, task_frames
from dragoman.dialects.directory.wire import (
    CancelParams,
    DiscoverParams,
    EventsParams,
    TaskParams,
    shaped,
    wrong_field,
)
from dragoman.dialects.jsonrpc import Frame, Id, given_ids, read_frame, read_params, require_json, result_reply
from dragoman.dialects.sse import last_seen
from dragoman.dialects.steps import read_steps
from dragoman.model.agent import Agent
from dragoman.model.answers import (
    AgentPage,
    Answer,
    Card,
    Registered,
)
from dragoman.model.changes import Change
from dragoman.model.content import Message, Role
from dragoman.model.errors import DragomanError, NotJson, TaskNotCancelable, UnknownMethod
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.objects import parts_of_object
from dragoman.model.operations import (
    CancelTask,
    Discover,
    FollowTask,
    GetCard,
    Match,
    Operation,
    RegisterAgent,
    SendTask,
    Unreadable,
    Wait,
    WatchChanges,
)
from dragoman.model.states import TaskState
from dragoman.model.task import Task

TASK_PREFIX: Final = "dir-"
TIMEOUT_S: Final = 30.0
STREAMED_S: Final = 3600.0  # what a stream may take that names no time
MAX_FOUND: Final = 100
MAX_LISTED: Final = 1000  # the directory has no pages: what is beyond is found by capability

REGISTER: Final = "a2a/register"
DISCOVER: Final = "a2a/discover"
TASK: Final = "a2a/task"
EVENTS: Final = "a2a/events"
_PATHS: Final[Mapping[str, str]] = {"register": REGISTER, "discover": DISCOVER, "task": TASK}
_BARE_PATHS: Final = frozenset({"register", "discover"})

_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(JsonObject).decode


class DirectoryExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One directory request, and how to answer it in kind."""

    request: HttpRequest
    operation: Operation
    id: Id = None
    bare: bool = False

    def reply(self, answer: Answer) -> HttpReply:
        """The answer: the object itself to a bare request, a result to a framed one."""
        match answer:
            case Task():
                return self._task(answer)
            case AgentPage(agents=agents):
                return self._said({"agents": [self._record(agent) for agent in agents]})
            case Card(agent=agent):
                return self._said(self._record(agent))
            case Registered(agent=agent):
                return self._said({"status": "registered", "agentId": agent.id})
            case _:
                raise unasked(answer, SLUG)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal: text and an HTTP status to a bare request, a number to a framed one."""
        if self.bare:
            return bare_refusal(error)
        match self.operation:
            case SendTask(alias=task_id) | CancelTask(task_id=task_id) | FollowTask(task_id=task_id):
                return refusal(self.id, error, task_id)
            case _:
                return refusal(self.id, error, None)

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The stream of a task: its progress to who sent it, or that it moves to who only watches."""
        match self.operation:
            case SendTask(alias=name):
                return Streaming(frames=task_frames(self.id, name or ""))
            case FollowTask(task_id=name):
                return Streaming(frames=event_frames(self.id, name))
            case _:
                raise AssertionError(f"{type(self.operation).__name__} asks for no stream")

    def changes(self) -> Callable[[Change], bytes]:
        """The frames of what changes at the hub."""
        return partial(change_frame, self.id, self.request.hub)

    def _task(self, task: Task) -> HttpReply:
        if isinstance(self.operation, CancelTask):
            if task.state is not TaskState.CANCELED:
                return self.refuse(TaskNotCancelable())
            return self._said({"taskId": name_of(task), "status": STATUSES[task.state]})
        return task_reply(self.id, task)

    def _said(self, body: JsonObject) -> HttpReply:
        return bare_reply(body) if self.bare else result_reply(self.id, body)

    def _record(self, agent: Agent) -> JsonObject:
        return record(agent, f"{self.request.hub}/agents/{agent.id}/")


def read(request: HttpRequest) -> DirectoryExchange:
    """The exchange of one request; never raises."""
    if request.route == "agents":
        return DirectoryExchange(request=request, operation=Discover(limit=MAX_LISTED), bare=True)
    if request.route == "agent":
        return DirectoryExchange(request=request, operation=GetCard(agent=request.params["agent"]), bare=True)
    frame, bare = _framed(request)
    try:
        operation = _operation(request, frame)
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        operation = Unreadable(error=error.with_traceback(None))
    return DirectoryExchange(request=request, operation=operation, id=frame.id, bare=bare)


def _framed(request: HttpRequest) -> tuple[Frame, bool]:
    """The request's frame, and whether it came without one: then its whole body is the params."""
    body = request.body
    if request.route not in _BARE_PATHS:
        return read_frame(body), False
    # Of what is no JSON only a look at the bytes can tell in which kind it wants its answer.
    looks_bare = b'"jsonrpc"' not in body
    try:
        value: Json = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Frame(error=NotJson("The body is not JSON.")), looks_bare
    if not is_object(value):
        return read_frame(body), looks_bare
    if "jsonrpc" in value or "method" in value:
        return read_frame(body), False
    return Frame(method=_PATHS[request.route], params=msgspec.Raw(body)), True


def _operation(request: HttpRequest, frame: Frame) -> Operation:
    require_json(request)
    if frame.error is not None:
        raise frame.error
    if frame.method not in _READERS:
        raise UnknownMethod(f"There is no method {frame.method[:100]!r} here.")
    params = read_params(frame, _decode_object)
    return _READERS[_meant(request.route, frame.method, params)](request, params)


def _meant(route: str, method: str, params: JsonObject) -> str:
    """The method that is meant: by the path, by its name, or by the shape of what it brings."""
    if method not in _PATHS.values():
        return method
    if route in _PATHS:
        return _PATHS[route]
    if method == REGISTER:
        if "taskId" in params and "action" in params:
            return TASK
        if "capabilities" in params and "agentId" not in params:
            return DISCOVER
    return method


def _read_register(_: HttpRequest, params: JsonObject) -> Operation:
    return RegisterAgent(card=card_of(params))


def _read_discover(_: HttpRequest, params: JsonObject) -> Operation:
    wanted = shaped(params, DiscoverParams).capabilities
    return Discover(skills=tuple(dict.fromkeys(wanted)), match=Match.ANY, limit=MAX_FOUND)


def _read_task(request: HttpRequest, params: JsonObject) -> SendTask:
    asked = shaped(params, TaskParams)
    agent = request.params.get("agent")
    given_key, request_id = given_ids(request)
    # A task's name is its sender's own: from the same one, for the same target, it is the same call.
    target = f"skill\n{asked.action}" if agent is None else f"agent\n{agent}"
    own_key = "\n".join((asked.sender or "", target, asked.task_id))
    return SendTask(
        message=Message(id=f"msg_{request.id}", role=Role.USER, parts=parts_of_object(asked.input or {})),
        agent=agent,
        skill=asked.action,
        alias=asked.task_id,
        interactive=False,
        timeout_s=TIMEOUT_S if asked.timeout_ms is None else asked.timeout_ms / 1000,
        then=read_steps(asked.steps, "steps") if asked.steps else (),
        sender=asked.sender or None,
        idempotency_key=given_key or own_key,
        key_scope="key" if given_key else SLUG,
        key_decides=given_key is None,
        request_id=request_id,
    )


def _read_stream(request: HttpRequest, params: JsonObject) -> Operation:
    asked = _read_task(request, params)
    timeout_s = STREAMED_S if params.get("timeoutMs") is None else asked.timeout_s
    return msgspec.structs.replace(asked, wait=Wait.STREAM, timeout_s=timeout_s, after=last_seen(request.headers))


def _read_events(request: HttpRequest, params: JsonObject) -> Operation:
    asked = shaped(params, EventsParams)
    if asked.task_id is None:
        topics = asked.topics or ("agents", "tasks")
        return WatchChanges(agents="agents" in topics, tasks="tasks" in topics, since=last_change(request.headers))
    if asked.topics is not None and "agents" in asked.topics:
        raise wrong_field("topics", "with a taskId there is that task's news alone")
    return FollowTask(
        task_id=asked.task_id,
        after=last_seen(request.headers),
        ended_ok=True,
        past_questions=True,
        agent=request.params.get("agent"),
        alias=True,
    )


def _read_cancel(request: HttpRequest, params: JsonObject) -> Operation:
    asked = shaped(params, CancelParams)
    return CancelTask(task_id=asked.task_id, reason=asked.reason, agent=request.params.get("agent"), alias=True)


_READERS: Final[Mapping[str, Callable[[HttpRequest, JsonObject], Operation]]] = {
    REGISTER: _read_register,
    DISCOVER: _read_discover,
    TASK: _read_task,
    CANCEL_METHOD: _read_cancel,
    STREAM_METHOD: _read_stream,
    EVENTS: _read_events,
}
