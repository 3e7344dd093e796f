"""What was used up, for those who may know it: by callers, targets, days …, and by one call with all that it caused."""

from datetime import UTC, datetime
from typing import Final, Protocol

import msgspec

from dragoman.hub.authorize import authorize
from dragoman.hub.chain import is_believed
from dragoman.hub.flow.ledger import DAY_S, Ledger
from dragoman.hub.tasks import scope_of
from dragoman.model.call import Caller
from dragoman.model.json import JsonObject
from dragoman.model.operations import ListTasks
from dragoman.model.task import Task
from dragoman.model.usage import NOTHING, Sums, sums_of, total_of
from dragoman.ports.store import Tasks
from dragoman.ports.usage import By, Conversations, UsageDays, UsageQuery, UsageSum

MOST_BELOW: Final = 1_000  # calls that are looked at for what one call caused
MOST_CALLS: Final = 5_000  # the newest, that are looked at for what conversations used
PAGE: Final = 100
_LISTING: Final = ListTasks()


class Kept(Tasks, UsageDays, Conversations, Protocol):
    """Where calls and their sums are."""


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Sums, the most expensive first, days in their order; `complete`: all there is was looked at."""

    items: tuple[UsageSum, ...]
    total: Sums
    complete: bool = True


class UsageDesk:
    """Tells what was used up."""

    def __init__(self, *, store: Kept, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    def today(self) -> int:
        """The day that it is, counted from 1970 (UTC)."""
        return self._ledger.today()

    async def by(self, caller: Caller, by: By, first: int, last: int) -> Used:
        """What the caller's own calls used from one day to another, or its tenant's for an administrator."""
        authorize(caller, _LISTING)
        scope = scope_of(caller)
        if by is By.CONVERSATION:
            return await self._conversations(caller, first, last)
        await self._ledger.write()
        query = UsageQuery(by=by, tenant=scope.tenant, caller=scope.principal, first=first, last=last)
        return _used(list(await self._store.usage_by(query)), by)

    async def total(self, task: Task) -> JsonObject:
        """What a call used with all the calls that were made for it, and for those."""
        found, nodes, complete = [task], [task], True
        while nodes:
            node = nodes.pop()
            children = await self._store.below(node.id, MOST_BELOW + 1 - len(found))
            real = [child for child in children if is_believed(node, child)]
            found += real
            nodes += real
            if len(found) > MOST_BELOW:
                complete = False
                break
        shown = total_of(each.usage for each in found if not each.asked.then)  # a workflow's own is that of its steps
        return shown if complete else shown | {"complete": False}

    async def _conversations(self, caller: Caller, first: int, last: int) -> Used:
        """From the calls themselves: days do not know conversations."""
        since, until = _begin_of(first), _begin_of(last + 1)
        sums: dict[str, Sums] = {}
        seen, cursor = 0, None
        while seen < MOST_CALLS:
            page = await self._store.list_tasks(scope_of(caller), ListTasks(after=since, limit=PAGE, cursor=cursor))
            for task in page.tasks:
                if task.ended_at is not None and since <= task.ended_at < until and not task.asked.then:
                    sums[task.context_id] = sums.get(task.context_id, NOTHING) + sums_of(task.usage)
            seen, cursor = seen + len(page.tasks), page.cursor
            if cursor is None:
                break
        items = [UsageSum(name=name, sums=each) for name, each in sums.items()]
        return msgspec.structs.replace(_used(items, By.CONVERSATION), complete=cursor is None)


def _begin_of(day: int) -> datetime:
    return datetime.fromtimestamp(day * DAY_S, UTC)


def _used(items: list[UsageSum], by: By) -> Used:
    total = NOTHING
    for item in items:
        total += item.sums
    if by is By.DAY:
        items.sort(key=lambda item: int(item.name))
    else:
        items.sort(key=lambda item: (-item.sums.cost_nano, -item.sums.tokens, -item.sums.calls, item.name))
    return Used(items=tuple(items), total=total)
