"""Signed requests: every signature that is there must be right, of now, and never seen before.

One check for all dialects, on the raw body, before anything is asked of the hub. What was seen is on disk before the
request has any effect, so neither a restart nor another process of the same hub takes it twice. A request that was
refused for another reason has been seen, too: who tries again signs anew.

An unsigned request is none of this file's business: only where it goes says whether it had to be signed (admission.py).
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadSignature
from dragoman.model.http import Headers
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock
from dragoman.ports.store import Mark, SeenMarks
from dragoman.security.signing import REMEMBER_S, SignatureProblem, check

_KEPT: Final = timedelta(seconds=REMEMBER_S)
_WORDS: Final[Mapping[SignatureProblem, str]] = {
    SignatureProblem.MISSING: "X-Signature does not cover the time: sign with webhook-id, -timestamp and -signature.",
    SignatureProblem.INVALID: "The signature is not that of this body under this caller's signing secret.",
    SignatureProblem.OUT_OF_RANGE: "The signature's time is more than 300 s away from the hub's.",
    SignatureProblem.REPLAYED: "This signature was used before: sign each request anew.",
}

SecretsOf = Callable[[str, str], Awaitable[tuple[Secret, ...]]]  # by tenant and caller


class Signatures:
    """Checks signed requests."""

    def __init__(self, *, seen: SeenMarks, secrets: SecretsOf, clock: Clock, strict: bool, knows_all: bool) -> None:
        self._seen = seen
        self._secrets = secrets
        self._clock = clock
        self._strict = strict  # the form that does not cover the time is refused
        # False where nobody is asked who he is, and at the server of one agent: its hub signs with a secret of theirs.
        self._knows_all = knows_all

    async def checked(self, caller: Caller, headers: Headers, body: bytes, arrival: Arrival) -> Arrival:
        """The arrival of a signed request, marked as signed where the signature covers its time, too.

        Raises BadSignature.
        """
        secrets = await self._secrets(caller.tenant, caller.id)
        if not secrets and not self._knows_all:
            return arrival
        now = self._clock.now()
        outcome = check(headers, body, secrets=secrets, now=now, strict=self._strict)
        if outcome.problem is not None:
            raise refused(outcome.problem)
        marks = [
            Mark(
                tenant=caller.tenant,
                caller=caller.id,
                digest=sha256(mark.encode("latin-1")).digest(),
                expires_at=now + _KEPT,
            )
            for mark in outcome.marks
        ]
        if not await self._seen.see(marks):
            raise refused(SignatureProblem.REPLAYED)
        return msgspec.structs.replace(arrival, signed=True) if outcome.covers_time else arrival


def refused(problem: SignatureProblem) -> BadSignature:
    """The refusal of a signature, with its reason."""
    return BadSignature(_WORDS[problem], reason=problem.value)
