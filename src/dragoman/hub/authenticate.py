"""One authentication for every dialect: a credential becomes a Caller, or a refusal.

A verified credential is remembered for a minute under the SHA-256 of the header it came in; a revoked one is forgotten
at once. The key itself is never kept, and never compared in a way that tells how much of it was right. An agent that
connected shows the token that it got for that: it counts for its time, and no longer than the key that it came with.
"""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from dragoman.model.call import Caller
from dragoman.model.errors import NotAuthenticated, RateLimited
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock
from dragoman.ports.store import Keys, StoredKey
from dragoman.security.keys import digest, parse_key
from dragoman.security.scopes import ALL_SCOPES

REMEMBERED_S: Final = 60.0
REMEMBERED: Final = 10_000
FAILURES_PER_MINUTE: Final = 20
DEFAULT_TENANT: Final = "default"

OPERATOR: Final = Caller(tenant=DEFAULT_TENANT, id="operator", scopes=frozenset(ALL_SCOPES), admin=True)
ANONYMOUS: Final = Caller(tenant=DEFAULT_TENANT, id="anonymous", anonymous=True)
_NOBODY: Final = bytes(32)

Verify = Callable[[str, datetime], JsonObject | None]  # what a token of this hub's says; None if it is none


class Authenticator:
    """Turns credentials into callers; holds what it has verified lately."""

    def __init__(
        self,
        *,
        keys: Keys,
        clock: Clock,
        pepper: bytes,
        admin_token: Secret | None,
        trusting: bool,
        verify: Verify,
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._pepper = pepper
        self._admin = None if admin_token is None else sha256(admin_token.reveal().encode()).digest()
        self._trusting = trusting
        self._verify = verify
        self._known: dict[bytes, tuple[Caller, float]] = {}
        self._failures: dict[str, tuple[int, float]] = {}

    def remembered(self, authorization: bytes | None, api_key: bytes | None) -> Caller | None:
        """Who sends this, if it is known without a look at the store: seen within the last minute, or trusted."""
        if self._trusting:
            return OPERATOR
        if authorization is None or api_key is not None:
            return None
        known = self._known.get(sha256(authorization).digest())
        return known[0] if known is not None and known[1] > self._clock.monotonic() else None

    async def caller(self, authorization: bytes | None, api_key: bytes | None, address: str) -> Caller:
        """Who sends this.

        Raises NotAuthenticated, RateLimited.
        """
        if self._trusting:
            return OPERATOR
        if api_key is None:
            if authorization is None:
                return ANONYMOUS
            return await self._verified(authorization, _bearer(authorization), address)
        caller = await self._verified(api_key, api_key.strip(), address)
        if authorization is not None and caller != await self._verified(authorization, _bearer(authorization), address):
            raise NotAuthenticated("The request has two credentials of different callers.", reason="two_credentials")
        return caller

    def forget(self, key_id: str | None = None) -> None:
        """Forget what was verified: all, or what belongs to one key."""
        self._known = {
            seen: known for seen, known in self._known.items() if key_id is not None and known[0].key_id != key_id
        }

    async def _verified(self, header: bytes, credential: bytes, address: str) -> Caller:
        seen = sha256(header).digest()
        known = self._known.get(seen)
        now = self._clock.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        self._refuse_guessing(address, now)
        caller, until = await self._look_up(credential, now)
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[seen] = (caller, until)
        return caller

    async def _look_up(self, credential: bytes, now: float) -> tuple[Caller, float]:
        if self._admin is not None and compare_digest(sha256(credential).digest(), self._admin):
            return Caller(
                tenant=DEFAULT_TENANT, id="admin", scopes=frozenset(ALL_SCOPES), admin=True
            ), now + REMEMBERED_S
        text = credential.decode("ascii", "replace")
        if text.count(".") == 2:
            return await self._agent(text, now)
        key_id = parse_key(text)
        key = None if key_id is None else await self._keys.find_key(key_id)
        # An unknown key id costs the same comparison as a known one.
        right = compare_digest(digest(self._pepper, Secret(text)), key.digest if key is not None else _NOBODY)
        if key is None or not right:
            raise NotAuthenticated("The key is not valid.", reason="unknown_key")
        wall = self._clock.now()
        _refuse_over(key, wall)
        await self._keys.key_used(key.key_id, wall)
        left_s = REMEMBERED_S if key.expires_at is None else (key.expires_at - wall).total_seconds()
        return caller_of(key), now + min(REMEMBERED_S, left_s)

    async def _agent(self, token: str, now: float) -> tuple[Caller, float]:
        """The agent that a token of this hub's stands for."""
        wall = self._clock.now()
        claims = self._verify(token, wall)
        if claims is None:
            raise NotAuthenticated("The token is not valid, or no longer.", reason="unknown_token")
        key_id: str | None = claims.get("key")
        if key_id is not None:
            key = await self._keys.find_key(key_id)
            if key is None:
                raise NotAuthenticated("The key was revoked.", reason="revoked")
            _refuse_over(key, wall)
        agent_id: str = claims["sub"]
        caller = Caller(
            tenant=claims["tenant"],
            id=agent_id,
            agent_id=agent_id,
            scopes=frozenset(claims["scope"].split()),
            key_id=key_id,
            allow=tuple(claims.get("allow", ())),
        )
        return caller, now + min(REMEMBERED_S, claims["exp"] - wall.timestamp())

    def _refuse_guessing(self, address: str, now: float) -> None:
        count, since = self._failures.get(address, (0, now))
        if count >= FAILURES_PER_MINUTE and now - since < 60.0:
            raise RateLimited(
                "Too many wrong credentials from this address.", retry_after_s=max(1, round(60 - (now - since)))
            )

    def failed(self, address: str) -> None:
        """Count a wrong credential against its address."""
        now = self._clock.monotonic()
        count, since = self._failures.get(address, (0, now))
        if now - since >= 60.0:
            count, since = 0, now
        if len(self._failures) >= REMEMBERED:
            self._failures.clear()
        self._failures[address] = (count + 1, since)


def caller_of(key: StoredKey) -> Caller:
    """The caller that a key stands for."""
    return Caller(
        tenant=key.tenant,
        id=key.principal,
        agent_id=key.agent_id,
        scopes=frozenset(key.scopes),
        key_id=key.key_id,
        allow=key.allow,
    )


def _refuse_over(key: StoredKey, wall: datetime) -> None:
    if key.revoked_at is not None and key.revoked_at <= wall:
        raise NotAuthenticated("The key was revoked.", reason="revoked")
    if key.expires_at is not None and key.expires_at <= wall:
        raise NotAuthenticated("The key has expired.", reason="expired")


def _bearer(header: bytes) -> bytes:
    scheme, _, value = header.partition(b" ")
    if scheme.lower() != b"bearer" or not value:
        raise NotAuthenticated("Send Authorization: Bearer followed by a key.", reason="not_bearer")
    return value.strip()
