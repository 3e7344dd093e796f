"""Traces: the calls that belong together, and the spans of all of them, for whoever made some of the calls.

    a name ─► a call of the caller's ─► its trace ─► every call of the tenant in it ─► spans, in the order of a tree

What others made in the same trace is shown as another owner's, with its times alone; what belongs to another tenant is
not shown at all, and a trace without a call of the caller's own is unknown to it. Nothing is stored for any of this.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman.hub.authorize import authorize
from dragoman.hub.tasks import scope_of
from dragoman.model.agent import Agent, Endpoint
from dragoman.model.call import Caller
from dragoman.model.errors import AgentUnavailable, TaskNotFound
from dragoman.model.operations import ListTasks
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.observe.notice_spans import delivery_spans
from dragoman.observe.span import Span, SpanKind
from dragoman.observe.spans import Target, spans_of
from dragoman.observe.trace import trace_id_of
from dragoman.ports.deliveries import DeliveryQuery
from dragoman.ports.store import Scope, Store, TaskList

MOST_CALLS: Final = 200  # of one trace, the newest
MOST_EVENTS: Final = 1000  # of one call
MOST_DELIVERIES: Final = 20
LOOKED_AT: Final = 4  # pages of calls that one page of traces is looked for in
SEARCHED: Final = 1000  # of the caller's newest calls, for a spelling that is no id
ANOTHER: Final = "another owner"


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A span with its place in the tree: how far down, and whose call it is of; None: another owner's."""

    span: Span
    depth: int
    task: Task | None


class FoundTrace(msgspec.Struct, frozen=True, kw_only=True):
    """One trace: the caller's own calls, the oldest first, and the spans of all. `more`: there are more calls."""

    trace_id: str
    calls: tuple[Task, ...]
    spans: tuple[Placed, ...]
    more: bool = False

    @property
    def root(self) -> Task:
        """The call that the others were made for."""
        return root_of(self.calls)


class RecentTraces(msgspec.Struct, frozen=True, kw_only=True):
    """A page of traces, the one with the newest change first: the caller's own calls of each, the oldest first."""

    traces: tuple[tuple[Task, ...], ...]
    cursor: str | None


