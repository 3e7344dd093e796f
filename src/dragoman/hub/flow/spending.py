"""What callers may spend: budgets of keys, and how many calls one conversation may have.

    admit   refuse ◄── memory ◄──(the first time it is needed)── the sums of the day; the calls of the conversation
    opened  one call more of its conversation
    ended   charged: the day of its caller, and what that one spent in the conversation

A budget belongs to whom the key stands for: all its keys spend together. A call is charged at its end, so that what is
under way may go beyond it; one that is refused costs nothing. What is not used for long is forgotten and read again.
"""

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Final, Protocol, final

from dragoman.hub.flow.ledger import DAY_S, Ledger
from dragoman.model.budget import Budget
from dragoman.model.call import Caller
from dragoman.model.errors import RateLimited
from dragoman.model.operations import SendTask
from dragoman.model.task import Task
from dragoman.model.usage import Sums, decimal_usd, nano, tokens_of
from dragoman.ports.clock import Clock
from dragoman.ports.usage import Conversations, UsageDays

MOST_CALLERS: Final = 10_000
MOST_CONVERSATIONS: Final = 20_000
MOST_COUNTED: Final = 10_000  # calls of one caller in a conversation, that are looked at to count them
BUDGET: Final = "budget"


class Spent(UsageDays, Conversations, Protocol):
    """Where it is kept what was spent."""


@final
class _Day:
    """What a caller has spent on one day."""

    __slots__ = ("day", "nano", "tokens")

    def __init__(self, day: int, spent: Sums) -> None:
        self.day = day
        self.nano = spent.cost_nano
        self.tokens = spent.tokens

    def at(self, day: int) -> "_Day":
        """The same on another day: a new one begins with nothing."""
        if day > self.day:
            self.day, self.nano, self.tokens = day, 0, 0
        return self


@final
class _Own:
    """What one caller with a budget did in a conversation."""

    __slots__ = ("calls", "nano")

    def __init__(self, calls: int, spent_nano: int) -> None:
        self.calls = calls
        self.nano = spent_nano


@final
class _Conversation:
    """The calls of one conversation today, and what those did in it that have a budget for it."""

    __slots__ = ("calls", "day", "own")

    def __init__(self, day: int, calls: int) -> None:
        self.day = day
        self.calls = calls
        self.own: dict[str, _Own] = {}

    def today(self, day: int) -> int:
        """How many calls it has had on this day."""
        if day > self.day:
            self.day, self.calls = day, 0
        return self.calls


