"""The switchboard on a real store and a clock that stands still: calls carried as the hub carries them."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.delivery.board import Running
from dragoman.delivery.connections import Connections
from dragoman.delivery.session import Frame, FrameReader, Session
from dragoman.dialects.platform.connected import ENDPOINT
from dragoman.dialects.platform.connected_events import Told
from dragoman.hub.callback_secrets import CallbackSecrets
from dragoman.hub.tasks import TaskBook
from dragoman.model.call import AdmittedCall, Before, Caller, OpenedCall
from dragoman.model.content import Message, Role, Text
from dragoman.model.operations import Priority, SendTask, Wait
from dragoman.model.task import Task
from dragoman.ports.store import Owner, Scope
from dragoman.security.sealed import RootKey, Sealer
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent, new_task

if TYPE_CHECKING:
    from dragoman.ports.courier import Delivered

LEASE_S: Final = 30.0
TENANT, AGENT = "acme", "weather"


class Carried:
    """One call that is being carried: what came of it so far."""

    def __init__(self, opened: OpenedCall) -> None:
        self.opened = opened
        self.task = opened.task
        self.batches: list[Delivered] = []
        self.hold = asyncio.Event()  # cleared: what is told is not written down yet
        self.hold.set()
        self.work: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        return str(self.task.state)

    @property
    def reason(self) -> str | None:
        failure = self.task.failure
        return None if failure is None else f"{failure.code} {(failure.details or {}).get('reason', '')}".strip()


class Switchboard:
    """The switchboard in one life of the hub."""

    def __init__(self, store: SqliteStore, clock: ManualClock, *, outlived: bool = True) -> None:
        self.store = store
        self.clock = clock
        self.gone: list[tuple[str, float]] = []
        self.resting = 0
        self.book = TaskBook(
            store=store,
            clock=clock,
            owner=Owner(replica="hub", epoch=1),
            keep_h=24,
            owing=lambda: None,
            secrets=CallbackSecrets(Sealer(RootKey(bytes(range(32))))),
        )
        self.connections = Connections(
            store=store,
            clock=clock,
            lease_s=LEASE_S,
            resting=self._rests,
            gone=lambda _tenant, agent_id, after_s: self.gone.append((agent_id, after_s)),
            outlived=outlived,
        )
        self._group: asyncio.TaskGroup | None = None

    # -- calls

    async def call(
        self,
        *,
        wait: Wait = Wait.END,
        timeout_s: float = 60.0,
        priority: Priority = Priority.NORMAL,
        at_most_once: bool = False,
    ) -> Carried:
        """A call that is opened and carried."""
        task = new_task(self.clock)
        asked = msgspec.structs.replace(task.asked, wait=wait, priority=priority, at_most_once=at_most_once)
        deadline = self.clock.now() + timedelta(seconds=timeout_s)
        task = msgspec.structs.replace(task, asked=asked, deadline=deadline, messages=())
        opened = await self.book.open(self._admitted(task, asked, timeout_s), claimed=True)
        assert isinstance(opened, OpenedCall)
        return await self.carry(opened)

    async def answer(self, first: Carried, words: str) -> Carried:
        """The answer to a call's question, carried."""
        said = Message(id=self.clock.new_id("msg_"), role=Role.USER, parts=(Text(text=words),))
        asked = msgspec.structs.replace(first.task.asked, message=said, continues=first.task.id)
        opened = await self.book.open(self._admitted(first.task, asked, 1000.0))
        assert isinstance(opened, OpenedCall)
        return await self.carry(opened)

    async def take_up(self, task_id: str, before: Before, attempt: int = 2) -> Carried:
        """A call of an earlier life, carried on."""
        task = await self.load(task_id)
        left_s = (task.deadline - self.clock.now()).total_seconds() if task.deadline else 60.0
        call = self._admitted(task, task.asked, left_s)
        return await self.carry(OpenedCall(call=call, task=task, attempt=attempt, before=before))

    async def carry(self, opened: OpenedCall) -> Carried:
        """A call, carried from now on."""
        assert self._group is not None
        carried = Carried(opened)
        carried.work = self._group.create_task(self._carry(carried))
        await self.settle()
        return carried

    async def load(self, task_id: str) -> Task:
        """A task as it is on disk."""
        task = await self.store.load(Scope(tenant=TENANT, principal=None), task_id)
        assert task is not None
        return task

    # -- agents

    async def open(self, capacity: int = 10, running: Sequence[Running] = ()) -> "Agent":
        """A session of the agent's."""
        standing = await self.connections.open(TENANT, AGENT, "alice", capacity, running)
        await self.settle()
        return Agent(self, standing.session, standing.keep, standing.drop)

    # -- time

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        self.clock.advance(seconds)
        await self.settle()

    async def settle(self) -> None:
        """Let everything happen that can happen now."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def _carry(self, carried: Carried) -> None:
        async with contextlib.aclosing(self.connections.stream(carried.opened)) as stream:
            async for delivered in stream:
                carried.batches.append(delivered)
                await carried.hold.wait()
                carried.task = await self.book.record(carried.task, delivered.events)
                if delivered.recorded is not None:
                    delivered.recorded()
                if delivered.settled or carried.task.ended:
                    break

    def _admitted(self, task: Task, asked: SendTask, timeout_s: float) -> AdmittedCall:
        agent = new_agent(self.clock, AGENT)
        card = msgspec.structs.replace(agent.card, endpoints=(ENDPOINT,))
        return AdmittedCall(
            caller=Caller(tenant=TENANT, id="alice"),
            operation=asked,
            agent=msgspec.structs.replace(agent, card=card),
            endpoint=ENDPOINT,
            skill=None,
            message=asked.message,
            task=task,
            timeout_s=timeout_s,
            deadline=self.clock.monotonic() + timeout_s,
        )

    @contextlib.contextmanager
    def _rests(self) -> Generator[None]:
        self.resting += 1
        try:
            yield
        finally:
            self.resting -= 1

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncGenerator["Switchboard"]:
        """The switchboard until the block ends: whoever carries a call then is stopped, as by the hub's death."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            carrying = group.create_task(asyncio.Event().wait())
            yield self
            carrying.cancel()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()


