"""The keys that the hub signs with, one after the other, and which of them the world may still see.

    key 1  ──signs────────────────────┤· published 1 h longer ·┤
    key 2            · published 1 h before ·├──signs──────────

A key signs for 90 days, or until an administrator has it followed. Where it is known to others, a new one takes its
place at once, and what the old ones signed counts no more. Kept sealed; when each begins to sign is kept with it.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock
from dragoman.ports.store import Vault
from dragoman.security.jwt_verify import VerifyingKey, published_keys, verified_claims
from dragoman.security.sealed import Sealer
from dragoman.security.tokens import Access, SigningKey, new_signing_key, public_jwks, restore_signing_key

NAME: Final = "hub signing key"  # under which they are kept
BEFORE: Final = timedelta(hours=1)  # a key is published so long before it signs
AFTER: Final = timedelta(hours=1)  # and so long after it has signed for the last time
SIGNS_FOR: Final = timedelta(days=90)
LOOK_S: Final = 600.0  # how often it is looked whether anything is due


class HeldKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key, and when it begins to sign."""

    key: SigningKey
    signs_from: datetime


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    jwk: JsonObject
    signs_from: datetime


class SigningKeys:
    """The signing keys of one hub, the one that signs first at the front."""

    def __init__(
        self, *, vault: Vault, sealer: Sealer, clock: Clock, issuer: str, new_key: Callable[[], SigningKey]
    ) -> None:
        self._vault = vault
        self._sealer = sealer
        self._clock = clock
        self._issuer = issuer
        self._new_key = new_key
        self._held: tuple[HeldKey, ...] = ()
        self._verifying: Mapping[str, VerifyingKey] = {}
        self._turn = asyncio.Lock()  # between deciding what to keep and having kept it

    async def open(self) -> None:
        """Read them; the first is made on the first start."""
        now = self._clock.now()
        sealed = await self._vault.get_sealed(NAME)
        if sealed is None:
            await self._keep((HeldKey(key=self._new_key(), signs_from=now),))
            return
        opened = self._sealer.open(sealed, table="sealed", column="value", row=NAME, tenant="")
        self._set(_read(opened, now))

    def signing(self, now: datetime) -> SigningKey:
        """The key that signs now."""
        return self._held[_at(self._held, now)].key

    def held(self) -> tuple[HeldKey, ...]:
        """All of them, in the order in which they sign."""
        return _published(self._held, self._clock.now())

    def jwks(self) -> JsonObject:
        """The key set that anyone may read."""
        return public_jwks([each.key for each in self.held()])

    def access(self, token: str, now: datetime) -> Access | None:
        """What an access token of this hub's says; None if it is none."""
        published = {each.key.kid for each in _published(self._held, now)}
        keys = {kid: key for kid, key in self._verifying.items() if kid in published}
        claims = verified_claims(token, keys=keys, issuer=self._issuer, audience=self._issuer, now=now)
        return None if claims is None else access_of(claims)

    async def rotate(self, *, at_once: bool = False) -> tuple[HeldKey, ...]:
        """Have the key followed by a new one, in an hour; `at_once`: now, and nothing of the old ones counts."""
        async with self._turn:
            now = self._clock.now()
            if at_once:
                await self._keep((HeldKey(key=self._new_key(), signs_from=now),))
            elif self._held[-1].signs_from <= now:
                await self._keep((*_published(self._held, now), HeldKey(key=self._new_key(), signs_from=now + BEFORE)))
        return self.held()

    async def run(self) -> None:
        """Have each key followed in time, as long as the hub runs."""
        while True:
            async with self._turn:
                await self._settle(self._clock.now())
            await self._clock.sleep(LOOK_S)

    async def _settle(self, now: datetime) -> None:
        keys = _published(self._held, now)
        if now >= keys[-1].signs_from + SIGNS_FOR - BEFORE:
            keys = (*keys, HeldKey(key=self._new_key(), signs_from=now + BEFORE))
        if keys != self._held:
            await self._keep(keys)

    async def _keep(self, keys: tuple[HeldKey, ...]) -> None:
        stored = [
            {"jwk": msgspec.json.decode(each.key.private_jwk.reveal()), "signs_from": each.signs_from} for each in keys
        ]
        plain = msgspec.json.encode(stored)
        sealed = self._sealer.seal(plain, table="sealed", column="value", row=NAME, tenant="")
        # On disk first: nobody may see a key that a crash would undo.
        await self._vault.put_sealed(NAME, sealed)
        self._set(keys)

    def _set(self, keys: tuple[HeldKey, ...]) -> None:
        self._held = keys
        self._verifying = published_keys(public_jwks([each.key for each in keys]))


async def open_signing_keys(vault: Vault, sealer: Sealer, clock: Clock, issuer: str) -> SigningKeys:
    """The keys of a hub, read or made."""
    keys = SigningKeys(vault=vault, sealer=sealer, clock=clock, issuer=issuer, new_key=new_signing_key)
    await keys.open()
    return keys


def access_of(claims: JsonObject) -> Access | None:
    """What verified claims say in the words of an access token; None where something is missing."""
    try:
        return msgspec.convert(claims, Access)
    except msgspec.ValidationError:
        return None


def _read(opened: bytes, now: datetime) -> tuple[HeldKey, ...]:
    if opened.lstrip().startswith(b"{"):  # Earlier versions kept one key, by itself.
        return (HeldKey(key=restore_signing_key(Secret(opened.decode())), signs_from=now),)
    return tuple(
        HeldKey(key=restore_signing_key(Secret(msgspec.json.encode(each.jwk).decode())), signs_from=each.signs_from)
        for each in msgspec.json.decode(opened, type=list[_Stored])
    )


def _at(keys: tuple[HeldKey, ...], now: datetime) -> int:
    """Which of the keys signs at a time; the first, where the clock was set back before all of them."""
    return max((index for index, each in enumerate(keys) if each.signs_from <= now), default=0)


def _published(keys: tuple[HeldKey, ...], now: datetime) -> tuple[HeldKey, ...]:
    """Without those that have signed nothing for too long."""
    later = [each.signs_from for each in keys[1:]]
    over = sum(begins + AFTER <= now for begins in later)
    return keys[over:]
