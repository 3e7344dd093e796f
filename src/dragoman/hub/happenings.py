"""What changes at the hub, for whoever watches: agents that come and go, and each watcher's own tasks as they move.

    the bus ─► by tenant and principal ─► each watch: what has gathered, bounded ─► its reader

All watches of a process listen together: to every task's topic as long as somebody watches tasks, so that a hub that
nobody watches makes no message for it. A watch holds no task or timer; one that is too slow is cut off. Whoever comes
back with the time of the last change is told how things stand that changed since.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, Self, TypeVar, final

from dragoman.hub.reader import event_size
from dragoman.hub.tasks import scope_of
from dragoman.model.agent import Agent, AgentStatus
from dragoman.model.answers import Changes
from dragoman.model.call import Caller
from dragoman.model.changes import AgentChanged, Change, TaskChanged
from dragoman.model.events import Logged, Sent, Watched
from dragoman.model.operations import Discover, ListTasks, WatchChanges
from dragoman.model.task import Task
from dragoman.ports.bus import AGENTS_CHANGED, EVERY_TASK, Bus, Grown, Lost, Said
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope, Store

MOST: Final = 256  # changes that wait for a reader
MOST_BYTES: Final = 1024 * 1024  # of what is new in them
MOST_MISSED: Final = 1000  # tasks, and agents, of which one who comes back is told
# A change is written a little after the time it bears: what may have been on its way then is told again.
ON_ITS_WAY: Final = timedelta(seconds=5)
# Not among the agents that are found.
_UNSEEN: Final = frozenset({AgentStatus.PAUSED, AgentStatus.QUARANTINED, AgentStatus.REMOVED})

Key = TypeVar("Key", str, Scope)


class Happenings:
    """The watches of one replica."""

    def __init__(self, *, store: Store, bus: Bus, clock: Clock) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._of_agents: dict[str, list[Watch]] = {}  # by tenant
        self._of_tasks: dict[Scope, list[Watch]] = {}
        self._leave_agents: Callable[[], None] | None = None
        self._leave_tasks: Callable[[], None] | None = None

    def watch(self, caller: Caller, asked: WatchChanges) -> Changes:
        """What changes from now on, of what this caller may see."""
        scope = scope_of(caller)
        watch = Watch(asked, scope=scope, store=self._store, clock=self._clock, leave=self._forget)
        if asked.agents:
            self._of_agents.setdefault(scope.tenant, []).append(watch)
            if self._leave_agents is None:
                self._leave_agents = self._bus.listen(AGENTS_CHANGED, self._hear_agent)
        if asked.tasks:
            self._of_tasks.setdefault(scope, []).append(watch)
            if self._leave_tasks is None:
                self._leave_tasks = self._bus.listen(EVERY_TASK, self._hear_task)
        # What it may have missed by now is nothing: the bus tells every listener that first.
        watch.begin(asked.since)
        return Changes(items=watch)

    def _forget(self, watch: "Watch") -> None:
        _drop(self._of_agents, watch.scope.tenant, watch)
        _drop(self._of_tasks, watch.scope, watch)
        if not self._of_agents and self._leave_agents is not None:
            self._leave_agents()
            self._leave_agents = None
        if not self._of_tasks and self._leave_tasks is not None:
            self._leave_tasks()
            self._leave_tasks = None

    def _hear_agent(self, said: Said | Lost) -> None:
        if isinstance(said, Lost):
            for watches in tuple(self._of_agents.values()):
                for watch in tuple(watches):
                    watch.lose()
            return
        tenant, _, agent_id = said.data.decode().partition("\n")
        for watch in tuple(self._of_agents.get(tenant, ())):
            watch.hear(agent_id)

    def _hear_task(self, said: Said | Lost) -> None:
        if isinstance(said, Lost) or said.grown is None:
            for watches in tuple(self._of_tasks.values()):
                for watch in tuple(watches):
                    watch.lose()
            return
        task, size = said.grown.task, _size(said.grown)
        if size == 0:
            return
        for principal in (task.caller_id, None):
            for watch in tuple(self._of_tasks.get(Scope(tenant=task.tenant, principal=principal), ())):
                watch.hear(task, size)


@final
class Watch:
    """The changes that one reader is told."""

    __slots__ = (
        "_asked",
        "_bytes",
        "_clock",
        "_closed",
        "_heard",
        "_leave",
        "_since",
        "_store",
        "_wake",
        "carried",
        "cut",
        "scope",
    )

    def __init__(
        self, asked: WatchChanges, *, scope: Scope, store: Store, clock: Clock, leave: "Callable[[Watch], None]"
    ) -> None:
        self.cut = False
        self.carried = False
        self.scope = scope
        self._asked = asked
        self._store = store
        self._clock = clock
        self._leave = leave
        self._heard: deque[str | Task] = deque()  # an agent by its id, a task as it was then
        self._bytes = 0
        self._since: datetime | None = None  # something may have been missed from here on
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    def begin(self, since: datetime | None) -> None:
        """Begin with what changed since a time, or with what comes."""
        self._since = since

    def hear(self, what: str | Task, size: int = 0) -> None:
        """An agent or a task has changed; `size`: of what is new in it."""
        behind = bool(self._heard)
        self._heard.append(what)
        self._bytes = self._bytes + size if behind else size
        if behind and (len(self._heard) > MOST or self._bytes > MOST_BYTES):
            self.cut = True
            self.close()
        self._rouse()

    def lose(self) -> None:
        """Something may have been missed just now."""
        self._since = self._since or self._clock.now()
        self._rouse()

    def __aiter__(self) -> Self:
        """Iterate, as long as somebody reads."""
        return self

    async def __anext__(self) -> Sequence[Change]:
        """What has changed since."""
        while not self._closed:
            if self._since is not None:
                since, self._since = self._since, None
                found = await self._missed(since - ON_ITS_WAY)
            elif self._heard:
                found = [await self._change(self._heard.popleft()) for _ in range(len(self._heard))]
            else:
                self._wake = asyncio.get_running_loop().create_future()
                try:
                    await self._wake
                finally:
                    self._wake = None
                continue
            if found and not self._closed:
                return found
        self.close()
        raise StopAsyncIteration

    def stop(self) -> None:
        """The hub stops."""
        self.close()

    def close(self) -> None:
        """Nobody reads any more."""
        if not self._closed:
            self._closed = True
            self._heard.clear()
            self._leave(self)
            self._rouse()

    async def _change(self, what: str | Task) -> Change:
        if isinstance(what, Task):
            return TaskChanged(at=self._clock.now(), task=what)
        agent = await self._store.find_agent(self.scope.tenant, what)
        return AgentChanged(at=self._clock.now(), agent_id=what, agent=None if agent is None else _seen(agent))

    async def _missed(self, since: datetime) -> list[Change]:
        """How those stand that changed since, the oldest change first; agents that are gone are not among them."""
        found: list[tuple[datetime, Change]] = []
        now = self._clock.now()
        if self._asked.agents:
            agents = (await self._store.search(self.scope, Discover(limit=MOST_MISSED))).agents
            changed = [agent for agent in agents if agent.updated_at >= since]
            found += [(each.updated_at, AgentChanged(at=now, agent_id=each.id, agent=each)) for each in changed]
        if self._asked.tasks:
            tasks = (await self._store.list_tasks(self.scope, ListTasks(after=since, limit=MOST_MISSED))).tasks
            found += [(task.updated_at, TaskChanged(at=now, task=task)) for task in tasks]
        return [change for _, change in sorted(found, key=lambda each: each[0])]

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _size(grown: Grown) -> int:
    """About how much memory is new in a growth; nothing where a caller would see nothing of it."""
    unseen = Sent | Watched | Logged
    return sum(event_size(each.event) for each in grown.happened if not isinstance(each.event, unseen))


def _seen(agent: Agent) -> Agent | None:
    return None if agent.status in _UNSEEN else agent


def _drop(table: dict[Key, list[Watch]], key: Key, watch: Watch) -> None:
    watches = table.get(key)
    if watches is not None and watch in watches:
        watches.remove(watch)
        if not watches:
            del table[key]
