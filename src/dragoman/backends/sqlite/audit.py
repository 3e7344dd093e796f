"""The audit as it is written: what one commit adds to the chain, and the digest of a task.

    row n      hash n = SHA-256(hash n-1, RFC 8785 of the row)
    calls      digest = SHA-256 of `covers`: number and digest of each task that the commit wrote
    task       digest = SHA-256 of the row that is written anyway; one with events has their sums in place of its blob;
               a task that was removed when its time was over has 32 zeros

    events     e = SHA-256(e before, key, body), so a step adds to it without reading the ones before

Rows are written by the writer's thread alone, at the end of its transaction; where the chain stands is known after the
commit, and read anew after a failure.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Value, number
from dragoman.backends.sqlite.counted import ROW_BYTES
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.audit import BEGUN, CALLS_WRITTEN, TRIMMED, Act

DIGEST_BYTES: Final = 32
NUMBER_BYTES: Final = 8
ENTRY_BYTES: Final = NUMBER_BYTES + DIGEST_BYTES  # a task in `covers`
NOTHING: Final = bytes(DIGEST_BYTES)
EVENTS_AT_ONCE: Final = 500

_ADD_ACT: Final = SQL["add_act"]
_ADD_COVERS: Final = SQL["add_covers"]
_TIP: Final = SQL["set_audit_tip"]
_LAST: Final = SQL["last_audit"]
_SET_DIGEST: Final = SQL["set_task_digest"]
_SET_BASE: Final = SQL["set_audit_base"]
_BASE: Final = SQL["audit_base"]
_TASK: Final = SQL["audited_task"]
_EVENTS: Final = SQL["events_between"]

_pack_into = msgspec.msgpack.Encoder().encode_into
_encode = msgspec.json.Encoder().encode


class Link(msgspec.Struct, frozen=True, array_like=True):
    """Where the chain stands: the number and the hash of its last row."""

    n: int
    hash: bytes


class Base(msgspec.Struct, frozen=True, array_like=True):
    """Where the chain begins: after the last row that was removed. `calls`: the highest number those rows covered,
    `noted_by`: the act that says so."""

    n: int
    hash: bytes
    calls: int
    noted_by: int = 0

    def act(self) -> Act:
        """What the audit says of it."""
        return Act(tenant="", principal="hub", action=TRIMMED, object=f"rows up to {self.n}", digest=self.hash)


class Row(msgspec.Struct, frozen=True):
    """A row as it is hashed: its members are in the order of RFC 8785, and of kinds that JSON has one spelling for."""

    action: str
    at: int
    digest: str | None
    key: str | None
    n: int
    object: str
    outcome: str
    principal: str
    request: str | None
    tenant: str

    def hash_after(self, before: bytes) -> bytes:
        """The hash of this row, after the one before it."""
        return sha256(before + _encode(self)).digest()


class TaskRow(msgspec.Struct, frozen=True, array_like=True):
    """A task's row, all of it: its head, what it is found by, its blobs, and what the audit knows of it."""

    number: int
    id: str
    tenant: str
    caller: str
    context: str
    state: int
    state_at: int
    last_seq: int
    agent: str
    skill: str
    dialect: str
    trace: str
    parent: str | None
    doc: bytes | None
    log: bytes | None
    digest: bytes | None
    sums: bytes | None
    covered_by: int | None
    forgotten: int | None


class Reckoned(msgspec.Struct, frozen=True):
    """The digest of a task as it is stored now, and the sums that it is made of where it has events."""

    digest: bytes
    sums: bytes | None


