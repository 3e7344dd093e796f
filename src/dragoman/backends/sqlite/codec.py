"""How values look in the file: blobs are MessagePack, times microseconds, states small numbers.

MessagePack has no whole numbers beyond 64 bits, JSON has: a value that holds one is kept as JSON behind a byte that
MessagePack never uses.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Generic, TypeVar

import msgspec

from dragoman.model.agent import Agent, AgentCard
from dragoman.model.events import Happened, StatusChanged, TaskEvent
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.store import StoredKey

T = TypeVar("T")

STATE: Final[Mapping[TaskState, int]] = {
    TaskState.SUBMITTED: 0,
    TaskState.WORKING: 1,
    TaskState.INPUT_REQUIRED: 2,
    TaskState.AUTH_REQUIRED: 3,
    TaskState.COMPLETED: 4,
    TaskState.FAILED: 5,
    TaskState.CANCELED: 6,
    TaskState.REJECTED: 7,
}
FIRST_FINAL: Final = 4
COMPLETED: Final = STATE[TaskState.COMPLETED]

SEQ_BITS: Final = 20
MAX_SEQ: Final = (1 << SEQ_BITS) - 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_JSON_MARK: Final = b"\xc1"
_encode_into = msgspec.msgpack.Encoder().encode_into
_encode_json = msgspec.json.Encoder().encode


class Blob(Generic[T]):
    """How one type is read back."""

    __slots__ = ("_decode", "_decode_json")

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._decode_json = msgspec.json.Decoder(kind).decode

    def unpack(self, blob: bytes) -> T:
        """The value that was packed."""
        return self._decode_json(blob[1:]) if blob[:1] == _JSON_MARK else self._decode(blob)


def pack(value: object, room: bytearray | None = None) -> bytes:
    """A value as a blob. Who packs many gives `room` that they share: it has grown to their size after the first."""
    room = bytearray() if room is None else room
    try:
        _encode_into(value, room)
        return bytes(room)
    except OverflowError:
        return _JSON_MARK + _encode_json(value)


class Log(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A quick call: its opening, and the events after the first."""

    task: Task
    events: tuple[TaskEvent, ...]


class _Event(msgspec.Struct, frozen=True, array_like=True):
    """An event alone; a union needs a struct around it to be one type."""

    event: TaskEvent


LOG: Final = Blob(Log)
TASK: Final = Blob(Task)
AGENT: Final = Blob(Agent)
CARD: Final = Blob(AgentCard)
KEY: Final = Blob(StoredKey)
_EVENT: Final = Blob(_Event)


def pack_event(event: TaskEvent) -> bytes:
    """One event as a blob."""
    return pack(_Event(event))


def unpack_event(blob: bytes) -> TaskEvent:
    """The event of a blob."""
    return _EVENT.unpack(blob).event


def first_event(task: Task) -> StatusChanged:
    """What every task begins with; it is derived from the opening, not stored in a quick row."""
    return StatusChanged(at=task.created_at, state=TaskState.SUBMITTED)


def numbered(events: tuple[TaskEvent, ...], after: int) -> list[Happened]:
    """Events with their numbers."""
    return [Happened(seq=seq, event=event) for seq, event in enumerate(events, after + 1)]


def to_micros(at: datetime) -> int:
    """A time as microseconds since 1970."""
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """The time so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=micros)
