"""One authentication for every dialect: a credential becomes a Caller, or a refusal.

A verified credential is remembered for a minute under the BLAKE2 of the header it came in; a revoked one is forgotten
at once. The key itself is never kept, and never compared in a way that tells how much of it was right. An access token
counts for its time, no longer than the key that it was got with, and for no more than that key may do.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import Final

from dragoman.model.call import Caller
from dragoman.model.errors import NotAuthenticated, RateLimited
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock
from dragoman.ports.store import Keys, StoredKey
from dragoman.security.keys import digest, parse_key
from dragoman.security.scopes import ALL_SCOPES
from dragoman.security.tokens import Access

REMEMBERED_S: Final = 60.0
REMEMBERED: Final = 10_000
FAILURES_PER_MINUTE: Final = 20
DEFAULT_TENANT: Final = "default"

OPERATOR: Final = Caller(tenant=DEFAULT_TENANT, id="operator", scopes=frozenset(ALL_SCOPES), admin=True)
ANONYMOUS: Final = Caller(tenant=DEFAULT_TENANT, id="anonymous", anonymous=True)
_NOBODY: Final = bytes(32)

Verify = Callable[[str, datetime], Awaitable[Access | None]]  # what an access token says; None if it is none


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
        known = self._known.get(blake2b(authorization).digest())
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
        if api_key.count(b".") == 2 and not self._is_admin(api_key.strip()):
            raise NotAuthenticated("Send a token as Authorization: Bearer.", reason="not_a_key")
        caller = await self._verified(api_key, api_key.strip(), address)
        if authorization is not None and caller != await self._verified(authorization, _bearer(authorization), address):
            raise NotAuthenticated("The request has two credentials of different callers.", reason="two_credentials")
        return caller

    async def client(self, client_id: str, secret: str, address: str) -> StoredKey:
        """The key of a client that shows it to get a token: its id, and the whole of it as the secret.

        Raises NotAuthenticated, RateLimited.
        """
        self._refuse_guessing(address, self._clock.monotonic())
        try:
            key = await self._key(secret)
            if key.key_id != client_id:
                raise NotAuthenticated("The key is not this client's.", reason="unknown_key")
        except NotAuthenticated:
            self.failed(address)
            raise
        return key

    def forget(self, key_id: str | None = None) -> None:
        """Forget what was verified: all, or what belongs to one key."""
        self._known = {
            seen: known for seen, known in self._known.items() if key_id is not None and known[0].key_id != key_id
        }

    async def _verified(self, header: bytes, credential: bytes, address: str) -> Caller:
        seen = blake2b(header).digest()
        known = self._known.get(seen)
        now = self._clock.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        self._refuse_guessing(address, now)
        memory = self._known
        caller, until = await self._look_up(credential, now)
        # If something was forgotten meanwhile, this may have been it: it is looked at again next time.
        if memory is self._known:
            if len(memory) >= REMEMBERED:
                memory.clear()
            memory[seen] = (caller, until)
        return caller

    async def _look_up(self, credential: bytes, now: float) -> tuple[Caller, float]:
        if self._is_admin(credential):
            return Caller(
                tenant=DEFAULT_TENANT, id="admin", scopes=frozenset(ALL_SCOPES), admin=True
            ), now + REMEMBERED_S
        text = credential.decode("ascii", "replace")
        if text.count(".") == 2:
            return await self._bearer_of(text, now)
        key = await self._key(text)
        return caller_of(key), now + self._left_s(key)

    async def _key(self, text: str) -> StoredKey:
        """The key that was shown, which is noted as used. Raises NotAuthenticated."""
        key_id = parse_key(text)
        key = None if key_id is None else await self._keys.find_key(key_id)
        # An unknown key id costs the same comparison as a known one.
        right = compare_digest(digest(self._pepper, Secret(text)), key.digest if key is not None else _NOBODY)
        if key is None or not right:
            raise NotAuthenticated("The key is not valid.", reason="unknown_key")
        wall = self._clock.now()
        _refuse_over(key, wall)
        await self._keys.key_used(key.key_id, wall)
        return key

    async def _bearer_of(self, token: str, now: float) -> tuple[Caller, float]:
        """Whom an access token stands for."""
        wall = self._clock.now()
        access = await self._verify(token, wall)
        if access is None:
            raise NotAuthenticated("The token is not valid, or no longer.", reason="unknown_token")
        scopes, allow, left_s = frozenset(access.scope.split()), (), access.exp - wall.timestamp()
        limits, budget = None, None
        if access.client_id is not None:
            key = await self._keys.find_key(access.client_id)
            if key is None:
                raise NotAuthenticated("The key was revoked.", reason="revoked")
            _refuse_over(key, wall)
            scopes, allow, left_s = scopes & frozenset(key.scopes), key.allow, min(left_s, self._left_s(key))
            limits, budget = key.limits, key.budget
        caller = Caller(
            tenant=access.tid,
            id=access.sub,
            agent_id=access.agent_id,
            scopes=scopes,
            key_id=access.client_id,
            allow=allow,
            limits=limits,
            budget=budget,
        )
        return caller, now + min(REMEMBERED_S, left_s)

    def _left_s(self, key: StoredKey) -> float:
        """How long a key that was just verified may be remembered."""
        ends = [at for at in (key.expires_at, key.revoked_at) if at is not None]
        return min([REMEMBERED_S, *((at - self._clock.now()).total_seconds() for at in ends)])

    def _is_admin(self, credential: bytes) -> bool:
        return self._admin is not None and compare_digest(sha256(credential).digest(), self._admin)

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
        limits=key.limits,
        budget=key.budget,
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
