"""Whatever is done to a store, in whatever order and across restarts, it holds what a dictionary would hold."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.model.events import TaskEvent
from dragoman.model.states import TaskState
from dragoman.ports.store import CALLBACKS, CALLS, Duplicate, Growth, NewJob, Opened, Raced, Store
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, chunk, completed, moved, new_task, once, opening, step

if TYPE_CHECKING:
    from dragoman.model.task import Task

T = TypeVar("T")
Backend = Callable[[Path, ManualClock], Store]

KEYS = ("k-1", "k-2", "k-3")


def sqlite(folder: Path, clock: ManualClock) -> Store:
    return SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)


class StoreModel(RuleBasedStateMachine):
    """The model: each task as it was last acknowledged, which key names which, and who is owed a callback."""

    backend: Backend = staticmethod(sqlite)
    tasks: Bundle[str] = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.known: dict[str, Task] = {}
        self.keys: dict[str, str] = {}
        self.owed: set[str] = set()
        self.store = self.backend(Path(self.folder.name), self.clock)
        self.do(self.store.start())

    def do(self, work: Awaitable[T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(10):
                return await work

        return self.loop.run_until_complete(bounded())

    def teardown(self) -> None:
        self.do(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    @rule(target=tasks, durable=st.booleans())
    def open_a_task(self, durable: bool) -> str:
        task = new_task(self.clock)
        assert self.do(self.store.open(opening(task, durable=durable))) == Opened()
        self.known[task.id] = task
        return task.id

    @rule(target=tasks, key=st.sampled_from(KEYS), durable=st.booleans(), scope=st.sampled_from(("key", "request")))
    def open_under_a_key(self, key: str, durable: bool, scope: str) -> str:
        task = new_task(self.clock)
        name = f"{scope} {key}"
        known = self.do(self.store.find_once("acme", "alice", scope, key))
        assert (known and known[0]) == self.keys.get(name)
        if known is not None and scope == "request":
            return known[0]  # a request id is looked up first: `open` knows only recent ones
        outcome = self.do(self.store.open(opening(task, durable=durable, once=once(self.clock, key, scope=scope))))
        if name in self.keys:
            assert outcome == Duplicate(task_id=self.keys[name], same=True)
            return self.keys[name]
        assert outcome == Opened()
        self.keys[name] = task.id
        self.known[task.id] = task
        return task.id

    @rule(task_id=tasks, count=st.integers(1, 3))
    def grow(self, task_id: str, count: int) -> None:
        self.append(task_id, *(chunk(self.clock, f"{number} ") for number in range(count)))

    @rule(task_id=tasks, state=st.sampled_from((TaskState.WORKING, TaskState.INPUT_REQUIRED)))
    def move(self, task_id: str, state: TaskState) -> None:
        self.append(task_id, moved(self.clock, state))

    @rule(task_id=tasks, callback=st.booleans())
    def end(self, task_id: str, callback: bool) -> None:
        jobs = [NewJob(queue=CALLBACKS, payload=task_id.encode())] if callback else []
        if self.append(task_id, completed(self.clock), jobs=jobs) and callback:
            self.owed.add(task_id)

    @rule(task_id=tasks, ahead=st.integers(1, 3))
    def append_from_a_wrong_number(self, task_id: str, ahead: int) -> None:
        task = self.known[task_id]
        astray = Growth(task=task, after=task.last_seq + ahead, events=(completed(self.clock),))
        assert self.do(self.store.append(astray)) == Raced(task=task)

    @rule(seconds=st.sampled_from((0.01, 0.2)))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def restart(self) -> None:
        self.do(self.store.close())
        self.store = self.backend(Path(self.folder.name), self.clock)
        self.do(self.store.start())

    @rule(task_id=consumes(tasks))
    def replay(self, task_id: str) -> None:
        self.do(self.store.put_sealed("barrier", b""))
        seqs = [happened.seq for happened in self.do(self.store.events(task_id, 0, 1000))]
        task = self.known[task_id]
        assert seqs == list(range(1, task.last_seq + 1)) or (seqs == [] and task.last_seq == 1)

    @rule()
    def look_at_the_jobs(self) -> None:
        owner = self.do(self.store.begin_epoch("r"))
        callbacks = {job.payload.decode() for job in self.do(self.store.lease([CALLBACKS], 1000, owner))}
        assert callbacks == self.owed
        calls = {job.task_id for job in self.do(self.store.lease([CALLS], 1000, owner))}
        assert calls <= {task.id for task in self.known.values() if not task.ended}

    @invariant()
    def every_task_is_as_it_was_acknowledged(self) -> None:
        for task in self.known.values():
            assert self.do(self.store.load(ALICE, task.id)) == task

    def append(self, task_id: str, *events: TaskEvent, jobs: list[NewJob] | None = None) -> bool:
        task = self.known[task_id]
        growth = step(task, *events, jobs=jobs or ())
        outcome = self.do(self.store.append(growth))
        if task.ended:
            assert outcome == Raced(task=task)
            return False
        assert outcome is None
        self.known[task_id] = growth.task
        return True


TestStoreModel = StoreModel.TestCase
TestStoreModel.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
