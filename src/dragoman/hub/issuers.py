"""Who issues access tokens that count here: the hub itself, and the issuers that its settings name.

The keys of another issuer are fetched where the settings say, never where a token says. They are kept for ten minutes;
a token with an unknown key has them fetched again, at most once a minute. Without its keys nobody of it is let in.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman.model.issuer import TENANT, Issuer
from dragoman.model.json import Json, JsonObject, is_array
from dragoman.ports.clock import Clock
from dragoman.security.jwt_verify import Presented, VerifyingKey, present, published_keys, verified_claims
from dragoman.security.tokens import Access

KEPT_S: Final = 600.0
AGAIN_S: Final = 60.0  # between two fetches for keys that are unknown
FAILED_S: Final = 5.0  # between two fetches that failed
MOST_SCOPES: Final = 50
# The issuer's name for a caller: what can stand in a header, a log and a list.
_SUBJECT: Final = re.compile(r"[!-~]{1,200}")
_TENANT: Final = re.compile(TENANT)
_LOG: Final = logging.getLogger("dragoman.hub")

NO_KEYS: Final[Mapping[str, VerifyingKey]] = {}

Own = Callable[[str, datetime], Access | None]
Fetch = Callable[[str], Awaitable[bytes | None]]  # a small document by its URL; None where it cannot be had
Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


class Issuers:
    """Verifies access tokens, whoever issued them."""

    def __init__(
        self, others: Sequence[Issuer], *, own: Own, audience: str, fetch: Fetch, clock: Clock, spawn: Spawn
    ) -> None:
        self._own = own
        self._others = {
            each.issuer: _Keys(each, each.audience or audience, fetch=fetch, clock=clock, spawn=spawn)
            for each in others
        }

    async def access(self, token: str, now: datetime) -> Access | None:
        """What a token says, once it is verified; None for one that does not count here."""
        own = self._own(token, now)
        if own is not None or not self._others:
            return own
        shown = present(token)
        named: Json = None if shown is None else shown.claims.get("iss")
        issuer = self._others.get(named) if isinstance(named, str) else None
        return None if shown is None or issuer is None else await issuer.access(shown, now)


class _Keys:
    """One issuer, and the keys it publishes."""

    def __init__(self, issuer: Issuer, audience: str, *, fetch: Fetch, clock: Clock, spawn: Spawn) -> None:
        self._issuer = issuer
        self._audience = audience
        self._fetch = fetch
        self._clock = clock
        self._spawn = spawn
        self._keys = NO_KEYS
        self._good_until = float("-inf")  # on the clock's monotonic time, as those below
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def access(self, shown: Presented, now: datetime) -> Access | None:
        """What a token of this issuer says; None if it is none."""
        await self._look(shown.kid)
        issuer = self._issuer
        keys = self._keys if self._clock.monotonic() < self._good_until else NO_KEYS
        claims = verified_claims(
            shown, keys=keys, issuer=issuer.issuer, audience=self._audience, now=now, kind=issuer.typ
        )
        return None if claims is None else _access(issuer, claims)

    async def _look(self, kid: str) -> None:
        """Fetch the keys where that is due; many who come at once wait for the same answer."""
        at = self._clock.monotonic()
        fresh = at < self._good_until
        wait_s = AGAIN_S if fresh else FAILED_S
        if self._asking is None and not (fresh and kid in self._keys) and at - self._asked_at >= wait_s:
            self._asked_at = at
            self._asking = self._spawn(self._ask())
        if self._asking is not None and not (fresh and kid in self._keys):
            await asyncio.wait((self._asking,))

    async def _ask(self) -> None:
        try:
            body = await self._fetch(self._issuer.jwks_uri)
            keys = NO_KEYS if body is None else published_keys(_decoded(body), self._issuer.algs)
            if not keys:
                _LOG.warning("no usable keys of the issuer %s at %s", self._issuer.issuer, self._issuer.jwks_uri)
                return
            self._keys = keys
            self._good_until = self._clock.monotonic() + KEPT_S
        finally:
            self._asking = None


def _decoded(body: bytes) -> Json:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _access(issuer: Issuer, claims: JsonObject) -> Access | None:
    """What an issuer's claims mean here. Its callers are named apart from ours: no id of an agent or key has a `|`."""
    subject: Json = claims["sub"]
    tenant: Json = claims.get(issuer.tenant_claim) if issuer.tenant_claim else issuer.tenant
    scopes = _words(claims.get(issuer.scope_claim))
    if _SUBJECT.fullmatch(subject) is None or not isinstance(tenant, str) or _TENANT.fullmatch(tenant) is None:
        return None
    granted = [scope for scope in scopes if scope in issuer.scopes or not scope.startswith("a2a:")]
    return Access(
        sub=f"{issuer.prefix}|{subject}",
        tid=tenant,
        scope=" ".join(granted[:MOST_SCOPES]),
        exp=claims["exp"],
    )


def _words(value: Json) -> list[str]:
    """The scopes in a claim. A blank parts two of them in a list, too: none may hide behind another."""
    said = value if is_array(value) else [value]
    return [word for each in said if isinstance(each, str) for word in each.split()]
