"""A call's end as a tool's result, and what happens before as notifications: what clients of the hub's own `/mcp` see.

Whatever became of a call, its result says so itself: a model reads results, and never sees the protocol's errors.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import Final, final

import msgspec

from dragoman.dialects.mcp.content import block_of
from dragoman.dialects.mcp.protocol import PROGRESS_TOKEN, notification_bytes
from dragoman.dialects.mcp.tools import ANSWER, CALL_ID
from dragoman.dialects.refusals import failure_of, text_of
from dragoman.model.content import Role
from dragoman.model.errors import DragomanError
from dragoman.model.events import MessageAdded, StatusChanged
from dragoman.model.json import JsonObject, is_object
from dragoman.model.lifecycle import output_of
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.model.tool_inputs import MESSAGE

META_CALL: Final = "dragoman/call"
META_ERROR: Final = "dragoman/error"
Id = str | int
_encode = msgspec.json.Encoder().encode


def result_of(task: Task) -> JsonObject:
    """What a tool gave, or why it did not."""
    call: JsonObject = {"id": task.id, "state": task.state.value}
    if task.state is TaskState.COMPLETED:
        shown: JsonObject = {"content": [block_of(part, n) for n, part in enumerate(output_of(task), 1)]}
        if is_object(task.result):
            shown["structuredContent"] = task.result
        return {**shown, "isError": False, "_meta": {META_CALL: call}}
    if task.state is TaskState.CANCELED:
        return _failed("The call was cancelled.", {META_CALL: call})
    if task.state in INTERRUPTED:
        asked = text_of(task.status_message) or "It did not say what."
        told = f'Call the tool {ANSWER} with {{"{CALL_ID}": "{task.id}", "{MESSAGE}": …}} to answer.'
        return _failed(f"The agent asks something before it goes on: {asked}\n{told}", {META_CALL: call})
    error = failure_of(task)
    return _failed(_words(error), {META_CALL: call, META_ERROR: error_of(error)})


def refusal_of(error: DragomanError) -> JsonObject:
    """Why a call was not made."""
    return _failed(_words(error), {META_ERROR: error_of(error)})


def error_of(error: DragomanError) -> JsonObject:
    """An error as data: the hub's own code, its words and facts."""
    shown: JsonObject = {"code": error.code, "message": error.message, "retryable": error.retryable}
    if error.retry_after_s is not None:
        shown["retry_after_s"] = error.retry_after_s
    return {**shown, "details": error.details} if error.details else shown


def _words(error: DragomanError) -> str:
    return f"{error.code}: {error.message}"


def _failed(words: str, meta: JsonObject) -> JsonObject:
    return {"content": [{"type": "text", "text": words}], "isError": True, "_meta": meta}


# -- event by event


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a reader of a call's stream is, and under which names it was asked for: the id of each event."""

    task_id: str
    seq: int
    request_id: Id
    token: Id | None = None


def place_bytes(place: Place) -> bytes:
    """A place as the id of an event."""
    return urlsafe_b64encode(_encode(place)).rstrip(b"=")


def read_place(said: bytes) -> Place | None:
    """The place that the id of an event names; None where it is none of ours."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(said + b"=" * (-len(said) % 4)), type=Place)
    except (Base64Error, ValueError, msgspec.DecodeError):
        return None


@final
class CallFrames:
    """The events of one call's stream: how far it is, where the client wants to know that, and at last its result."""

    __slots__ = ("_done", "_finish", "_place", "_primed")

    def __init__(self, place: Place, finish: "Finish", *, primed: bool) -> None:
        self._place = place
        self._finish = finish  # what a result is wrapped in
        self._primed = primed  # the client is given a first place, to come back to
        self._done = 0.0  # what was told last: progress only grows

    def __call__(self, item: StreamItem) -> bytes:
        """The frames of one item."""
        match item:
            case Snapshot(task=task):
                if task.ended or task.state in INTERRUPTED:
                    return self._end(task, task.last_seq)
                return self._framed(b"", task.last_seq) if self._primed else b""
            case Ended(seq=seq, task=task):
                return self._end(task, seq)
            case _:
                event = item.event
        if isinstance(event, StatusChanged):
            return self._progress(event.progress, text_of(event.message), item.seq)
        if isinstance(event, MessageAdded) and event.message.role is not Role.USER:
            return self._progress(None, text_of(event.message), item.seq)
        return b""

    def _end(self, task: Task, seq: int) -> bytes:
        return self._framed(self._finish(result_of(task)), seq)

    def _progress(self, share: float | None, words: str | None, seq: int) -> bytes:
        token = self._place.token
        further = share is not None and share > self._done
        if token is None or not (further or words):
            return b""
        # What has no number of its own is told as a little more than before.
        self._done = share if share is not None and further else self._done + (1 - self._done) / 1000
        params: JsonObject = {PROGRESS_TOKEN: token, "progress": self._done, "total": 1}
        if words:
            params["message"] = words
        return self._framed(notification_bytes("notifications/progress", params), seq)

    def _framed(self, data: bytes, seq: int) -> bytes:
        if not self._primed:
            return b"event: message\ndata: %b\n\n" % data
        place = msgspec.structs.replace(self._place, seq=seq)
        return b"id: %b\nevent: message\ndata: %b\n\n" % (place_bytes(place), data)


class Finish(msgspec.Struct, frozen=True):
    """Wraps the result of one request in its answer."""

    request_id: Id
    alone: bool

    def __call__(self, result: JsonObject) -> bytes:
        """The whole answer."""
        shown = {"resultType": "complete", **result} if self.alone else result
        return _encode({"jsonrpc": "2.0", "id": self.request_id, "result": shown})
