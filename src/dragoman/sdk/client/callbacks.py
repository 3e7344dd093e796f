"""What a hub posts when a call has ended, checked by whoever receives it.

Whether a callback came before is for the receiver to look up: its `webhook-id` is the same over all deliveries.
"""

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec

from dragoman.model.errors import BadSignature
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.errors import put_into_words
from dragoman.security.signing import SignatureProblem, check

_SIGNED: Final = (b"x-signature", b"webhook-signature")
_PROBLEMS: Final[Mapping[SignatureProblem, tuple[str, str]]] = {
    SignatureProblem.MISSING: ("The callback is not signed", "Calls made with a key are: was this one?"),
    SignatureProblem.INVALID: ("The callback's signature is wrong", "Check the secret, and hand in the raw body."),
    SignatureProblem.OUT_OF_RANGE: ("The callback is too old or too new", "Check both clocks; 300 s are allowed."),
    SignatureProblem.REPLAYED: ("The callback was seen before", "Drop it."),
}

_decode = msgspec.json.Decoder(JsonObject).decode


@final
class Callbacks:
    """Callbacks as their receiver sees them."""

    @staticmethod
    def verify(
        body: bytes,
        headers: Mapping[str, str] | Mapping[bytes, bytes],
        secret: str | Secret | Sequence[str | Secret],
        *,
        clock: Clock | None = None,
    ) -> JsonObject:
        """The callback, when every signature on it is right and not older than 300 s.

        Several secrets: any of them will do, for the time of a rotation. Raises BadSignature.
        """
        given = [secret] if isinstance(secret, str | Secret) else list(secret)
        secrets = [one if isinstance(one, Secret) else Secret(one) for one in given]
        lowered = {_bytes(name).lower(): _bytes(value) for name, value in headers.items()}
        problem = check(lowered, body, secrets=secrets, now=(clock or SystemClock()).now()).problem
        if problem is None and not any(name in lowered for name in _SIGNED):
            problem = SignatureProblem.MISSING
        if problem is not None:
            message, next_step = _PROBLEMS[problem]
            raise put_into_words(BadSignature(message, reason=problem.value), next_step)
        try:
            return _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            error = BadSignature("The callback is no JSON object", reason="not_json")
            raise put_into_words(error, "It was signed with this secret by something that is no hub.") from None


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")
