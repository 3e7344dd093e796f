"""Sign the cards that the hub serves: once for each card as it is served, then from memory.

A signature is a detached JWS over the canonical JSON (RFC 8785) of a form of the card; which forms there are is the
dialect's business.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, final

import msgspec

from dragoman.model.json import JsonObject
from dragoman.security.tokens import ALGORITHM, Signing, SigningKey

MOST: Final = 2000
_encode = msgspec.json.Encoder().encode


@final
class CardSigner:
    """The hub's signatures on cards. At `most` cards the oldest goes, and is simply signed again when it is shown."""

    __slots__ = ("_jku", "_kept", "_most", "_now", "_signing")

    def __init__(self, signing: Signing, *, jku: str, now: Callable[[], datetime], most: int = MOST) -> None:
        self._signing = signing
        self._jku = jku
        self._now = now
        self._most = most
        self._kept: dict[tuple[str, bytes], bytes] = {}

    @property
    def kid(self) -> str:
        """The key that signs now."""
        return self._signing(self._now()).kid

    def signatures(self, digest: bytes, forms: Callable[[], Sequence[JsonObject]]) -> bytes:
        """The JSON of the `signatures` of the card that has this digest; empty where it has no canonical form."""
        key = self._signing(self._now())
        kept = self._kept.get((key.kid, digest))
        if kept is None:
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[key.kid, digest] = self._signed(key, forms())
        return kept

    def _signed(self, key: SigningKey, forms: Sequence[JsonObject]) -> bytes:
        protected = base64url(_encode({"alg": ALGORITHM, "typ": "JOSE", "kid": key.kid, "jku": self._jku}))
        made: list[JsonObject] = []
        for form in forms:
            payload = canonical(form)
            if payload is None:
                return b""
            signing_input = f"{protected}.{base64url(payload)}".encode()
            made.append({"protected": protected, "signature": base64url(_sign(key, signing_input))})
        return _encode(made)


def canonical(value: JsonObject) -> bytes | None:
    """The one way to write a JSON value (RFC 8785); None for what it has no way to write, such as 2^60."""
    # Imported at the first card, as joserfc is: a hub starts without them.
    import rfc8785

    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError):
        return None


def base64url(data: bytes) -> str:
    """Base64 as JOSE writes it."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _sign(key: SigningKey, signing_input: bytes) -> bytes:
    from joserfc.jwk import ECKey
    from joserfc.jws import JWSRegistry

    members = msgspec.json.decode(key.private_jwk.reveal(), type=dict[str, str])
    return JWSRegistry.algorithms[ALGORITHM].sign(signing_input, ECKey.import_key({**members}))
