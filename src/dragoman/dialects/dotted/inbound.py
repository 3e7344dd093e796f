"""The caller's side of dotted: JSON-RPC requests under its own names, and where it is alone under 0.3's, too.

Does not decide anything: whether the caller may, and what becomes of it, is the hub's.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Final

import msgspec

from dragoman.dialects.dialect import Streaming, in_mount, place_of, unasked
from dragoman.dialects.dotted.answers import LOOKS, task_object
from dragoman.dialects.dotted.card import SLUG, write_card
from dragoman.dialects.jsonrpc import (
    RPC_ERRORS,
    Frame,
    error_reply,
    read_frame,
    read_params,
    require_json,
    result_reply,
)
from dragoman.dialects.kinds import (
    PUSH_METHODS,
    KindFrames,
    SendShape,
    bad_param,
    broken_data,
    error_data,
    read_push,
    result_data,
    send_task,
    shown_push,
)
from dragoman.dialects.refusals import JSON_HEADERS
from dragoman.model.answers import Accepted, Answer, CallbackList, Card, Done
from dragoman.model.callbacks import Callback
from dragoman.model.errors import DragomanError, UnknownMethod
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import CancelTask, GetCard, GetTask, Operation, Unreadable
from dragoman.model.task import Task

ERRORS: Final = RPC_ERRORS
METHODS: Final = frozenset({"message.send", "message.stream", "task.get", "task.cancel"})
CARD: Final = "card"
_STREAMS: Final = frozenset({"message.stream", "message/stream"})

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class TaskShape(msgspec.Struct, frozen=True, gc=False):
    """The params that name a task, by either name."""

    taskId: Word | None = None  # noqa: N815 - the wire's own name
    id: Word | None = None
    reason: str | None = None


_decode_send = msgspec.json.Decoder(SendShape).decode
_decode_task = msgspec.json.Decoder(TaskShape).decode
_encode = msgspec.json.Encoder().encode


class DottedExchange(msgspec.Struct, frozen=True):
    """One dotted request, and how to answer it."""

    request: HttpRequest
    frame: Frame
    operation: Operation

    def reply(self, answer: Answer) -> HttpReply:
        """The answer in dotted's words."""
        match answer:
            case Task():
                return result_reply(self.frame.id, task_object(answer))
            case Accepted(task=task):
                return result_reply(self.frame.id, task_object(task))
            case Card():
                return HttpReply(status=200, headers=JSON_HEADERS, body=_encode(self._card(answer)))
            case Callback() | CallbackList():
                return result_reply(self.frame.id, shown_push(self.operation, answer))
            case Done():
                return result_reply(self.frame.id, None)
            case _:
                raise unasked(answer, SLUG)

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The stream in dotted's words: one answer to the request after the other."""
        return Streaming(
            frames=KindFrames(LOOKS, partial(result_data, self.frame.id), task_id, context_id),
            broken=partial(broken_data, self.frame.id, ERRORS),
        )

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal in dotted's words."""
        reply = error_reply(self.frame.id, error, ERRORS, error_data)
        if self.request.route == CARD and reply.status < 400:
            # A plain GET has no other place to say that it went wrong.
            return msgspec.structs.replace(reply, status=error.http_status)
        return reply

    def _card(self, answer: Card) -> object:
        # Whoever looks in the mount wants to talk there, where only dotted is spoken.
        mount = SLUG if in_mount(self.request, SLUG) else ""
        return write_card(answer.agent, place_of(answer, self.request.hub, mount))


def read(request: HttpRequest) -> DottedExchange:
    """The exchange of one request; never raises."""
    if request.route == CARD:
        return DottedExchange(request, Frame(), GetCard(agent=request.params.get("agent"), public=True))
    frame = read_frame(request.body)
    try:
        require_json(request)
        if frame.error is not None:
            raise frame.error
        if frame.method not in _READERS:
            raise UnknownMethod(f"There is no method {frame.method[:100]!r}; there are: {', '.join(sorted(METHODS))}.")
        return DottedExchange(request, frame, _READERS[frame.method](request, frame))
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return DottedExchange(request, frame, Unreadable(error=error.with_traceback(None)))


def _read_send(request: HttpRequest, frame: Frame) -> Operation:
    # Who wants no answer gets none: what it sends is carried out all the same.
    streamed = frame.method in _STREAMS and frame.id is not msgspec.UNSET
    return send_task(request, read_params(frame, _decode_send), SLUG, streamed=streamed)


def _read_get(request: HttpRequest, frame: Frame) -> Operation:
    return GetTask(task_id=_task_id(read_params(frame, _decode_task)), agent=request.params.get("agent"))


def _read_cancel(request: HttpRequest, frame: Frame) -> Operation:
    named = read_params(frame, _decode_task)
    return CancelTask(task_id=_task_id(named), reason=named.reason, agent=request.params.get("agent"))


def _read_push(request: HttpRequest, frame: Frame) -> Operation:
    return read_push(request, frame, SLUG)


def _task_id(named: TaskShape) -> str:
    task_id = named.taskId or named.id
    if task_id is None:
        raise bad_param("taskId", "required")
    return task_id


# The published server speaks 0.3's names instead of its document's: both are taken.
_READERS: Final[Mapping[str, Callable[[HttpRequest, Frame], Operation]]] = {
    "message.send": _read_send,
    "message.stream": _read_send,
    "task.get": _read_get,
    "task.cancel": _read_cancel,
    "message/send": _read_send,
    "message/stream": _read_send,
    "tasks/get": _read_get,
    "tasks/cancel": _read_cancel,
    **dict.fromkeys(PUSH_METHODS, _read_push),
}
