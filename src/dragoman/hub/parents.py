"""Which call a new call belongs to: what its caller passes on of a call that it was given itself.

    named       `call_id` or `parent` of the hints, parent_execution_id     among the open ones, else in the store
    traced      the span of the hub's own request to it; or its trace, from the very agent that has a call in it
    conversed   the same conversation, from the very agent that has an open call in it

Only a call that was given to the caller counts. Whoever may speak for an agent may also name its calls, and show their
spans; an administrator, and everybody where nobody is asked who he is, may do so for all.
"""

from collections.abc import Callable, Coroutine
from typing import Final, final

import msgspec

from dragoman.hub.authorize import may_change
from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound
from dragoman.model.operations import SendTask
from dragoman.model.task import Task, Trace
from dragoman.ports.store import Scope, Tasks

MOST_FRESH: Final = 1000  # calls that have no places yet
MOST_FOUND: Final = 100_000  # open calls that are found by trace and conversation; by its name every one is

Found = Task | dict[str, Task]  # one call, as nearly always; or several by their spans, the last one last


@final
class LiveCalls:
    """The calls that this replica carries now, and where their agents would call on from.

    Most end before anybody calls on for one: a call gets its places when somebody first looks there.
    """

    __slots__ = ("_conversations", "_fresh", "_most", "_placed", "_traces")

    def __init__(self, most: int = MOST_FOUND) -> None:
        self._most = most
        self._fresh: dict[str, Task] = {}  # by id, those that have no places yet
        self._placed: dict[str, Task] = {}  # and those that have
        self._traces: dict[str, Found] = {}
        self._conversations: dict[str, Found] = {}  # by the caller's name, and by the target's where it has another

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._fresh or task_id in self._placed

    def __len__(self) -> int:
        return len(self._fresh) + len(self._placed)

    def sizes(self) -> tuple[int, int, int]:
        """How many calls there are, and how many traces and conversations."""
        self._place()
        return len(self._placed), len(self._traces), len(self._conversations)

    def get(self, task_id: str) -> Task | None:
        """The call of that id, as it was when it began to be carried."""
        return self._fresh.get(task_id) or self._placed.get(task_id)

    def add(self, task: Task) -> None:
        """A call is carried from now on."""
        fresh, task_id = self._fresh, task.id
        if task_id in fresh or task_id in self._placed:
            self.drop(task_id)
        fresh[task_id] = task
        if len(fresh) >= MOST_FRESH:
            self._place()

    def drop(self, task_id: str) -> None:
        """A call is carried no longer."""
        if self._fresh.pop(task_id, None) is None and task_id in self._placed:
            self._leave(self._placed.pop(task_id))

    def of_span(self, trace: Trace) -> Task | None:
        """The call whose own span is the parent of this one."""
        self._place()
        span_id, found = trace.parent_span_id, self._traces.get(trace.trace_id)
        if span_id is None or found is None:
            return None
        if isinstance(found, dict):
            return found.get(span_id)
        return found if found.trace.span_id == span_id else None

    def at(self, tenant: str, agent_id: str, place: str) -> Task | None:
        """The last of an agent's open calls in a trace or a conversation."""
        self._place()
        for found in (self._traces.get(place), self._conversations.get(place)):
            several = reversed(found.values()) if isinstance(found, dict) else () if found is None else (found,)
            for task in several:
                if task.agent_id == agent_id and task.tenant == tenant:
                    return task
        return None

    def _place(self) -> None:
        """Have every call found at its places; of more than so many the later ones are not."""
        fresh, self._fresh = self._fresh, {}
        for task_id, task in fresh.items():
            self._placed[task_id] = task
            if len(self._placed) <= self._most:
                _put(self._traces, task.trace.trace_id, task)
                _put(self._conversations, task.context_id, task)
                if task.remote is not None and task.remote.context_id is not None:
                    _put(self._conversations, task.remote.context_id, task)

    def _leave(self, task: Task) -> None:
        _take(self._traces, task.trace.trace_id, task)
        _take(self._conversations, task.context_id, task)
        if task.remote is not None and task.remote.context_id is not None:
            _take(self._conversations, task.remote.context_id, task)


def _put(places: dict[str, Found], place: str, task: Task) -> None:
    """Have a call found at a place beside those that are there."""
    found = places.setdefault(place, task)
    if isinstance(found, dict):
        found[task.trace.span_id] = task
    elif found is not task:
        places[place] = {found.trace.span_id: found, task.trace.span_id: task}


def _take(places: dict[str, Found], place: str, task: Task) -> None:
    """Have a call found at a place no longer; those beside it still are."""
    found = places.get(place)
    if isinstance(found, dict) and found.get(task.trace.span_id) is task:
        del found[task.trace.span_id]
    if found is task or found == {}:
        del places[place]


class Parents:
    """Finds the call that a new one belongs to."""

    def __init__(
        self, *, live: LiveCalls, store: Tasks, resolve: Callable[[Caller, str], Coroutine[None, None, Agent]]
    ) -> None:
        self._live = live
        self._store = store
        self._resolve = resolve  # an agent by its id

    async def of(self, caller: Caller, asked: SendTask, trace: Trace) -> Task | None:
        """The call that the caller makes this one for, if it was given to the caller; awaits nothing for the open."""
        # Whoever hands its hints on as they are hands on the parent of its own call, too.
        for name in (asked.within, asked.parent_id):
            if name is not None:
                task = await self._named(caller, name)
                if task is not None and await self._is_given_to(caller, task):
                    return task
        task = self._live.of_span(trace)
        if task is not None and task.tenant == caller.tenant and await self._is_given_to(caller, task):
            return task
        if caller.agent_id is None:
            return None
        task = self._live.at(caller.tenant, caller.agent_id, trace.trace_id)
        if task is None and asked.context_id is not None:
            task = self._live.at(caller.tenant, caller.agent_id, asked.context_id)
        return task

    def moved(self, task: Task, agent_id: str) -> None:
        """A call that is under way goes to another agent: from now on that one may call on for it."""
        if task.id in self._live:
            self._live.add(msgspec.structs.replace(task, agent_id=agent_id))

    async def _named(self, caller: Caller, task_id: str) -> Task | None:
        live = self._live.get(task_id)
        if live is not None:
            return live if live.tenant == caller.tenant else None
        return await self._store.load(Scope(tenant=caller.tenant, principal=None), task_id)

    async def _is_given_to(self, caller: Caller, task: Task) -> bool:
        if task.agent_id == caller.agent_id or caller.admin:
            return True
        if caller.anonymous:
            return False
        try:
            return may_change(caller, await self._resolve(caller, task.agent_id))
        except AgentNotFound:
            return False
