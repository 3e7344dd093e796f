"""The AgentVault caller's side: JSON-RPC read into operations, and answered in kind.

Does not decide anything: whether the caller may, and what becomes of it, is the hub's.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dragoman.dialects.agentvault.answers import ERRORS, canceled, error_data, not_canceled, shown_task
from dragoman.dialects.agentvault.card import write_card
from dragoman.dialects.agentvault.registry import ROUTES, detail_reply, json_reply, read_registry
from dragoman.dialects.agentvault.streams import Shown, error_frame
from dragoman.dialects.agentvault.wire import (
    SLUG,
    TASK_PREFIX,
    TaskIdParams,
    TaskSendParams,
    read_message,
)
from dragoman.dialects.dialect import Exchange, Streaming, place_of, unasked
from dragoman.dialects.hints import read_hints
from dragoman.dialects.jsonrpc import (
    Frame,
    error_reply,
    given_ids,
    read_frame,
    read_params,
    require_json,
    result_reply,
)
from dragoman.dialects.sse import last_seen
from dragoman.model.answers import Accepted, Answer, Card
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.errors import DragomanError, TaskNotCancelable, UnknownMethod
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import CancelTask, FollowTask, GetCard, GetTask, Operation, SendTask, Unreadable, Wait
from dragoman.model.task import Task

CANCEL: Final = "tasks/cancel"
SUBSCRIBE: Final = "tasks/sendSubscribe"
CARD: Final = "card"
WEBHOOK: Final = "webhook"  # a task has one: a later one takes its place
LONGEST_S: Final = 86_400.0

_decode_send = msgspec.json.Decoder(TaskSendParams).decode
_decode_id = msgspec.json.Decoder(TaskIdParams).decode


class RpcExchange(msgspec.Struct, frozen=True, gc=False):
    """One JSON-RPC request, and how to answer it."""

    frame: Frame
    operation: Operation

    def reply(self, answer: Answer) -> HttpReply:
        """The answer in AgentVault's words."""
        match answer:
            case Accepted(task=task):
                return result_reply(self.frame.id, {"id": task.id})
            case Task() if self.frame.method == CANCEL:
                return result_reply(self.frame.id, canceled())
            case Task():
                return result_reply(self.frame.id, shown_task(answer))
            case _:
                raise unasked(answer, SLUG)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal in AgentVault's words."""
        if self.frame.method == CANCEL and isinstance(error, TaskNotCancelable):
            return result_reply(self.frame.id, not_canceled(error))
        reply = error_reply(self.frame.id, error, ERRORS, error_data)
        if self.frame.method == SUBSCRIBE and reply.status == 200:
            # Whoever waits for a stream does not look into a JSON answer: only its status is seen.
            return msgspec.structs.replace(reply, status=max(400, error.http_status))
        return reply

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The stream of the task that was asked for."""
        if not isinstance(self.operation, FollowTask):
            raise AssertionError(f"{self.frame.method} asks for no stream")
        return Streaming(frames=Shown(self.operation.task_id, self.operation.after), broken=error_frame)


class CardExchange(msgspec.Struct, frozen=True, gc=False):
    """A look at a card, and how to answer it."""

    request: HttpRequest
    operation: Operation

    def reply(self, answer: Answer) -> HttpReply:
        """The card."""
        if not isinstance(answer, Card):
            raise AssertionError(f"a look at a card is not answered by {type(answer).__name__}")
        return json_reply(200, write_card(answer.agent, place_of(answer, self.request.hub)))

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal, as AgentVault's registry says it."""
        return detail_reply(error)


def read(request: HttpRequest) -> Exchange:
    """The exchange of one request; never raises."""
    if request.route in ROUTES:
        return read_registry(request)
    if request.route == CARD:
        return CardExchange(request, GetCard(agent=request.params.get("agent"), public=True))
    return _read_rpc(request)


def _read_rpc(request: HttpRequest) -> RpcExchange:
    frame = read_frame(request.body)
    try:
        require_json(request)
        if frame.error is not None:
            raise frame.error
        reader = _READERS.get(frame.method)
        if reader is None:
            raise UnknownMethod(f"Method not found: {frame.method[:100]}")
        return RpcExchange(frame, reader(request, frame))
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return RpcExchange(frame, Unreadable(error=error.with_traceback(None)))


def _read_send(request: HttpRequest, frame: Frame) -> Operation:
    params = read_params(frame, _decode_send)
    hints = read_hints(params.message.metadata)
    callback = None
    if params.webhook_url is not None:
        callback = Callback(id=WEBHOOK, dialect=SLUG, url=params.webhook_url, tells=Tells.STATES)
    key, request_id = given_ids(request)
    return SendTask(
        message=read_message(params.message, f"msg-{TASK_PREFIX}{request.id}"),
        agent=request.params.get("agent") or params.tenant or hints.agent,
        skill=hints.skill,
        continues=params.id,
        context_id=hints.context,
        wait=Wait.NONE,
        priority=hints.priority,
        timeout_s=hints.timeout_s or LONGEST_S,
        callback=callback,
        parent_id=hints.parent,
        within=hints.within,
        title=hints.title,
        idempotency_key=key,
        request_id=request_id,
    )


def _read_get(request: HttpRequest, frame: Frame) -> Operation:
    return GetTask(task_id=read_params(frame, _decode_id).id, agent=request.params.get("agent"))


def _read_cancel(request: HttpRequest, frame: Frame) -> Operation:
    return CancelTask(task_id=read_params(frame, _decode_id).id, agent=request.params.get("agent"))


def _read_subscribe(request: HttpRequest, frame: Frame) -> Operation:
    return FollowTask(
        task_id=read_params(frame, _decode_id).id,
        after=last_seen(request.headers),
        ended_ok=True,
        past_questions=True,
        agent=request.params.get("agent"),
    )


_READERS: Final[Mapping[str, Callable[[HttpRequest, Frame], Operation]]] = {
    "tasks/send": _read_send,
    "tasks/get": _read_get,
    CANCEL: _read_cancel,
    SUBSCRIBE: _read_subscribe,
}
METHODS: Final = frozenset(_READERS)