@final
class Noted:
    """What one commit adds to the audit. Its calls are covered by row `n`, if it writes any; its acts follow."""

    __slots__ = ("_changed", "acts", "base", "covers", "link", "n", "open", "removed", "stored", "traced")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.n = link.n + 1
        self.acts: list[Act] = []
        self.covers: dict[int, bytes] = {}  # tasks that it wrote, by their numbers, and their digests
        self.stored: dict[str, int] = {}  # by how much the calls of each tenant grow, in bytes
        self.open: dict[str, int] = {}  # by how many its open calls
        self.base: Base | None = None  # where the chain begins from now on
        self.traced: list[tuple[int, str]] = []  # calls that it wrote first, and their traces
        self.removed: list[int] = []  # calls that it removed
        self._changed: dict[int, Reckoned] = {}

    def wrote(self, number_: int, digest: bytes, tenant: str, size: int) -> None:
        """A task was written, with its digest."""
        self.covers[number_] = digest
        self.stored[tenant] = self.stored.get(tenant, 0) + size

    def opened(self, tenant: str, calls: int) -> None:
        """So many more calls of a tenant are open."""
        self.open[tenant] = self.open.get(tenant, 0) + calls

    def changed(self, number_: int, reckoned: Reckoned, tenant: str, size: int) -> None:
        """A task has changed; its row gets the new digest at the end."""
        self._changed[number_] = reckoned
        self.wrote(number_, reckoned.digest, tenant, size)

    def sums_of(self, number_: int) -> bytes | None:
        """The sums of a task that this commit has changed already."""
        known = self._changed.get(number_)
        return None if known is None else known.sums

    def write(self, connection: Connection, now: Callable[[], int]) -> int:
        """Write the rows; about how many bytes that is."""
        if not self.covers and not self.acts and self.base is None:
            return 0
        at, size = now(), 0
        if self._changed:
            changed = self._changed.items()
            connection.executemany(_SET_DIGEST, [(key, each.digest, each.sums, self.n) for key, each in changed])
        if self.covers:
            size += self._add_covers(connection, at) + ROW_BYTES
        for act in self.acts:
            self._add(connection, act, at)
            size += ROW_BYTES
        if self.base is not None:
            self._add(connection, self.base.act(), at)
            connection.execute(_SET_BASE, (self.base.n, self.base.hash, self.base.calls, self.link.n)).fetchall()
        if self.acts or self.base is not None:
            connection.execute(_TIP, (self.link.n, self.link.hash)).fetchall()
        return size

    def _add_covers(self, connection: Connection, at: int) -> int:
        covers = b"".join([key.to_bytes(8) + digest for key, digest in self.covers.items()])
        digest, n = sha256(covers).digest(), self.link.n + 1
        hash_ = Row(CALLS_WRITTEN, at, digest.hex(), None, n, "", "", "", None, "").hash_after(self.link.hash)
        connection.execute(_ADD_COVERS, (n, at, digest, covers, hash_))
        self.link = Link(n, hash_)
        return len(covers)

    def _add(self, connection: Connection, act: Act, at: int) -> None:
        digest, n = act.digest, self.link.n + 1
        shown = None if digest is None else digest.hex()
        by, what = (act.tenant, act.principal, act.key_id), (act.action, act.object, act.outcome)
        hash_ = Row(
            action=act.action,
            at=at,
            digest=shown,
            key=act.key_id,
            n=n,
            object=act.object,
            outcome=act.outcome,
            principal=act.principal,
            request=act.request_id,
            tenant=act.tenant,
        ).hash_after(self.link.hash)
        connection.execute(_ADD_ACT, (n, at, *by, *what, act.request_id, digest, hash_))
        self.link = Link(n, hash_)


def begin(connection: Connection, now: int) -> None:
    """Write the first row, where there is none: calls of before are not covered."""
    if connection.execute(_LAST).fetchall():
        return
    before = number(connection, SQL["last_task_number"]) or 0
    noted = Noted(Link(0, NOTHING))
    noted.acts.append(Act(tenant="", principal="hub", action=BEGUN, object=f"calls after {before}"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        noted.write(connection, lambda: now)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def was_moved(error: Exception) -> bool:
    """Whether a commit failed because the chain has a row that the writer did not know of."""
    return "audit.n" in str(error)


def last(connection: Connection) -> Link:
    """Where the chain stands by the file."""
    rows = connection.execute(_LAST).fetchall()
    return msgspec.convert(rows[0], Link) if rows else Link(0, NOTHING)


def base(connection: Connection) -> Base:
    """Where the chain begins; before its first row where none was removed."""
    rows = connection.execute(_BASE).fetchall()
    return msgspec.convert(rows[0], Base) if rows else Base(0, NOTHING, 0)


def digest_of(row: Sequence[object], room: bytearray | None = None) -> bytes:
    """The digest of a task by its row: head, log or what stands in its place, what it is found by; made in `room`."""
    room = bytearray() if room is None else room
    _pack_into(row, room)
    return sha256(room).digest()


def after_events(before: bytes, events: Sequence[tuple[int, bytes]]) -> bytes:
    """The hash of a task's events, with these after those before."""
    for key, body in events:
        before = sha256(before + key.to_bytes(8) + body).digest()
    return before


def summed(doc: bytes, events: bytes) -> bytes:
    """The sums of a task with events."""
    return sha256(doc).digest() + events


def grown(head: Sequence[Value], found_by: Sequence[Value], sums: bytes, forgotten: int | None = None) -> Reckoned:
    """The digest of a task that has events."""
    return Reckoned(digest_of((*head, (sums, forgotten), *found_by)), sums)


def reckoned(connection: Connection, row: TaskRow) -> Reckoned:
    """The digest of a task as all of it is stored now."""
    events = _events(connection, row.number)
    head = (row.number, row.id, row.tenant, row.caller, row.context, row.state, row.state_at, row.last_seq)
    found_by = (row.agent, row.skill, row.dialect, row.trace, row.parent)
    if row.log is None:
        return grown(head, found_by, summed(row.doc or b"", events), row.forgotten)
    plain = row.doc is None and row.forgotten is None and events == NOTHING
    content = row.log if plain else (row.log, row.doc, row.forgotten, events)
    return Reckoned(digest_of((*head, content, *found_by)), None)


def task_row(connection: Connection, number_: int) -> TaskRow | None:
    """A task's row, all of it."""
    rows = connection.execute(_TASK, (number_,)).fetchall()
    return msgspec.convert(rows[0], TaskRow) if rows else None


def _events(connection: Connection, number_: int) -> bytes:
    base = number_ << codec.SEQ_BITS
    found, after = NOTHING, base
    while True:
        rows = connection.execute(_EVENTS, (after, base | codec.MAX_SEQ, EVENTS_AT_ONCE)).fetchall()
        events = msgspec.convert(rows, list[tuple[int, bytes]])
        found = after_events(found, events)
        if len(events) < EVENTS_AT_ONCE:
            return found
        after = events[-1][0]
