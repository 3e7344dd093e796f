"""Keys: made, listed, rotated, revoked.

A key and its signing secret are shown once; what is kept is a digest of the one and the other sealed.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from dragoman.hub.acts import act_of
from dragoman.hub.authenticate import ANONYMOUS, OPERATOR
from dragoman.hub.authorize import lacking
from dragoman.hub.signing_secrets import SigningSecrets
from dragoman.model.agent import Agent, RateLimits
from dragoman.model.budget import Budget
from dragoman.model.call import Caller
from dragoman.model.errors import BadParams, NotFound
from dragoman.model.secret import Secret
from dragoman.ports.audit import Act
from dragoman.ports.clock import Clock
from dragoman.ports.store import Keys, StoredKey, Vault
from dragoman.security.keys import digest, new_key
from dragoman.security.scopes import ADMIN, ALL_SCOPES, is_pattern
from dragoman.security.sealed import Sealer
from dragoman.security.signing import new_signing_secret

OVERLAP_S: Final = 24 * 3600
KEY_PREFIX: Final = "key_"  # how callers are named that are a key and no agent
NAMES_OF_CALLERS: Final = frozenset({"admin", OPERATOR.id, ANONYMOUS.id})  # that are neither
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,63}")


class MadeKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was just made; the only time it is seen."""

    stored: StoredKey
    key: str
    signing_secret: str


