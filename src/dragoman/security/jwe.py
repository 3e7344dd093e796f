"""Messages that only their target can read: payloads of envelopes, encrypted with the key that the target published.

    {"jwe": "<compact>", "task_id": …, "task_type": …}     what an envelope carries instead of its payload
    plaintext                                               the whole payload; what stands in clear equals its own

ECDH-ES over X25519 or P-256, A256GCM. Bound to sender, receiver and message id: each message is encrypted anew, and
what was moved to another does not open. Nothing is ever compressed. A hub only passes such messages on; this is for the
agents at both ends. Encrypt first, then sign (envelope_signing.py). Needs the `hub` extra, for joserfc.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.sealed import ALGORITHMS, CURVES, ENCRYPTION, MEMBER, bound, header_of, header_problem
from dragoman.model.secret import Secret

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey

IN_CLEAR: Final = ("task_id", "task_type", "priority", "deadline", "status")


class NotDecrypted(ValueError):
    """The payload is not for this key and message, or was changed on its way."""


def new_sealing_key(kid: str | None = None) -> tuple[Secret, JsonObject]:
    """A key pair on X25519: the private JWK to keep, the public one for `keys` of the agent's card."""
    from joserfc.jwk import OKPKey

    key = OKPKey.generate_key("X25519", private=True)
    named = {"kid": kid or key.thumbprint(), "use": "enc"}
    private = msgspec.json.encode({**key.as_dict(private=True), **named}).decode()
    return Secret(private), {**key.as_dict(private=False), **named}


def encrypt_payload(
    payload: JsonObject, key: JsonObject, *, sender: str, to: str, message_id: str, algorithm: str = ALGORITHMS[1]
) -> JsonObject:
    """The payload of an envelope with this `from`, `to` and `message_id`, for the owner of the published key alone.

    Raises ValueError for a key that is not on X25519 or P-256, or has no `kid`.
    """
    from joserfc import jwe

    if not isinstance(key.get("kid"), str):
        raise ValueError("a published key has a kid")
    header = {
        "alg": algorithm,
        "enc": ENCRYPTION,
        "kid": key["kid"],
        "apu": bound(sender),
        "apv": bound(f"{to}.{message_id}"),
    }
    allowed = [algorithm, ENCRYPTION]
    compact = jwe.encrypt_compact(header, msgspec.json.encode(payload), _key(key), algorithms=allowed)
    return {**{name: payload[name] for name in IN_CLEAR if name in payload}, MEMBER: compact}


def decrypt_payload(
    payload: JsonObject, keys: Secret | Sequence[Secret], *, sender: str, to: str, message_id: str
) -> JsonObject:
    """The payload that was encrypted for one of these private keys, in an envelope with these members.

    Raises NotDecrypted.
    """
    from joserfc import jwe
    from joserfc.errors import JoseError

    compact = payload.get(MEMBER)
    header = header_of(compact) if isinstance(compact, str) else None
    if not isinstance(compact, str) or header is None:
        raise NotDecrypted("the payload holds no compact JWE")
    problem = header_problem(header, sender=sender, to=to, message_id=message_id)
    if problem is not None:
        raise NotDecrypted(problem)
    given = [keys] if isinstance(keys, Secret) else keys
    own = [jwk for jwk in map(_members, given) if jwk.get("kid") == header.kid]
    if not own:
        raise NotDecrypted(f"it was encrypted for the key {header.kid!r}")
    try:
        opened = jwe.decrypt_compact(compact, _key(own[0]), algorithms=[header.alg, ENCRYPTION])
        plain: Json = msgspec.json.decode(opened.plaintext or b"")
    except (JoseError, ValueError, TypeError, KeyError, msgspec.DecodeError, RecursionError):
        # Without the cause: what exactly was wrong is of use to an attacker alone.
        raise NotDecrypted("it does not open") from None
    if not is_object(plain):
        raise NotDecrypted("the plaintext is no JSON object")
    for name, value in payload.items():
        if name != MEMBER and (name not in IN_CLEAR or name not in plain or plain[name] != value):
            raise NotDecrypted(f"{name} does not stand so in the plaintext")
    return plain


def _members(private_jwk: Secret) -> JsonObject:
    return msgspec.json.decode(private_jwk.reveal(), type=JsonObject)


def _key(jwk: JsonObject) -> "OKPKey | ECKey":
    # joserfc is imported where it is used: it doubles a hub's start-up time, and is part of an extra.
    from joserfc.jwk import ECKey, OKPKey

    if jwk.get("crv") not in CURVES:
        raise ValueError(f"expected a key on {' or '.join(CURVES)}")
    members = {name: jwk[name] for name in ("kty", "crv", "x", "y", "d") if name in jwk}
    return OKPKey.import_key(members) if jwk.get("kty") == "OKP" else ECKey.import_key(members)
