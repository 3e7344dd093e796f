"""What a notice in the outbox is about: which callback is owed word of which event."""

import msgspec

from dragoman.model.operations import Callback


class Owed(msgspec.Struct, frozen=True, array_like=True):
    """A callback of the task, and the number of the event."""

    callback_id: str
    seq: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Owed).decode


def owed(callback: Callback, seq: int) -> bytes:
    """The payload of a notice's job."""
    return _encode(Owed(callback.id, seq))


def read_owed(payload: bytes) -> Owed:
    """What such a payload says."""
    return _decode(payload)
