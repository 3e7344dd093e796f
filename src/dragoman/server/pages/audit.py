"""The audit, for administrators: what was done, and whether what is stored is still what was written."""

from typing import Final

import msgspec

from dragoman.dialects.times import wire_time
from dragoman.hub.audit import AuditDesk, Verified
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.audit import CALLS_WRITTEN, AuditQuery, AuditRow, Window
from dragoman.server.pages.page import Page, json_reply, limit_of, query_of, time_of

_FILTERS: Final = frozenset({"action", "object", "principal", "tenant", "since", "until", "limit", "cursor"})
_WINDOW: Final = frozenset({"from", "to", "rows", "part", "cursor"})
_FLAGS: Final = {"0": False, "1": True}


class AuditItem(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the audit. `hash` is that of all rows up to it; `covers` is how many calls its digest stands for."""

    n: int
    at: str
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


class AuditFault(msgspec.Struct, frozen=True, kw_only=True):
    """The first thing that is wrong: in which row of the audit, in which call, and what."""

    row: int | None
    call_id: str | None
    reason: str


class AuditCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found. Without `next_cursor` it is over.

    `vouches_since`: from when on calls are covered; `unvouched`: how many were written before. `signed_row`: up to
    which row the hub's own signature reaches, where the check looked at it.
    """

    ok: bool
    broken: AuditFault | None
    done: int
    total: int
    acts: int
    calls: int
    unvouched: int
    vouches_since: str | None
    signed_row: int | None
    rows: list[AuditItem]
    next_cursor: str | None


def pages(desk: AuditDesk) -> tuple[Page, ...]:
    """The pages of the audit."""

    async def listed(request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        values = query_of(request, _FILTERS)
        action = values.get("action")
        query = AuditQuery(
            tenant=values.get("tenant"),
            principal=values.get("principal"),
            action=action,
            object=values.get("object"),
            since=time_of(values, "since"),
            until=time_of(values, "until"),
            calls=action == CALLS_WRITTEN,
            limit=limit_of(values),
            cursor=values.get("cursor"),
        )
        page = await desk.list(caller, query)
        return json_reply(200, {"items": [shown(row) for row in page.rows], "next_cursor": page.cursor})

    async def verified(request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        values = query_of(request, _WINDOW)
        window = Window(
            since=time_of(values, "from"),
            until=time_of(values, "to"),
            rows=_flag(values.get("rows", "0"), "rows"),
            cursor=values.get("cursor"),
        )
        found = await desk.verify(caller, window)
        if not _flag(values.get("part", "0"), "part"):
            while found.broken is None and found.checked.cursor is not None:
                more = msgspec.structs.replace(window, cursor=found.checked.cursor)
                found = _together(found, await desk.verify(caller, more))
        return json_reply(200, check_of(found))

    return (
        Page(method="GET", path="/v1/audit", answer=listed, heavy=True),
        Page(method="GET", path="/v1/audit/verify", answer=verified, heavy=True),
    )


def shown(row: AuditRow) -> AuditItem:
    """A row as it is shown."""
    return AuditItem(
        n=row.n,
        at=wire_time(row.at),
        tenant=row.tenant,
        principal=row.principal,
        key_id=row.key_id,
        action=row.action,
        object=row.object,
        outcome=row.outcome,
        request_id=row.request_id,
        digest=row.digest,
        hash=row.hash,
        covers=row.covers,
    )


def _together(before: Verified, after: Verified) -> Verified:
    one, other = before.checked, after.checked
    added = msgspec.structs.replace(
        other,
        acts=one.acts + other.acts,
        calls=one.calls + other.calls,
        unvouched=one.unvouched + other.unvouched,
        rows=one.rows + other.rows,
    )
    return Verified(checked=added, signed=before.signed)


def check_of(found: Verified) -> AuditCheck:
    """What a check found, as it is shown."""
    checked, broken, signed = found.checked, found.broken, found.signed
    return AuditCheck(
        ok=broken is None,
        broken=None if broken is None else AuditFault(row=broken.row, call_id=broken.call_id, reason=broken.reason),
        done=checked.done,
        total=checked.total,
        acts=checked.acts,
        calls=checked.calls,
        unvouched=checked.unvouched,
        vouches_since=None if checked.since is None else wire_time(checked.since),
        signed_row=None if signed is None else signed.n,
        rows=[shown(row) for row in checked.rows],
        next_cursor=checked.cursor,
    )


def _flag(text: str, name: str) -> bool:
    if text not in _FLAGS:
        raise BadParams(f"{name}: expected 1 or 0", errors=[{"path": name, "message": "not 1 or 0"}])
    return _FLAGS[text]