class Agent:
    """One process of the agent."""

    def __init__(self, board: Switchboard, session: Session, keep: Sequence[str], drop: Sequence[str]) -> None:
        self.board = board
        self.session = session
        self.keep = list(keep)
        self.drop = list(drop)
        self.reader: FrameReader = board.connections.frames(session, 0)

    async def frames(self) -> list[tuple[str, dict[str, Any]]]:
        """What was said since, without waiting for more."""
        found: list[Frame] = []
        reading = asyncio.ensure_future(anext(self.reader, None))
        await self.board.settle()
        if reading.done():
            found += reading.result() or ()
        else:
            reading.cancel()
        return [(frame.event, frame.data) for frame in found if frame.event != "hello"]

    async def next(self, event: str) -> dict[str, Any]:
        """What was said since: one thing, of that name."""
        found = await self.frames()
        assert [name for name, _ in found] == [event], found
        return found[0][1]

    def tell(self, call: dict[str, Any], *events: tuple[str, dict[str, Any]], first: int = 1) -> "asyncio.Task[int]":
        """Tell events of a call; the task that ends when they are acknowledged."""
        told = [Told(n=n, event=name, data=data) for n, (name, data) in enumerate(events, first)]
        work = self.board.connections.told(self.session, call["call_id"], call["attempt"], told)
        return asyncio.ensure_future(work)

    def beat(self, *running: Running, received: int = 0) -> None:
        """A heartbeat."""
        self.board.connections.renewed(self.session, None, received, running)


@contextlib.asynccontextmanager
async def switchboard(folder: Path, clock: ManualClock, *, outlived: bool = True) -> AsyncGenerator[Switchboard]:
    """A switchboard on the store in a folder; again, it is the next life of the hub."""
    store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
    await store.start()
    try:
        async with Switchboard(store, clock, outlived=outlived).living() as board:
            yield board
    finally:
        await store.close()
