"""The audit: the heads that the hub signs every hour, and looks at it for administrators."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.hub.acts import act_of_hub
from dragoman.hub.key_ring import require_admin
from dragoman.model.call import Caller
from dragoman.model.errors import NotAuthorized
from dragoman.model.json import Json, JsonObject
from dragoman.ports.audit import Audit, AuditList, AuditQuery, Broken, Checked, Window
from dragoman.ports.clock import Clock
from dragoman.security.audit_heads import HeadClaims, sign_head, signed_up_to
from dragoman.security.tokens import SigningKey

LOG: Final = logging.getLogger("dragoman.audit")
HEADS_S: Final = 3600.0
HEADS_LOOKED_AT: Final = 100
SETTINGS: Final = "settings.loaded"


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the audit that was checked; with the first one, how far the hub's signature reaches."""

    checked: Checked
    signed: HeadClaims | None = None

    @property
    def broken(self) -> Broken | None:
        """The first thing that is wrong."""
        return self.checked.broken


class AuditDesk:
    """What an administrator may ask of the audit."""

    def __init__(self, *, store: Audit, jwks: Callable[[], JsonObject]) -> None:
        self._store = store
        self._jwks = jwks

    async def list(self, caller: Caller, query: AuditQuery) -> AuditList:
        """A page of acts: of the caller's tenant, or of all for the hub's administrator. Raises NotAuthorized."""
        require_admin(caller)
        if caller.admin:
            return await self._store.list_audit(query)
        if query.calls or query.tenant not in (None, caller.tenant):
            raise NotAuthorized("This key sees the acts of its own tenant.")
        return await self._store.list_audit(msgspec.structs.replace(query, tenant=caller.tenant))

    async def verify(self, caller: Caller, window: Window) -> Verified:
        """Check the next piece. Raises NotAuthorized: the chain is of all tenants, so only the hub's may do this."""
        require_admin(caller)
        if not caller.admin:
            raise NotAuthorized("The audit is the whole hub's: only its own administrator may check it.")
        if window.cursor is not None:
            return Verified(checked=await self._store.check_audit(window))
        signed, broken = signed_up_to(await self._store.signed_heads(HEADS_LOOKED_AT), self._jwks())
        checked = await self._store.check_audit(window)
        if broken is not None and checked.broken is None and window.since is None and window.until is None:
            checked = msgspec.structs.replace(checked, broken=broken, cursor=None)
        return Verified(checked=checked, signed=signed)


async def note_settings(store: Audit, shown: Mapping[str, Json], version: str) -> None:
    """Note with which settings a hub starts, where they are others than last time; secrets are masked in them."""
    digest = sha256(msgspec.json.encode(shown, order="sorted")).digest()
    last = await store.list_audit(AuditQuery(action=SETTINGS, limit=1))
    if not last.rows or last.rows[0].digest != digest.hex():
        await store.note(act_of_hub(SETTINGS, f"dragoman {version}", digest=digest))


class Heads:
    """Signs how far the chain goes, every hour, and logs it: a copy that nobody who changes the file can change."""

    def __init__(self, *, store: Audit, clock: Clock, signing: Callable[[datetime], SigningKey], issuer: str) -> None:
        self._store = store
        self._clock = clock
        self._signing = signing
        self._issuer = issuer

    async def run(self) -> None:
        """Sign as long as the hub runs, beginning now."""
        while True:
            await self.sign()
            await self._clock.sleep(HEADS_S)

    async def sign(self) -> None:
        """Sign the head that there is now."""
        now = self._clock.now()
        head = await self._store.audit_head()
        signed = sign_head(self._signing(now), head, issuer=self._issuer, now=now)
        await self._store.keep_head(signed)
        LOG.info("audit head", extra={"fields": {"row": head.n, "hash": head.hash, "signature": signed.token}})