class Spending:
    """Knows what was spent, and refuses what would be too much."""

    def __init__(
        self,
        *,
        store: Spent,
        clock: Clock,
        spawn: Callable[[Coroutine[None, None, None]], object],
        per_conversation: int,
        catch_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.ledger = Ledger(store=store, clock=clock, spawn=spawn, catch_up=catch_up)
        self._store = store
        self._per_conversation = per_conversation
        self._days: OrderedDict[tuple[str, str], _Day] = OrderedDict()
        self._conversations: OrderedDict[tuple[str, str], _Conversation] = OrderedDict()

    async def look_up(self, caller: Caller, asked: SendTask) -> None:
        """Have at hand what `refuse` needs to know of this caller and conversation."""
        budget, tenant = caller.budget, caller.tenant
        if budget is not None and _by_day(budget) and (tenant, caller.id) not in self._days:
            spent = await self.ledger.spent(tenant, caller.id)
            if (tenant, caller.id) not in self._days:
                self._days[tenant, caller.id] = _Day(self.ledger.today(), spent)
                if len(self._days) > MOST_CALLERS:
                    self._days.popitem(last=False)
        if asked.context_id is not None:
            await self._look_up_conversation(caller, asked.context_id)

    def refuse(self, caller: Caller, asked: SendTask) -> None:
        """Raises RateLimited where the caller has spent what it may, or the conversation has had its calls."""
        if caller.budget is not None:
            self._refuse_spent(caller, caller.budget, asked.context_id)
        if asked.context_id is not None:
            self._refuse_endless(caller.tenant, asked.context_id)

    def opened(self, task: Task) -> None:
        """Count a new call, where its caller named a conversation."""
        if task.asked.context_id is None:
            return
        known = self._conversations.get((task.tenant, task.context_id))
        if known is None:
            return
        known.calls = known.today(self.ledger.today()) + 1
        own = known.own.get(task.caller_id)
        if own is not None:
            own.calls += 1

    def ended(self, task: Task) -> None:
        """Charge a call that has ended."""
        self.ledger.ended(task)
        usage = task.usage
        if usage is None:
            return
        day = self._days.get((task.tenant, task.caller_id))
        if day is not None and self.ledger.day_of(task) >= day.day:
            day.at(self.ledger.day_of(task))
            day.nano += nano(usage.cost_usd or 0.0)
            day.tokens += tokens_of(usage)
        known = self._conversations.get((task.tenant, task.context_id))
        own = None if known is None else known.own.get(task.caller_id)
        if own is not None:
            own.nano += nano(usage.cost_usd or 0.0)

    def _refuse_spent(self, caller: Caller, budget: Budget, context_id: str | None) -> None:
        day = self._days.get((caller.tenant, caller.id))
        if day is not None:
            self._days.move_to_end((caller.tenant, caller.id))
            day.at(self.ledger.today())
            if budget.usd_per_day is not None and day.nano >= nano(budget.usd_per_day):
                raise self._over("usd_per_day", budget.usd_per_day, decimal_usd(day.nano))
            if budget.tokens_per_day is not None and day.tokens >= budget.tokens_per_day:
                raise self._over("tokens_per_day", budget.tokens_per_day, day.tokens)
        known = None if context_id is None else self._conversations.get((caller.tenant, context_id))
        own = None if known is None else known.own.get(caller.id)
        if own is None:
            return
        if budget.usd_per_conversation is not None and own.nano >= nano(budget.usd_per_conversation):
            raise _over_here("usd_per_conversation", budget.usd_per_conversation, decimal_usd(own.nano), context_id)
        if budget.calls_per_conversation is not None and own.calls >= budget.calls_per_conversation:
            raise _over_here("calls_per_conversation", budget.calls_per_conversation, own.calls, context_id)

    def _refuse_endless(self, tenant: str, context_id: str) -> None:
        known = self._conversations.get((tenant, context_id))
        if known is None:
            return
        self._conversations.move_to_end((tenant, context_id))
        if known.today(self.ledger.today()) >= self._per_conversation:
            raise RateLimited(
                f"The conversation {context_id} has had {self._per_conversation} calls today, as many as one may "
                "(calls.per_conversation). Begin another conversation, or answer instead of calling on.",
                retry_after_s=self.ledger.left_s(),
                reason="conversation",
                conversation_id=context_id,
                calls=self._per_conversation,
            )

    def _over(self, limit: str, most: float, spent: str | int) -> RateLimited:
        return RateLimited(
            f"The budget of this key is spent: {limit} is {most:g}, and {spent} was used today. It is renewed at "
            "midnight UTC; an administrator can raise it.",
            retry_after_s=self.ledger.left_s(),
            reason=BUDGET,
            budget=limit,
            most=most,
            spent=spent,
        )

    async def _look_up_conversation(self, caller: Caller, context_id: str) -> None:
        place, today = (caller.tenant, context_id), self.ledger.today()
        known = self._conversations.get(place)
        if known is None:
            midnight = datetime.fromtimestamp(today * DAY_S, UTC)
            calls = await self._store.calls_in(
                caller.tenant, context_id, caller=None, since=midnight, most=self._per_conversation
            )
            known = self._conversations.setdefault(place, _Conversation(today, calls))
            if len(self._conversations) > MOST_CONVERSATIONS:
                self._conversations.popitem(last=False)
        budget = caller.budget
        if budget is None or not _by_conversation(budget) or caller.id in known.own:
            return
        # Both, whatever this budget names: it may be changed, and another key of the same caller has another.
        most = max(MOST_COUNTED, budget.calls_per_conversation or 0)
        calls = await self._store.calls_in(caller.tenant, context_id, caller=caller.id, since=None, most=most)
        spent = await self._store.spent_in(caller.tenant, context_id, caller.id)
        known.own.setdefault(caller.id, _Own(calls, spent.cost_nano))


def _by_day(budget: Budget) -> bool:
    return budget.usd_per_day is not None or budget.tokens_per_day is not None


def _by_conversation(budget: Budget) -> bool:
    return budget.usd_per_conversation is not None or budget.calls_per_conversation is not None


def _over_here(limit: str, most: float, spent: str | int, context_id: str | None) -> RateLimited:
    return RateLimited(
        f"The budget of this key for one conversation is spent: {limit} is {most:g}, and {spent} was used. Begin "
        "another conversation; an administrator can raise it.",
        retry_after_s=None,
        reason=BUDGET,
        budget=limit,
        most=most,
        spent=spent,
        conversation_id=context_id,
    )