class KeyRing:
    """The keys of one hub."""

    def __init__(
        self,
        *,
        keys: Keys,
        vault: Vault,
        clock: Clock,
        pepper: bytes,
        sealer: Sealer,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._keys = keys
        self._secrets = SigningSecrets(vault, sealer)
        self._clock = clock
        self._pepper = pepper
        self._sealer = sealer
        self._random_bytes = random_bytes

    async def create(
        self,
        *,
        tenant: str,
        principal: str | None,
        name: str,
        scopes: Sequence[str],
        agent_id: str | None = None,
        allow: Sequence[str] = (),
        expires_at: datetime | None = None,
        limits: RateLimits | None = None,
        budget: Budget | None = None,
        by: Caller | None = None,
        request_id: str | None = None,
        replaces: str | None = None,
    ) -> MadeKey:
        """Make a key. Without a principal it stands for one of its own. Raises BadParams.

        `by`: whose act that is; `replaces`: the key whose successor it is.
        """
        wrong = [scope for scope in scopes if not _is_scope(scope)]
        if wrong or not scopes:
            raise BadParams(
                f"scopes: expected some of {', '.join(ALL_SCOPES)}, or words that agents' cards require",
                errors=[{"path": "scopes", "message": "unknown", "value": wrong}],
            )
        if agent_id is not None and (agent_id in NAMES_OF_CALLERS or agent_id.startswith(KEY_PREFIX)):
            # Whoever had a key of that name would be that caller, and own what is its.
            raise BadParams(f"agent_id: {agent_id} is reserved", errors=[{"path": "agent_id", "message": "reserved"}])
        unusable = [pattern for pattern in allow if not is_pattern(pattern)]
        if unusable:
            raise BadParams(
                "allow: expected patterns of the form target:skill, * for any",
                errors=[{"path": "allow", "message": "not a pattern", "value": unusable}],
            )
        made = new_key(self._random_bytes)
        secret = new_signing_secret(self._random_bytes(32))
        stored = StoredKey(
            key_id=made.keyid,
            digest=digest(self._pepper, made.key),
            tenant=tenant,
            principal=principal or f"{KEY_PREFIX}{made.keyid}",
            name=name,
            scopes=tuple(scopes),
            created_at=self._clock.now(),
            agent_id=agent_id,
            allow=tuple(allow),
            expires_at=expires_at,
            signing_secret=self._seal(secret, made.keyid, tenant),
            limits=limits,
            budget=budget,
        )
        act = None
        if by is not None:
            action = "key.created" if replaces is None else "key.rotated"
            named = made.keyid if replaces is None else f"{replaces} by {made.keyid}"
            act = act_of(by, action, named, request_id, tenant=tenant)
        await self._keys.add_key(stored, act)
        for owner in _owners(stored):
            await self._secrets.add(tenant, owner, stored.key_id, secret, expires_at)
        return MadeKey(stored=stored, key=made.key.reveal(), signing_secret=secret.reveal())

    async def rotate(
        self, caller: Caller, key_id: str, overlap_s: float = OVERLAP_S, request_id: str | None = None
    ) -> MadeKey:
        """Make the successor of a key; the old one is good until the overlap ends. Raises NotFound, BadParams."""
        old = await self.find(caller, key_id)
        made = await self.create(
            tenant=old.tenant,
            principal=old.principal,
            name=old.name,
            scopes=old.scopes,
            agent_id=old.agent_id,
            allow=old.allow,
            expires_at=old.expires_at,
            limits=old.limits,
            budget=old.budget,
            by=caller,
            request_id=request_id,
            replaces=old.key_id,
        )
        await self._end(old, self._clock.now() + timedelta(seconds=overlap_s))
        return made

    async def find(self, caller: Caller, key_id: str) -> StoredKey:
        """A key of the caller's tenant. Raises NotFound."""
        key = await self._keys.find_key(key_id)
        if key is None or (key.tenant != caller.tenant and not caller.admin):
            raise NotFound(f"There is no key {key_id!r}.", key_id=key_id)
        return key

    async def change(
        self,
        caller: Caller,
        key_id: str,
        limits: RateLimits | None,
        budget: Budget | None,
        request_id: str | None = None,
    ) -> StoredKey:
        """Set how often a key may call and what it may spend, from now on. Raises NotFound."""
        key = await self.find(caller, key_id)
        act = act_of(caller, "key.changed", key_id, request_id, tenant=key.tenant)
        await self._keys.change_key(key_id, limits, budget, act)
        return await self.find(caller, key_id)

    async def revoke(self, caller: Caller, key_id: str, request_id: str | None = None) -> StoredKey:
        """End a key now. Raises NotFound."""
        key = await self.find(caller, key_id)
        await self._end(key, self._clock.now(), act_of(caller, "key.revoked", key_id, request_id, tenant=key.tenant))
        return await self.find(caller, key_id)

    async def list(self, caller: Caller) -> Sequence[StoredKey]:
        """The keys the caller administers."""
        return await self._keys.list_keys(None if caller.admin else caller.tenant)

    async def agent_secret(self, agent: Agent) -> Secret | None:
        """The secret that an agent checks the hub's signatures with: that of its newest key."""
        return await self._secrets.newest(agent.tenant, agent.id, self._clock.now())

    async def caller_secret(self, tenant: str, caller_id: str) -> Secret | None:
        """The secret that a caller checks the hub's callbacks with: that of its newest key."""
        newest = await self._secrets.newest(tenant, caller_id, self._clock.now())
        return newest if newest is not None else await self._own_secret(caller_id)

    async def secrets(self, tenant: str, caller_id: str) -> tuple[Secret, ...]:
        """The secrets that a caller's signatures may be made with now: several while one of its keys is rotated."""
        live = await self._secrets.live(tenant, caller_id, self._clock.now())
        if live:
            return live
        own = await self._own_secret(caller_id)
        return () if own is None else (own,)

    async def _own_secret(self, caller_id: str) -> Secret | None:
        """The secret of a key that an earlier version made: it was kept with the key alone."""
        if not caller_id.startswith(KEY_PREFIX):
            return None
        key = await self._keys.find_key(caller_id.removeprefix(KEY_PREFIX))
        if key is None or key.signing_secret is None:
            return None
        if key.revoked_at is not None and key.revoked_at <= self._clock.now():
            return None
        opened = self._sealer.open(
            key.signing_secret, table="key", column="signing_secret", row=key.key_id, tenant=key.tenant
        )
        return Secret(opened.decode())

    async def _end(self, key: StoredKey, at: datetime, act: Act | None = None) -> None:
        await self._keys.revoke_key(key.key_id, at, act)
        for owner in _owners(key):
            await self._secrets.end(key.tenant, owner, key.key_id, at)

    def _seal(self, secret: Secret, key_id: str, tenant: str) -> bytes:
        return self._sealer.seal(
            secret.reveal().encode(), table="key", column="signing_secret", row=key_id, tenant=tenant
        )


def _owners(key: StoredKey) -> set[str]:
    """Whose secret a key's is: its principal's, and that of the agent that it stands for."""
    return {key.principal} if key.agent_id is None else {key.principal, key.agent_id}


def _is_scope(scope: str) -> bool:
    """One of the hub's own, or any other word: cards may require their own."""
    return scope in ALL_SCOPES if scope.startswith("a2a:") else _WORD.fullmatch(scope) is not None


def require_admin(caller: Caller) -> None:
    """Let only administrators pass. Raises NotAuthorized."""
    if ADMIN not in caller.scopes:
        raise lacking(caller, (ADMIN,))
