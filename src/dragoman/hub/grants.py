"""On whose behalf a workflow goes on: its caller with what it may do, as the job keeps it over a restart."""

import msgspec

from dragoman.model.call import Caller


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the job says beside its caller: whether the request that made it was signed, its steps with it."""

    signed: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Caller).decode
_decode_grant = msgspec.json.Decoder(Grant).decode


def grant(caller: Caller, *, signed: bool) -> bytes:
    """The payload of a workflow's job."""
    return _encode({**msgspec.to_builtins(caller), **msgspec.to_builtins(Grant(signed=signed))})


def read_grant(payload: bytes) -> Caller:
    """Whom such a payload names."""
    return _decode(payload)


def was_signed(payload: bytes) -> bool:
    """Whether the request that made the workflow was signed."""
    return _decode_grant(payload).signed
