"""Bugs in what is known of loops and spending: each lets agents call, or callers spend, without end."""

from datetime import UTC, datetime

import msgspec

from dragoman.hub.flow.ledger import Ledger
from dragoman.hub.flow.spending import Spending
from dragoman.hub.parents import Parents
from dragoman.model.call import Caller
from dragoman.model.errors import RateLimited
from dragoman.model.events import Usage
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace
from dragoman.model.usage import NOTHING, Sums
from tests.support.planting import put_in_place


def chain_lost(_: int) -> None:
    """The chain is lost at the dialects that have no field for it: what stands in their hints is not looked at."""
    of = Parents.of

    async def unread(self: Parents, caller: Caller, asked: SendTask, trace: Trace) -> Task | None:
        if asked.within is not None:
            asked = msgspec.structs.replace(asked, within=None, parent_id=None)
        return await of(self, caller, asked, trace)

    put_in_place(Parents, "of", unread)


def budget_forgotten(_: int) -> None:
    """What was spent before the hub started is not looked at."""

    async def nothing(_self: Ledger, _tenant: str, _caller: str) -> Sums:
        return NOTHING

    put_in_place(Ledger, "spent", nothing)


def refused_is_charged(_: int) -> None:
    """A call that is refused costs what one costs."""
    refuse = Spending.refuse

    def charging(self: Spending, caller: Caller, asked: SendTask) -> None:
        try:
            refuse(self, caller, asked)
        except RateLimited:
            now = datetime.now(UTC)
            never = Task(
                id="never",
                tenant=caller.tenant,
                caller_id=caller.id,
                agent_id=asked.agent or "",
                agent_version="",
                dialect="",
                context_id=asked.context_id or "",
                asked=asked,
                trace=Trace(trace_id="", span_id=""),
                created_at=now,
                updated_at=now,
                state=TaskState.COMPLETED,
                ended_at=now,
                usage=Usage(cost_usd=0.1),
            )
            self.ended(never)
            raise

    put_in_place(Spending, "refuse", charging)