class Traces:
    """Finds traces for callers."""

    def __init__(self, *, store: Store, endpoint_of: Callable[[Agent], Endpoint]) -> None:
        self._store = store
        self._endpoint_of = endpoint_of

    async def show(self, caller: Caller, name: str) -> FoundTrace:
        """A trace by its id, by any spelling that a caller gave it, or by one of its calls.

        Raises NotAuthorized, TaskNotFound.
        """
        trace_id = await self._named(caller, name)
        every = Scope(tenant=caller.tenant, principal=None)
        page = await self._store.list_tasks(every, ListTasks(trace_id=trace_id, limit=MOST_CALLS))
        principal = scope_of(caller).principal
        own = sorted((task for task in page.tasks if principal in (None, task.caller_id)), key=_age)
        foreign = [task for task in page.tasks if principal not in (None, task.caller_id)]
        spans: list[tuple[Span, Task | None]] = [(_hidden(task), None) for task in foreign]
        agents: dict[tuple[str, str], Target] = {}
        for task in own:
            spans += [(span, task) for span in await self._spans(task, agents)]
        return FoundTrace(
            trace_id=trace_id, calls=tuple(own), spans=tuple(in_order(spans)), more=page.cursor is not None
        )

    async def recent(self, caller: Caller, *, since: datetime | None, limit: int, cursor: str | None) -> RecentTraces:
        """The caller's traces. Each stands where its newest call does, so no page shows it twice.

        Raises NotAuthorized, BadParams.
        """
        found: list[tuple[Task, ...]] = []
        for _ in range(LOOKED_AT):
            page = await self._seen(caller, ListTasks(after=since, limit=limit - len(found), cursor=cursor))
            for task in page.tasks:
                calls = (await self._seen(caller, ListTasks(trace_id=task.trace.trace_id, limit=MOST_CALLS))).tasks
                if calls and calls[0].id == task.id:
                    found.append(tuple(sorted(calls, key=_age)))
            cursor = page.cursor
            if cursor is None or len(found) >= limit:
                break
        return RecentTraces(traces=tuple(found), cursor=cursor)

    async def spans(self, tenant: str, call_id: str) -> tuple[Task, tuple[Span, ...]] | None:
        """The spans of one call, for the hub itself; without its deliveries, whose attempts are told one by one."""
        task = await self._store.load(Scope(tenant=tenant, principal=None), call_id)
        if task is None:
            return None
        events = await self._store.events(task.id, 0, MOST_EVENTS)
        return task, spans_of(task, events, await self._target(task, {}))

    async def _seen(self, caller: Caller, query: ListTasks) -> TaskList:
        """The one way to calls here: what the caller may list."""
        authorize(caller, query)
        return await self._store.list_tasks(scope_of(caller), query)

    async def _named(self, caller: Caller, name: str) -> str:
        authorize(caller, ListTasks())
        task = await self._store.load(scope_of(caller), name)
        if task is not None:
            return task.trace.trace_id
        trace_id = trace_id_of(name)
        if (await self._seen(caller, ListTasks(trace_id=trace_id, limit=1))).tasks:
            return trace_id
        # Beside a traceparent an X-Trace-ID is only a spelling: it leads to no id.
        for known in (await self._seen(caller, ListTasks(limit=SEARCHED))).tasks:
            if known.trace.given_id == name:
                return known.trace.trace_id
        raise TaskNotFound(
            f"There is no trace or call {name!r}; calls of other keys look unknown.", trace_id=name[:128]
        )

    async def _spans(self, task: Task, agents: dict[tuple[str, str], Target]) -> tuple[Span, ...]:
        events = await self._store.events(task.id, 0, MOST_EVENTS)
        spans = spans_of(task, events, await self._target(task, agents))
        if not task.callbacks:
            return spans
        scope = Scope(tenant=task.tenant, principal=task.caller_id)
        told = await self._store.list_deliveries(scope, DeliveryQuery(task_id=task.id, limit=MOST_DELIVERIES))
        return spans + delivery_spans(task, told.deliveries)

    async def _target(self, task: Task, known: dict[tuple[str, str], Target]) -> Target:
        """The agent of a call with the card that it had then."""
        name = (task.agent_id, task.agent_version)
        if name not in known:
            find = self._store.find_agent
            agent = await find(task.tenant, task.agent_id, task.agent_version) or await find(
                task.tenant, task.agent_id, removed=True
            )
            known[name] = Target(agent=agent, endpoint=None if agent is None else self._reached(agent))
        return known[name]

    def _reached(self, agent: Agent) -> Endpoint | None:
        try:
            return self._endpoint_of(agent)
        except AgentUnavailable:
            return None


def root_of(calls: Sequence[Task]) -> Task:
    """The call that the others were made for: the oldest that none of the others made."""
    spans = {task.trace.span_id for task in calls}
    return next((task for task in calls if task.trace.parent_span_id not in spans), calls[0])


def state_of(calls: Iterable[Task], root: Task) -> TaskState:
    """How a trace stands: as its root does, or at work as long as one of its calls is."""
    if root.ended and any(not task.ended for task in calls):
        return TaskState.WORKING
    return root.state


def in_order(spans: Sequence[tuple[Span, Task | None]]) -> list[Placed]:
    """Each span below its parent, those beside each other by their beginning; whose parent is unknown is at the top."""
    known = {span.span_id for span, _ in spans}
    below: dict[str | None, list[tuple[Span, Task | None]]] = {}
    for each in sorted(spans, key=lambda one: (one[0].started_at, one[0].ended_at is None, one[0].name)):
        parent = each[0].parent_id
        own = parent is None or parent not in known or parent == each[0].span_id
        below.setdefault(None if own else parent, []).append(each)
    placed: list[Placed] = []
    waiting = [(span, task, 0) for span, task in reversed(below.pop(None, []))]
    while waiting:
        span, task, depth = waiting.pop()
        placed.append(Placed(span=span, depth=depth, task=task))
        waiting += [(child, of, depth + 1) for child, of in reversed(below.pop(span.span_id, []))]
    # Spans that name each other as parents hang on nothing.
    placed += [Placed(span=span, depth=0, task=task) for each in below.values() for span, task in each]
    return placed


def _hidden(task: Task) -> Span:
    """What is shown of a call that somebody else made."""
    return Span(
        span_id=task.trace.span_id,
        call_id="",
        name=ANOTHER,
        kind=SpanKind.SERVER,
        started_at=task.created_at,
        ended_at=task.ended_at,
        parent_id=task.trace.parent_span_id,
    )


def _age(task: Task) -> tuple[datetime, str]:
    return (task.created_at, task.id)
