"""API keys and sealed values: kept as they are given, the store knows no secret."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Row
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.agent import RateLimits
from dragoman.model.budget import Budget
from dragoman.ports.store import StoredKey


class _KeyRow(msgspec.Struct, frozen=True, array_like=True):
    doc: bytes
    revoked: int | None
    used: int | None
    terms: bytes | None


class _Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    limits: RateLimits | None = None
    budget: Budget | None = None


_TERMS: Final = codec.Blob(_Terms)
_NO_TERMS: Final = _Terms()


def add_key(connection: Connection, key: StoredKey) -> None:
    """Keep a new key."""
    row = (key.key_id, key.tenant, codec.to_micros(key.created_at), _micros(key.revoked_at), _micros(key.last_used_at))
    plain = msgspec.structs.replace(key, limits=None, budget=None)
    connection.execute(SQL["add_key"], (*row, codec.pack(plain), _packed(key.limits, key.budget))).fetchall()


def find_key(connection: Connection, key_id: str) -> StoredKey | None:
    """One key, whatever has become of it."""
    rows = connection.execute(SQL["key_by_id"], (key_id,)).fetchall()
    return _key(rows[0]) if rows else None


def list_keys(connection: Connection, tenant: str | None) -> Sequence[StoredKey]:
    """A tenant's keys, or all, newest first."""
    if tenant is None:
        rows = connection.execute(SQL["all_keys"]).fetchall()
    else:
        rows = connection.execute(SQL["keys_of_tenant"], (tenant,)).fetchall()
    return [_key(row) for row in rows]


def revoke_key(connection: Connection, key_id: str, at: datetime) -> bool:
    """End a key; an earlier end stays. False if there is none."""
    return bool(connection.execute(SQL["revoke_key"], (key_id, codec.to_micros(at))).fetchall())


def change_key(connection: Connection, key_id: str, limits: RateLimits | None, budget: Budget | None) -> bool:
    """Set a key's limits and budget. False if there is none."""
    return bool(connection.execute(SQL["change_key"], (key_id, _packed(limits, budget))).fetchall())


def key_used(connection: Connection, key_id: str, at: datetime) -> None:
    """Note a use."""
    connection.execute(SQL["use_key"], (key_id, codec.to_micros(at))).fetchall()


def put_sealed(connection: Connection, name: str, sealed: bytes) -> None:
    """Keep a sealed value."""
    connection.execute(SQL["put_sealed"], (name, sealed)).fetchall()


def get_sealed(connection: Connection, name: str) -> bytes | None:
    """A sealed value."""
    rows = connection.execute(SQL["get_sealed"], (name,)).fetchall()
    return msgspec.convert(rows[0], tuple[bytes])[0] if rows else None


def _key(row: Row) -> StoredKey:
    found = msgspec.convert(row, _KeyRow)
    terms = _NO_TERMS if found.terms is None else _TERMS.unpack(found.terms)
    return msgspec.structs.replace(
        codec.KEY.unpack(found.doc),
        revoked_at=_time(found.revoked),
        last_used_at=_time(found.used),
        limits=terms.limits,
        budget=terms.budget,
    )


def _packed(limits: RateLimits | None, budget: Budget | None) -> bytes | None:
    return None if limits is None and budget is None else codec.pack(_Terms(limits=limits, budget=budget))


def _micros(at: datetime | None) -> int | None:
    return None if at is None else codec.to_micros(at)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else codec.from_micros(micros)
