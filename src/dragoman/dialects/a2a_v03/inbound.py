"""The caller's side of A2A 0.3 over JSON-RPC: its requests read into operations.

Does not decide anything: whether the caller may, and what becomes of it, is the hub's. Its HTTP form is `rest_in.py`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Final

import msgspec

from dragoman.dialects.a2a_v03.answers import looks, sent_object, superset, task_object
from dragoman.dialects.a2a_v03.errors import ERRORS
from dragoman.dialects.a2a_v03.version import extensions_of, require_version
from dragoman.dialects.dialect import Streaming, place_of, unasked
from dragoman.dialects.jsonrpc import Frame, Id, error_reply, read_frame, read_params, require_json, result_reply
from dragoman.dialects.kinds import (
    NO_CONFIGURATION,
    PUSH_METHODS,
    Count,
    KindFrames,
    SendShape,
    broken_data,
    error_data,
    read_push,
    result_data,
    send_task,
    shown_push,
)
from dragoman.dialects.official_card import V03, card_reply, place_seen, write_v03_card
from dragoman.dialects.sse import last_seen
from dragoman.model.answers import Accepted, Answer, CallbackList, Card, Done
from dragoman.model.callbacks import Callback
from dragoman.model.errors import DragomanError, NoExtendedCard, NotSupported, UnknownMethod
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.operations import CancelTask, FollowTask, GetCard, GetTask, Operation, SendTask, Unreadable
from dragoman.model.task import Task

METHODS: Final = frozenset(
    {"message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"}
    | PUSH_METHODS
    | {"agent/getAuthenticatedExtendedCard"}
)
CARD: Final = "card"
_STREAM: Final = "message/stream"

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class TaskShape(msgspec.Struct, frozen=True, gc=False):
    """The params that name a task; `reason` is not in 0.3, but clients of its relatives send it."""

    id: Word
    historyLength: Count | None = None  # noqa: N815 - the wire's own name
    reason: str | None = None


class Asked(msgspec.Struct, frozen=True):
    """What a request asks for, and how its answer is to look."""

    operation: Operation
    history_length: int | None = None
    hybrid: bool = False


_decode_send = msgspec.json.Decoder(SendShape).decode
_decode_task = msgspec.json.Decoder(TaskShape).decode


class V03Exchange(msgspec.Struct, frozen=True):
    """One request of 0.3, and how to answer it."""

    request: HttpRequest
    frame: Frame
    asked: Asked

    @property
    def operation(self) -> Operation:
        """What was asked."""
        return self.asked.operation

    def reply(self, answer: Answer) -> HttpReply:
        """The answer in 0.3's words."""
        match answer:
            case Task():
                return self._task(answer)
            case Accepted(task=task):
                return self._task(task)
            case Card():
                return self._card(answer)
            case Callback() | CallbackList():
                return result_reply(self.frame.id, shown_push(self.operation, answer))
            case Done():
                return result_reply(self.frame.id, None)
            case _:
                raise unasked(answer, V03)

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The stream in 0.3's words: one answer to the request after the other."""
        asked = self.asked
        write = partial(_hybrid_data if asked.hybrid else result_data, self.frame.id)
        return Streaming(
            frames=KindFrames(looks(asked.history_length), write, task_id, context_id),
            broken=partial(broken_data, self.frame.id, ERRORS),
        )

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal in 0.3's words."""
        reply = error_reply(self.frame.id, error, ERRORS, error_data)
        if self.request.route == CARD and reply.status < 400:
            # A plain GET has no other place to say that it went wrong.
            return msgspec.structs.replace(reply, status=error.http_status)
        return reply

    def _task(self, task: Task) -> HttpReply:
        sent = isinstance(self.operation, SendTask)
        shown = sent_object(task, self.asked.history_length) if sent else task_object(task, self.asked.history_length)
        return result_reply(self.frame.id, superset(shown) if self.asked.hybrid else shown)

    def _card(self, answer: Card) -> HttpReply:
        agent = answer.agent
        if self.request.route != CARD:
            # Who asks here has proved himself, and there is no more to show him than everybody sees.
            return self.refuse(NoExtendedCard() if agent.card.extended else NotSupported("There is no extended card."))
        place = place_seen(self.request, place_of(answer, self.request.hub, V03))
        return card_reply(self.request, write_v03_card(agent, place), agent.updated_at, answer.signer)


def read_rpc(request: HttpRequest) -> V03Exchange:
    """The exchange of one JSON-RPC request, or of one for the card; never raises."""
    if request.route == CARD:
        return V03Exchange(request, Frame(), Asked(GetCard(agent=request.params.get("agent"), public=True)))
    return read_framed(request, read_frame(request.body))


def read_framed(request: HttpRequest, frame: Frame) -> V03Exchange:
    """The same of a JSON-RPC request whose frame was read; never raises."""
    try:
        require_json(request)
        if frame.error is not None:
            raise frame.error
        if frame.method not in _READERS:
            raise UnknownMethod(f"A2A 0.3 has no method {frame.method[:100]!r}.")
        require_version(request)
        return V03Exchange(request, frame, _READERS[frame.method](request, frame))
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return V03Exchange(request, frame, Asked(Unreadable(error=error.with_traceback(None))))


def _hybrid_data(request_id: Id, shown: JsonObject) -> bytes:
    return result_data(request_id, superset(shown))


def _read_send(request: HttpRequest, frame: Frame) -> Asked:
    sent = read_params(frame, _decode_send)
    configuration = sent.configuration or NO_CONFIGURATION
    # Who wants no answer gets none: what it sends is carried out all the same.
    streamed = frame.method == _STREAM and frame.id is not msgspec.UNSET
    return Asked(
        send_task(request, sent, V03, streamed=streamed, extensions=extensions_of(request)),
        history_length=configuration.historyLength,
        hybrid=sent.message.is_hybrid,
    )


def _read_get(request: HttpRequest, frame: Frame) -> Asked:
    named = read_params(frame, _decode_task)
    return Asked(GetTask(task_id=named.id, agent=request.params.get("agent")), history_length=named.historyLength)


def _read_cancel(request: HttpRequest, frame: Frame) -> Asked:
    named = read_params(frame, _decode_task)
    return Asked(CancelTask(task_id=named.id, reason=named.reason, agent=request.params.get("agent")))


def _read_extended(request: HttpRequest, frame: Frame) -> Asked:
    return Asked(GetCard(agent=request.params.get("agent")))


def _read_follow(request: HttpRequest, frame: Frame) -> Asked:
    named = read_params(frame, _decode_task)
    if frame.id is msgspec.UNSET:
        return _read_get(request, frame)
    follow = FollowTask(task_id=named.id, after=last_seen(request.headers), agent=request.params.get("agent"))
    return Asked(follow, history_length=named.historyLength)


def _read_push(request: HttpRequest, frame: Frame) -> Asked:
    return Asked(read_push(request, frame, V03))


_READERS: Final[Mapping[str, Callable[[HttpRequest, Frame], Asked]]] = {
    "message/send": _read_send,
    _STREAM: _read_send,
    "tasks/get": _read_get,
    "tasks/cancel": _read_cancel,
    "tasks/resubscribe": _read_follow,
    **dict.fromkeys(PUSH_METHODS, _read_push),
    "agent/getAuthenticatedExtendedCard": _read_extended,
}
