"""What is kept of calls beside themselves: the audit, what they used up, and what of all that goes with time."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import msgspec

from dragoman.backends.sqlite import (
    audit_check,
    audit_rows,
    audit_trim,
    codec,
    forgetting,
    minutes_kept,
    retention,
    usage,
)
from dragoman.backends.sqlite.shelf import Shelf
from dragoman.backends.sqlite.taken import TakenByTenants
from dragoman.model.task import Task
from dragoman.model.usage import Sums
from dragoman.ports.audit import Act, AuditList, AuditQuery, Checked, Head, SignedHead, Usage, Window
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.retention import Expired, Inspected
from dragoman.ports.store import Scope
from dragoman.ports.usage import DayOf, UsageQuery, UsageSum


class RecordShelf(Shelf):
    """The audit, usage, forgetting and retention."""

    def __init__(self, *, clock: Clock, bus: Bus) -> None:
        super().__init__(clock=clock, bus=bus)
        self._taken = TakenByTenants()

    async def note(self, act: Act) -> None:
        """Note an act that writes nothing else."""
        await self._file.write(lambda _: None, lambda _: act)

    async def list_audit(self, query: AuditQuery) -> AuditList:
        """A page of rows. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: audit_rows.listed(connection, query))

    async def check_audit(self, window: Window) -> Checked:
        """Check the next piece of the chain and of what it covers. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: audit_check.check(connection, window))

    async def audit_head(self) -> Head:
        """The chain's last row."""
        return await self._file.read(audit_rows.head)

    async def keep_head(self, head: SignedHead) -> None:
        """Keep a signed head."""
        await self._file.write(lambda connection: audit_rows.keep_head(connection, head))

    async def signed_heads(self, limit: int) -> Sequence[tuple[SignedHead, str | None]]:
        """The newest signed heads, each with the hash that its row has now."""
        return await self._file.read(lambda connection: audit_rows.signed_heads(connection, limit))

    async def forget(self, scope: Scope, ids: Sequence[str], act: Act | None = None) -> Sequence[str]:
        """Remove what was written in these calls of the scope; those that are open are left out."""
        now = self._now()

        def noted(forgotten: Sequence[str]) -> Act | None:
            outcome = f"{len(forgotten)} forgotten"
            return None if act is None or not forgotten else msgspec.structs.replace(act, outcome=outcome)

        return await self._file.rewrite(
            lambda connection, audit: forgetting.forget(connection, audit, scope, ids, now), noted
        )

    async def expire_calls(self, before: datetime, after: int) -> Expired:
        """Remove the next calls that ended before that time."""
        micros, now = codec.to_micros(before), self._now()
        step = partial(retention.expire_calls, before=micros, now=now, after=after, monotonic=self._clock.monotonic)
        return await self._file.rewrite(partial(step, counted=self._taken.counts))

    async def expire_audit(self, before: datetime) -> Expired:
        """Remove the next of the oldest rows of the audit, if they are from before that time."""
        micros = codec.to_micros(before)
        return await self._file.rewrite(partial(audit_trim.expire, before=micros, monotonic=self._clock.monotonic))

    async def expire_minutes(self, fold_before: datetime, drop_before: datetime, after: int) -> Expired:
        """Add old statistics up to hours, and drop the oldest."""
        fold, drop = (int(at.timestamp()) // 60 for at in (fold_before, drop_before))
        step = partial(minutes_kept.expire, fold_before=fold, drop_before=drop, monotonic=self._clock.monotonic)
        return await self._file.write(partial(step, after=after))

    async def expire_rest(self, now: datetime, mail_before: datetime | None) -> Expired:
        """Remove some of the keys, marks, messages and left events whose time is over."""
        step = partial(
            retention.expire_rest,
            now=codec.to_micros(now),
            mail_before=None if mail_before is None else codec.to_micros(mail_before),
            monotonic=self._clock.monotonic,
        )
        return await self._file.write(step)

    def left_open(self) -> bool:
        """Whether the process that had the file before ended without closing it."""
        return self._file.left_open

    async def inspect(self, *, quick: bool) -> Inspected:
        """Look at the whole file, beside everything else."""
        return await self._file.inspect(quick=quick)

    async def usage(self) -> Usage:
        """What each tenant takes now; stored bytes are counted piece by piece after the start."""
        while not self._taken.whole:
            await self._file.read(self._taken.count)
        return self._taken.usage()

    async def add_usage(self, days: Sequence[tuple[DayOf, Sums]], at: datetime) -> None:
        """Add to the sums; all calls that ended before are counted with it."""
        await self._file.rewrite(lambda connection, noted: usage.add(connection, noted, days, codec.to_micros(at)))

    async def uncounted(self, before: datetime) -> Sequence[Task] | None:
        """The calls that ended after sums were last added to, and before a time; None where that never was."""
        return await self._file.read(lambda connection: usage.uncounted(connection, codec.to_micros(before)))

    async def spent_on(self, day: int, tenant: str, caller: str) -> Sums:
        """What one caller used up on a day, as far as it was added."""
        return await self._file.read(lambda connection: usage.spent_on(connection, day, tenant, caller))

    async def usage_by(self, query: UsageQuery) -> Sequence[UsageSum]:
        """The sums that were asked for, in no order."""
        return await self._file.read(lambda connection: usage.by(connection, query))

    async def spent_in(self, tenant: str, context_id: str, caller: str) -> Sums:
        """What a caller's calls in one conversation used up."""
        return await self._file.read(lambda connection: usage.spent_in(connection, tenant, context_id, caller))

    async def below(self, task_id: str, most: int) -> Sequence[Task]:
        """The calls that belong to one, up to a number."""
        return await self._file.read(lambda connection: usage.children(connection, task_id, most))
