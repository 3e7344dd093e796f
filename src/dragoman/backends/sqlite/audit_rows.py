"""Rows of the audit read back: page by page for who looks at them, and as they are hashed for who checks them."""

from typing import Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.audit import ENTRY_BYTES, Row
from dragoman.backends.sqlite.connection import Connection, Value
from dragoman.backends.sqlite.cursor import from_cursor, to_cursor
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.audit import AuditList, AuditQuery, AuditRow, Head, SignedHead

MAX_PAGE: Final = 1000
_END: Final = 2**62

_ACTS: Final = SQL["acts"]
_ACTS_OF: Final = SQL["acts_of_tenant"]
_COVERING: Final = SQL["covering_rows"]


class StoredRow(msgspec.Struct, frozen=True, array_like=True):
    """A row as it is stored."""

    n: int
    at: int
    tenant: str
    principal: str
    key: str | None
    action: str
    object: str
    outcome: str
    request: str | None
    digest: bytes | None
    covers: bytes | None
    hash: bytes

    def hashed(self) -> Row:
        """The row as it is hashed."""
        return Row(
            action=self.action,
            at=self.at,
            digest=None if self.digest is None else self.digest.hex(),
            key=self.key,
            n=self.n,
            object=self.object,
            outcome=self.outcome,
            principal=self.principal,
            request=self.request,
            tenant=self.tenant,
        )

    def shown(self) -> AuditRow:
        """The row as it is shown."""
        return AuditRow(
            n=self.n,
            at=codec.from_micros(self.at),
            tenant=self.tenant,
            principal=self.principal,
            key_id=self.key,
            action=self.action,
            object=self.object,
            outcome=self.outcome,
            request_id=self.request,
            digest=None if self.digest is None else self.digest.hex(),
            hash=self.hash.hex(),
            covers=len(self.covers or b"") // ENTRY_BYTES,
        )


class _Position(msgspec.Struct, frozen=True):
    before: int


class _Head(msgspec.Struct, frozen=True, array_like=True):
    n: int
    token: str
    hash: bytes | None


def listed(connection: Connection, query: AuditQuery) -> AuditList:
    """A page of rows, newest first. Raises BadParams for a malformed cursor."""
    before = _END if query.cursor is None else min(from_cursor(query.cursor, _Position).before, _END)
    limit = min(max(query.limit, 1), MAX_PAGE)
    params: dict[str, Value] = {
        "before": before,
        "since": 0 if query.since is None else codec.to_micros(query.since),
        "until": _END if query.until is None else codec.to_micros(query.until),
        "limit": limit + 1,
    }
    if query.calls:
        found = connection.execute(_COVERING, params)
    else:
        params |= {"action": query.action, "object": query.object, "principal": query.principal}
        if query.tenant is None:
            found = connection.execute(_ACTS, params)
        else:
            found = connection.execute(_ACTS_OF, {**params, "tenant": query.tenant})
    rows = msgspec.convert(found.fetchall(), list[StoredRow])
    cursor = to_cursor(_Position(before=rows[limit - 1].n)) if len(rows) > limit else None
    return AuditList(rows=tuple(row.shown() for row in rows[:limit]), cursor=cursor)


def head(connection: Connection) -> Head:
    """The chain's last row."""
    rows = connection.execute(SQL["last_audit"]).fetchall()
    n, hash_ = msgspec.convert(rows[0], tuple[int, bytes])
    return Head(n=n, hash=hash_.hex())


def keep_head(connection: Connection, signed: SignedHead) -> None:
    """Keep a signed head."""
    connection.execute(SQL["keep_audit_head"], (signed.n, signed.token)).fetchall()


def signed_heads(connection: Connection, limit: int) -> list[tuple[SignedHead, str | None]]:
    """The newest signed heads, each with the hash that its row has now."""
    rows = connection.execute(SQL["audit_heads"], (limit,)).fetchall()
    return [
        (SignedHead(n=each.n, token=each.token), None if each.hash is None else each.hash.hex())
        for each in msgspec.convert(rows, list[_Head])
    ]
