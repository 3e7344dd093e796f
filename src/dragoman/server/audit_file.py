"""Check the audit in a hub's file, beside it or without it. Like `upkeep.py` it names a backend."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import final

import msgspec

from dragoman.backends.sqlite import audit_check, audit_rows, upkeep
from dragoman.config import Settings
from dragoman.hub.audit import HEADS_LOOKED_AT, Verified
from dragoman.hub.signing_keys import NAME, SigningKeys
from dragoman.model.json import JsonObject
from dragoman.ports.audit import Window
from dragoman.ports.clock import SystemClock
from dragoman.security.audit_heads import signed_up_to
from dragoman.security.private_files import read_private
from dragoman.security.sealed import ROOT_KEY_FILE, CannotOpen, RootKey, Sealer
from dragoman.security.tokens import new_signing_key
from dragoman.server.app import DATABASE
from dragoman.server.pages.audit import check_of


@final
class _Sealed:
    """The sealed values of a file, to be read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def get_sealed(self, name: str) -> bytes | None:
        """A sealed value, if there is one."""
        return upkeep.sealed_value(self._path, name)

    async def put_sealed(self, name: str, sealed: bytes) -> None:
        """Nothing is kept here."""
        raise NotImplementedError(name)


def check_file(settings: Settings, *, since: str | None, until: str | None, rows: bool) -> Iterator[JsonObject]:
    """Every piece of the audit, as the hub's own API tells it. Raises NoDatabase, SecretRefused."""
    path = settings.data / DATABASE
    upkeep.check_schema(path)
    window = Window(since=_time(since), until=_time(until), rows=rows)
    with upkeep.reading(path) as connection:
        found = audit_check.check(connection, window)
        signed, broken = signed_up_to(audit_rows.signed_heads(connection, HEADS_LOOKED_AT), _jwks(settings, path))
        if broken is not None and found.broken is None and since is None and until is None:
            found = msgspec.structs.replace(found, broken=broken, cursor=None)
        while True:
            yield msgspec.to_builtins(check_of(Verified(checked=found, signed=signed)))
            if found.cursor is None or found.broken is not None:
                return
            found = audit_check.check(connection, msgspec.structs.replace(window, cursor=found.cursor))


def _jwks(settings: Settings, path: Path) -> JsonObject:
    """The keys that the hub signs with; none where its root key is not here."""
    text = settings.root_key.reveal() if settings.root_key is not None else read_private(settings.data / ROOT_KEY_FILE)
    if text is None or upkeep.sealed_value(path, NAME) is None:
        return {"keys": []}
    sealer = Sealer(RootKey.from_text(text, source=ROOT_KEY_FILE))
    keys = SigningKeys(vault=_Sealed(path), sealer=sealer, clock=SystemClock(), issuer="", new_key=new_signing_key)
    try:
        asyncio.run(keys.open())
    except CannotOpen:
        return {"keys": []}
    return keys.jwks()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
