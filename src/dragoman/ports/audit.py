"""The audit: what administrators did, and that nobody changed afterwards what was stored of calls.

Every row has a number, a time and the hash of all before it, so none can be changed, taken out or put in unseen. An act
is a row of its own, in the act's own commit. Calls have one row per commit: the digest of the digests of the tasks that
it wrote. Hashes alone do not show that the end was cut off: signed heads, which are logged as well, do.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

CALLS_WRITTEN: Final = "calls.written"  # the action of rows that cover what a commit wrote of calls
BEGUN: Final = "audit.begun"  # the action of the first row
TRIMMED: Final = "audit.trimmed"  # the action of the row that says up to where the oldest rows were removed


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did, to be noted in the same commit: by which key, to what, on which request."""

    tenant: str
    principal: str
    action: str
    object: str
    key_id: str | None = None
    outcome: str = "done"
    request_id: str | None = None
    digest: bytes | None = None


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row as it is shown; `covers` is how many tasks its digest stands for."""

    n: int
    at: datetime
    tenant: str
    principal: str
    key_id: str | None
    action: str
    object: str
    outcome: str
    request_id: str | None
    digest: str | None
    hash: str
    covers: int


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows are asked for, newest first; without a tenant those of all. `calls`: those that cover calls, instead
    of acts."""

    tenant: str | None = None
    principal: str | None = None
    action: str | None = None
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    calls: bool = False
    limit: int = 50
    cursor: str | None = None


class AuditList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of rows."""

    rows: tuple[AuditRow, ...]
    cursor: str | None


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """How far the chain goes: its last row's number and hash."""

    n: int
    hash: str


class SignedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A head that the hub put its signature to; `token` is the signature, with what it says."""

    n: int
    token: str


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What of the chain is to be checked: all, or the rows of some time. `rows`: show them. `cursor`: go on there."""

    since: datetime | None = None
    until: datetime | None = None
    rows: bool = False
    cursor: str | None = None


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that is wrong: in which row of the audit, in which call, and what."""

    row: int | None
    call_id: str | None
    reason: str


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the audit that was checked: how far of how much, and whether it goes on (`cursor`).

    `unvouched`: calls of this piece that were written before there was an audit, or of which only rows told that were
    removed when their time was over. `rows` are what was checked, for who wants to keep them. `since`: from when on the
    audit vouches for calls.
    """

    done: int
    total: int
    acts: int = 0
    calls: int = 0
    unvouched: int = 0
    since: datetime | None = None
    broken: Broken | None = None
    cursor: str | None = None
    rows: tuple[AuditRow, ...] = ()


class Audit(Protocol):
    """The audit, beside what the other commands write into it."""

    async def note(self, act: Act) -> None:
        """Note an act that writes nothing else."""
        ...

    async def list_audit(self, query: AuditQuery) -> AuditList:
        """A page of rows. Raises BadParams for a malformed cursor."""
        ...

    async def check_audit(self, window: Window) -> Checked:
        """Check the next piece of the chain and of what it covers. Raises BadParams for a malformed cursor."""
        ...

    async def audit_head(self) -> Head:
        """The chain's last row."""
        ...

    async def keep_head(self, head: SignedHead) -> None:
        """Keep a signed head."""
        ...

    async def signed_heads(self, limit: int) -> Sequence[tuple[SignedHead, str | None]]:
        """The newest signed heads, each with the hash that its row has now; none where the row is gone."""
        ...


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the tenants take of the hub now: calls that are open, and bytes of calls that are stored."""

    open_calls: Mapping[str, int]
    stored_bytes: Mapping[str, int]
