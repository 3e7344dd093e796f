"""A conversation over a line of the test's own, on a real mailbox: order, bounds, and how it ends."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.dialects.envelope.dialogue import DIALOGUE
from dragoman.hub.boxes import Boxes, OpenBox
from dragoman.model.errors import NotAuthenticated
from dragoman.model.http import HttpReply
from dragoman.ports.clock import SystemClock
from dragoman.ports.store import Store
from dragoman.server.conversation import AT_ONCE, Conversation, Line, Over
from tests.support.run import run


class OneLine:
    """Carries frames between a conversation and the test; frames are answered when the test says so."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[bytes | None] = asyncio.Queue(100)
        self.said: asyncio.Queue[Any] = asyncio.Queue(1000)
        self.begun: list[str] = []
        self.began: asyncio.Queue[str] = asyncio.Queue(100)
        self.gates: dict[str, asyncio.Event] = {}
        self.drain = asyncio.Event()
        self.valid = True

    def line(self, **changes: Any) -> Line:
        async def drained() -> None:
            await self.drain.wait()

        parts: dict[str, Any] = {"hear": self.incoming.get, "say": self._say, "answer": self._answer}
        parts |= {"check": self._check, "drained": drained, "cap": 10_000, "patience_s": 5.0}
        return Line(**{**parts, **changes})

    async def hears(self, name: str, task: str | None = None, *, held: bool = False) -> None:
        if held:
            self.gates[name] = asyncio.Event()
        payload = {} if task is None else {"task_id": task}
        await self.incoming.put(json.dumps({"message_id": name, "type": "x", "payload": payload}).encode())

    async def _say(self, frame: bytes) -> None:
        await self.said.put(json.loads(frame))

    async def _answer(self, frame: bytes, trace: str | None) -> HttpReply:
        name = json.loads(frame)["message_id"]
        self.begun.append(name)
        await self.began.put(name)
        if name in self.gates:
            await self.gates[name].wait()
        return HttpReply(status=200, body=json.dumps({"answered": name}).encode())

    async def _check(self) -> None:
        if not self.valid:
            raise NotAuthenticated


@asynccontextmanager
async def mailboxes(folder: Path) -> AsyncGenerator[tuple[Store, Callable[[], Any]]]:
    """A store, and a way to open the mailbox `box` of it."""
    bus = LocalBus()
    store = SqliteStore(folder / "hub.db", clock=SystemClock(), bus=bus)
    await store.start()
    # Whose a mailbox is needs the registry; to read one does not.
    boxes = Boxes(store=store, bus=bus, registry=None)  # pyright: ignore[reportArgumentType]
    try:
        yield store, lambda: boxes.open("t", "box")
    finally:
        await store.close()


def carried(folder: Path, scenario: Callable[[OneLine], Awaitable[None]], over: Over, **changes: Any) -> None:
    """Run a scenario beside a conversation, which then ends so."""

    async def both() -> None:
        one = OneLine()
        async with asyncio.timeout(20), mailboxes(folder) as (_, opened), opened() as box:
            async with asyncio.TaskGroup() as group:
                talking = group.create_task(Conversation(one.line(**changes), DIALOGUE, box).run())
                await scenario(one)
            assert talking.result() is over

    run(both())


def test_frames_about_one_task_wait_for_each_other_and_all_others_do_not(tmp_path: Path) -> None:
    async def scenario(one: OneLine) -> None:
        await one.hears("first", "task", held=True)
        await one.hears("second", "task")
        await one.hears("third", "task")
        await one.hears("other", "another task")
        await one.hears("none")
        assert [(await one.said.get())["answered"] for _ in range(2)] == ["other", "none"]
        assert one.begun == ["first", "other", "none"]
        one.gates["first"].set()
        assert [(await one.said.get())["answered"] for _ in range(3)] == ["first", "second", "third"]
        await one.incoming.put(None)

    carried(tmp_path, scenario, Over.LEFT)


def test_no_more_frames_are_taken_than_may_be_worked_on_at_once(tmp_path: Path) -> None:
    async def scenario(one: OneLine) -> None:
        for number in range(AT_ONCE + 5):
            await one.hears(str(number), held=True)
        for _ in range(AT_ONCE):
            await one.began.get()
        for _ in range(50):
            await asyncio.sleep(0)  # a turn of the loop, in which a further one would begin
        assert (len(one.begun), one.incoming.qsize()) == (AT_ONCE, 5)
        one.gates["3"].set()
        assert (await one.said.get())["answered"] == "3"
        for gate in one.gates.values():
            gate.set()
        for _ in range(AT_ONCE + 4):
            await one.said.get()
        await one.incoming.put(None)

    carried(tmp_path, scenario, Over.LEFT)


def test_what_was_begun_is_answered_before_a_hub_that_stops_ends_it(tmp_path: Path) -> None:
    async def scenario(one: OneLine) -> None:
        await one.hears("late", held=True)
        await one.began.get()
        one.drain.set()
        one.gates["late"].set()
        assert (await one.said.get())["answered"] == "late"

    carried(tmp_path, scenario, Over.DRAINED)


def test_a_frame_beyond_the_cap_ends_it(tmp_path: Path) -> None:
    async def scenario(one: OneLine) -> None:
        await one.incoming.put(b"x" * 101)

    carried(tmp_path, scenario, Over.TOO_LARGE, cap=100)


def test_a_message_that_is_in_the_box_twice_is_said_once_and_gone_with_one_acknowledgement(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(20), mailboxes(tmp_path) as (store, opened), opened() as box:
            for name in ("a", "a", "b"):
                await store.put_mail("t", "box", json.dumps({"message_id": name, "type": "x"}).encode())
            one = OneLine()
            async with asyncio.TaskGroup() as group:
                group.create_task(Conversation(one.line(), DIALOGUE, box).run())
                assert [(await one.said.get())["message_id"] for _ in range(2)] == ["a", "b"]
                for name in ("a", "b"):
                    await one.incoming.put(json.dumps({"status": "success", "message_id": name}).encode())
                await one.incoming.put(None)
            assert await store.next_mail("t", "box", 0) is None

    run(scenario())


def test_readers_of_one_box_share_it_and_what_one_leaves_goes_to_the_others_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(20), mailboxes(tmp_path) as (store, opened):
            for body in (b"1", b"2"):
                await store.put_mail("t", "box", body)
            async with opened() as second, opened() as third:
                async with opened() as first:
                    assert await _next(first) == b"1"
                    assert await _next(second) == b"2"
                await store.put_mail("t", "box", b"3")
                assert [await _next(third), await _next(third)] == [b"1", b"3"]  # 2 is still with the second
            async with opened() as later:
                assert [await _next(later) for _ in range(3)] == [b"1", b"2", b"3"]  # nobody said that they came

    run(scenario())


async def _next(box: OpenBox) -> bytes:
    letters = box.letters()
    try:
        return (await anext(letters)).body
    finally:
        await letters.aclose()
