"""Signing secrets by whom they belong to: the newest first, and those that a rotation still lets count.

Kept sealed, one value for each caller or agent. A secret ends with its key: at once where that is revoked, with the
overlap where it is rotated. At most `MOST` are kept of one caller; the oldest goes.
"""

import asyncio
from datetime import datetime
from typing import Final

import msgspec

from dragoman.model.secret import Secret
from dragoman.ports.store import Vault
from dragoman.security.sealed import Sealer
from dragoman.security.signing import PREFIX

MOST: Final = 8


class _Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One secret, the key that it came with, and when it stops to count."""

    key_id: str
    secret: str
    until: datetime | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_Kept]).decode


class SigningSecrets:
    """The secrets of callers and agents, sealed."""

    def __init__(self, vault: Vault, sealer: Sealer) -> None:
        self._vault = vault
        self._sealer = sealer
        self._turn = asyncio.Lock()  # what is read, changed and written back is one step

    async def add(self, tenant: str, owner: str, key_id: str, secret: Secret, until: datetime | None) -> None:
        """A new key brought a new secret: from now on the first of its owner's."""
        made = _Kept(key_id=key_id, secret=secret.reveal(), until=until)
        async with self._turn:
            await self._put(tenant, owner, [made, *await self._kept(tenant, owner)][:MOST])

    async def end(self, tenant: str, owner: str, key_id: str, at: datetime) -> None:
        """The secret of that key counts until then; an earlier end stays."""
        async with self._turn:
            kept = await self._kept(tenant, owner)
            ended = [_ended(each, at) if each.key_id == key_id else each for each in kept]
            if ended != kept:
                await self._put(tenant, owner, ended)

    async def live(self, tenant: str, owner: str, now: datetime) -> tuple[Secret, ...]:
        """The secrets that count now, newest first."""
        kept = await self._kept(tenant, owner)
        return tuple(Secret(each.secret) for each in kept if each.until is None or each.until > now)

    async def newest(self, tenant: str, owner: str, now: datetime) -> Secret | None:
        """What to sign with for this owner: the newest that counts, else the last that did."""
        kept = await self._kept(tenant, owner)
        live = next((each for each in kept if each.until is None or each.until > now), None)
        best = live or next(iter(kept), None)
        return None if best is None else Secret(best.secret)

    async def _kept(self, tenant: str, owner: str) -> list[_Kept]:
        name = _name(tenant, owner)
        sealed = await self._vault.get_sealed(name)
        if sealed is None:
            return []
        opened = self._sealer.open(sealed, table="sealed", column="value", row=name, tenant=tenant)
        if opened.startswith(PREFIX.encode()):
            return [_Kept(key_id="", secret=opened.decode())]  # as earlier versions kept an agent's
        return _decode(opened)

    async def _put(self, tenant: str, owner: str, kept: list[_Kept]) -> None:
        name = _name(tenant, owner)
        sealed = self._sealer.seal(_encode(kept), table="sealed", column="value", row=name, tenant=tenant)
        await self._vault.put_sealed(name, sealed)


def _ended(kept: _Kept, at: datetime) -> _Kept:
    until = at if kept.until is None else min(at, kept.until)
    return msgspec.structs.replace(kept, until=until)


def _name(tenant: str, owner: str) -> str:
    return f"signing secret:{tenant}:{owner}"
