"""The one check of signed tokens, whoever issued them: this hub, the hub that an agent's server belongs to, or another.

    size, three parts, no strange header → the key by its exact id → its own algorithm → signature → who, for whom, when

Nothing in a token chooses how it is checked: the key is one that was known before, and the key fixes the algorithm.
"""

import base64
import binascii
import warnings
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, final

import msgspec

from dragoman.model.json import Json, JsonObject, is_array, is_object

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey

MOST_BYTES: Final = 8192
MOST_KEYS: Final = 100  # of one issuer
LEEWAY_S: Final = 30  # by which the clocks of two machines may differ
AHEAD_S: Final = 60  # by which a token may seem to come from the future
LATEST: Final = 1e12  # seconds; what lies beyond is no time
FEWEST_RSA_BYTES: Final = 256  # 2048 bits
ACCESS: Final = "at+jwt"  # RFC 9068
# What would let a token name its own key, or change what is signed. `crit` names what must be understood: nothing is.
REFUSED_HEADERS: Final = frozenset({"crit", "jwk", "jku", "x5u", "x5c", "b64", "zip", "enc"})
# What tells a token about who signed in from one that lets somebody in (OpenID Connect Core, 2 and 3.1.3.6).
ID_TOKEN_CLAIMS: Final = frozenset({"nonce", "at_hash", "c_hash"})
# The algorithms of each kind of key, the one first that it has where it names none. No shared secret is among them.
ALGORITHMS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA", "Ed25519"),
    ("RSA", ""): ("RS256", "PS256", "RS384", "PS384", "RS512", "PS512"),
}

_decode = msgspec.json.Decoder().decode


class Presented(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was taken apart; nothing in it is believed yet."""

    text: str
    kid: str
    algorithm: str
    kind: str
    claims: JsonObject


@final
class VerifyingKey:
    """A public key and the one algorithm it is for."""

    __slots__ = ("_jwk", "_key", "algorithm")

    def __init__(self, jwk: JsonObject, algorithm: str) -> None:
        self.algorithm: Final = algorithm
        self._jwk = jwk
        self._key: ECKey | RSAKey | OKPKey | None = None

    def signed(self, token: str) -> bool:
        """Whether a token in compact form bears a signature of this key."""
        # joserfc is imported at its first use: it doubles the hub's start-up time.
        from joserfc import jws
        from joserfc.errors import JoseError, SecurityWarning

        registry = jws.JWSRegistry(algorithms=[self.algorithm], strict_check_header=False)
        try:
            if self._key is None:
                self._key = _imported(self._jwk)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SecurityWarning)  # EdDSA has a new name; issuers still use the old one
                jws.deserialize_compact(token, self._key, registry=registry)
        except (JoseError, ValueError, TypeError, KeyError):
            return False
        return True


def published_keys(jwks: Json, algorithms: Collection[str] = ("ES256",)) -> Mapping[str, VerifyingKey]:
    """The keys of a JSON Web Key Set that can be used, by their ids; those without an id are no use to anybody."""
    listed: Json = jwks.get("keys") if is_object(jwks) else None
    keys: dict[str, VerifyingKey] = {}
    for jwk in listed[:MOST_KEYS] if is_array(listed) else ():
        if not is_object(jwk):
            continue
        kid: Json = jwk.get("kid")
        algorithm = _algorithm_of(jwk, algorithms)
        if isinstance(kid, str) and kid and algorithm is not None:
            keys.setdefault(kid, VerifyingKey(jwk, algorithm))
    return keys


def present(token: str) -> Presented | None:
    """A token taken apart; None for what is none, or wants to be checked in a way of its own."""
    if len(token) > MOST_BYTES or token.count(".") != 2:
        return None
    head, body, _ = token.split(".")
    header, claims = _object_of(head), _object_of(body)
    if header is None or claims is None or not REFUSED_HEADERS.isdisjoint(header):
        return None
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ")
    if not isinstance(kid, str) or not isinstance(algorithm, str) or not isinstance(kind, str):
        return None
    return Presented(text=token, kid=kid, algorithm=algorithm, kind=kind, claims=claims)


def verified_claims(
    token: str | Presented,
    *,
    keys: Mapping[str, VerifyingKey],
    issuer: str,
    audience: str,
    now: datetime,
    kind: str = ACCESS,
) -> JsonObject | None:
    """What a token says, if it is one of that kind, from that issuer, for that audience, and in its time; else None."""
    shown = present(token) if isinstance(token, str) else token
    if shown is None or shown.kind != kind:
        return None
    claims = shown.claims
    key = keys.get(shown.kid)
    if key is None or shown.algorithm != key.algorithm:
        return None
    if claims.get("iss") != issuer or not _is_for(claims.get("aud"), audience) or not _in_time(claims, now):
        return None
    subject: Json = claims.get("sub")
    if not isinstance(subject, str) or not subject or not ID_TOKEN_CLAIMS.isdisjoint(claims):
        return None
    return claims if key.signed(shown.text) else None


def _is_for(said: Json, audience: str) -> bool:
    return audience in said if is_array(said) else said == audience


def _in_time(claims: JsonObject, now: datetime) -> bool:
    at = now.timestamp()
    expires, issued, begins = _time(claims.get("exp")), _time(claims.get("iat")), _time(claims.get("nbf", 0))
    if expires is None or issued is None or begins is None:
        return False
    return at < expires + LEEWAY_S and begins - LEEWAY_S <= at and issued - AHEAD_S <= at


def _time(value: Json) -> float | None:
    # Compared before it is converted: a number may be too large for that.
    usable = isinstance(value, int | float) and not isinstance(value, bool) and -LATEST < value < LATEST
    return float(value) if usable else None


def _algorithm_of(jwk: JsonObject, allowed: Collection[str]) -> str | None:
    """The one algorithm of a key: its own word for it, else the usual one of its kind; None where it is of no use."""
    if jwk.get("use", "sig") != "sig" or "verify" not in (jwk.get("key_ops") or ("verify",)):
        return None
    kind, curve = jwk.get("kty"), jwk.get("crv", "")
    if not isinstance(kind, str) or not isinstance(curve, str):
        return None
    if kind == "RSA" and len(_bytes_of(jwk.get("n")) or b"") < FEWEST_RSA_BYTES:
        return None
    fitting = [each for each in ALGORITHMS.get((kind, curve), ()) if each in allowed]
    named: Json = jwk.get("alg")
    if named is not None:
        return named if named in fitting else None
    return fitting[0] if fitting else None


def _imported(jwk: JsonObject) -> "ECKey | RSAKey | OKPKey":
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    kinds = {"EC": ECKey, "RSA": RSAKey, "OKP": OKPKey}
    # Only what makes the key: what else it says was judged before.
    return kinds[jwk["kty"]].import_key({name: jwk[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in jwk})


def _object_of(segment: str) -> JsonObject | None:
    raw = _bytes_of(segment)
    if raw is None:
        return None
    try:
        value: Json = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if is_object(value) else None


def _bytes_of(segment: Json) -> bytes | None:
    """What base64url says; None for anything else."""
    if not isinstance(segment, str):
        return None
    try:
        return base64.b64decode(segment + "=" * (-len(segment) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
