"""One reader of a task's events: what is on disk first, then what is said of the task as it grows.

    listen ─► the task as it is, or its events after a number ─► live ─► the event that ends it

The bus is listened to before the store is read, so nothing falls between; what comes twice is dropped by its number,
and a gap sends the reader back to the store. What gathers while nobody takes it is bounded, by number and by size: a
reader that is slower than that is cut off, and finds it all in the store when it comes back. No task, timer or lock of
its own: whoever reads waits on one future.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Self, final

from dragoman.model.content import Blob, Message, Part, Text
from dragoman.model.events import ArtifactChunk, Happened, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.states import FINAL, INTERRUPTED
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.ports.bus import Bus, Grown, Lost, Said, task_topic
from dragoman.ports.store import Scope, Tasks

MOST_EVENTS: Final = 256
MOST_BYTES: Final = 1024 * 1024
PAGE: Final = 256
EVENT_BYTES: Final = 200  # of an event beside its words


@final
class Reader:
    """The items of one stream."""

    __slots__ = (
        "_bytes",
        "_closed",
        "_events",
        "_heard",
        "_last",
        "_leave",
        "_left",
        "_lost",
        "_opening",
        "_past_questions",
        "_reading",
        "_shown",
        "_store",
        "_task_id",
        "_tenant",
        "_wake",
        "carried",
        "cut",
    )

    def __init__(
        self,
        task: Task,
        *,
        store: Tasks,
        bus: Bus,
        after: int | None = None,
        unwritten: bool = False,
        past_questions: bool = False,
    ) -> None:
        """Listen from now on. `unwritten`: the task is about to be opened, and shown when that is on disk."""
        self.cut = False
        self.carried = unwritten
        self._store = store
        self._task_id = task.id
        self._tenant = task.tenant
        self._past_questions = past_questions
        self._left: Callable[[], None] | None = None
        self._opening = task if unwritten else None
        self._heard: list[Grown] = []  # a list is a tenth of a deque, and most wait empty
        self._events = 0
        self._bytes = 0
        self._closed = False
        self._reading = False
        self._wake: asyncio.Future[None] | None = None
        self._last = 0 if after is None or after > task.last_seq else after
        self._shown = after is not None and after <= task.last_seq  # events alone: the task itself is not shown
        self._leave: Callable[[], None] = bus.listen(task_topic(task.id), self._hear)
        self._lost = not unwritten  # what a task has behind it is in the store; a new one has nothing there

    def __aiter__(self) -> Self:
        """Iterate once, to the end."""
        return self

    async def __anext__(self) -> Sequence[StreamItem]:
        """What has come since."""
        while not self._closed:
            if self._lost:
                items = await self._read()
            elif self._heard:
                items = self._taken()
            else:
                self._wake = asyncio.get_running_loop().create_future()
                try:
                    await self._wake
                finally:
                    self._wake = None
                continue
            if items:
                return items
        self.close()
        raise StopAsyncIteration

    def when_left(self, left: Callable[[], None]) -> None:
        """Have this called if nobody reads on before the end."""
        self._left = left

    def stop(self) -> None:
        """The hub stops: its reader does not leave, it is sent away."""
        self._finish()

    def close(self) -> None:
        """Nobody reads any more."""
        left, self._left = self._left, None
        self._closed = True
        self._leave()
        self._leave = _nowhere  # What it was holds this reader, which holds it.
        self._heard.clear()
        self._rouse()
        if left is not None:
            left()

    # -- from the bus

    def _hear(self, said: Said | Lost) -> None:
        if self._closed:
            return
        if isinstance(said, Lost) or said.grown is None:
            self._lost = True
        elif not self._lost:
            self._keep(said.grown)
        self._rouse()

    def _keep(self, grown: Grown) -> None:
        behind = bool(self._heard)
        self._heard.append(grown)
        if not behind:
            self._events, self._bytes = len(grown.happened), -1
            return
        if self._bytes < 0:
            self._bytes = sum(event_size(each.event) for each in self._heard[0].happened)
        self._events += len(grown.happened)
        self._bytes += sum(event_size(each.event) for each in grown.happened)
        if self._events > MOST_EVENTS or self._bytes > MOST_BYTES:
            self._heard.clear()
            if self._reading:
                self._lost = True  # It is in the store already, where these are, too.
            else:
                self.cut = True
                self.close()

    def _taken(self) -> Sequence[StreamItem]:
        items: list[StreamItem] = []
        heard, self._heard = self._heard, []
        for grown in heard:
            if self._closed or self._lost:
                break
            if self._opening is not None:
                self._show(self._opening, items)
            for happened in grown.happened:
                if happened.seq <= self._last:
                    continue
                if happened.seq > self._last + 1:
                    self._lost = True
                    break
                self._add(happened, grown.task, items)
        return items

    # -- from the store

    async def _read(self) -> Sequence[StreamItem]:
        self._lost = False
        self._heard.clear()
        self._reading = True
        try:
            return await self._events_there() if self._shown else await self._task_there()
        except BaseException:
            self._lost = True  # Nothing was taken: who asks again begins here.
            raise
        finally:
            self._reading = False

    async def _task_there(self) -> Sequence[StreamItem]:
        task = await self._store.load(Scope(tenant=self._tenant, principal=None), self._task_id)
        items: list[StreamItem] = []
        if task is None:
            self._finish()
        else:
            self._show(task, items)
        return items

    async def _events_there(self) -> Sequence[StreamItem]:
        found = await self._store.events(self._task_id, self._last, PAGE)
        items: list[StreamItem] = []
        task: Task | None = None
        for happened in found:
            if task is None and _may_end(happened.event):
                task = await self._store.load(Scope(tenant=self._tenant, principal=None), self._task_id)
            self._add(happened, task, items)
            if self._closed:
                break
        if len(found) == PAGE:
            self._lost = True  # There is more.
        elif not found:
            await self._finish_if_ended()
        return items

    async def _finish_if_ended(self) -> None:
        """A reader that had seen the end before has nothing to wait for."""
        task = await self._store.load(Scope(tenant=self._tenant, principal=None), self._task_id)
        if task is None or (task.ended and task.last_seq <= self._last):
            self._finish()

    # -- both

    def _show(self, task: Task, items: list[StreamItem]) -> None:
        self._shown = True
        self._opening = None
        self._last = task.last_seq
        items.append(Snapshot(task=task))
        if task.ended:
            self._finish()

    def _add(self, happened: Happened, task: Task | None, items: list[StreamItem]) -> None:
        self._last = happened.seq
        event = happened.event
        if task is not None and isinstance(event, StatusChanged) and self._ends(happened.seq, event, task):
            items.append(Ended(seq=happened.seq, event=event, task=task))
            self._finish()
        else:
            items.append(happened)

    def _ends(self, seq: int, event: StatusChanged, task: Task) -> bool:
        """Whether nothing more will come by itself; a question that was answered since ends nothing."""
        if event.state in INTERRUPTED:
            return not self._past_questions and seq == task.last_seq
        return event.state in FINAL

    def _finish(self) -> None:
        self._left = None
        self.close()

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _nowhere() -> None:
    """There is nothing to leave any more."""


def _may_end(event: TaskEvent) -> bool:
    return isinstance(event, StatusChanged) and (event.state in FINAL or event.state in INTERRUPTED)


def event_size(event: TaskEvent) -> int:
    """About how much memory an event holds."""
    if isinstance(event, ArtifactChunk):
        return EVENT_BYTES + _parts_size(event.artifact.parts)
    message: Message | None = None
    if isinstance(event, StatusChanged | MessageAdded):
        message = event.message
    return EVENT_BYTES if message is None else EVENT_BYTES + _parts_size(message.parts)


def _parts_size(parts: Sequence[Part]) -> int:
    size = 0
    for part in parts:
        if isinstance(part, Text):
            size += len(part.text)
        elif isinstance(part, Blob):
            size += len(part.raw)
        else:
            size += EVENT_BYTES
    return size
