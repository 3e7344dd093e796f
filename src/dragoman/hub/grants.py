"""On whose behalf a workflow goes on: its caller with what it may do, as the job keeps it over a restart."""

import msgspec

from dragoman.model.call import Caller

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Caller).decode


def grant(caller: Caller) -> bytes:
    """The payload of a workflow's job."""
    return _encode(caller)


def read_grant(payload: bytes) -> Caller:
    """Whom such a payload names."""
    return _decode(payload)
