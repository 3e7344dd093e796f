"""How the outcome of a call is learnt that its first answer did not settle."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Final

import pytest

from dragoman.delivery.bridge import learn
from dragoman.dialects.dialect import Heard
from dragoman.model.errors import AgentError, AgentTimeout, AgentUnavailable, DragomanError, NotSupported
from dragoman.model.events import StatusChanged
from dragoman.model.states import TaskState
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run

AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
DEADLINE: Final = 1e9


def heard(state: TaskState) -> Heard:
    return Heard(events=(StatusChanged(at=AT, state=state),), settled=state is TaskState.COMPLETED)


WORKING: Final = heard(TaskState.WORKING)
DONE: Final = heard(TaskState.COMPLETED)


class Target:
    """An agent that answers as the test says, and what it was asked."""

    def __init__(self, *, streams: list[list[Heard | DragomanError]], gets: list[Heard | DragomanError]) -> None:
        self.streams = streams
        self.gets = gets
        self.asked: list[str] = []

    async def subscribe(self) -> AsyncGenerator[Heard]:
        self.asked.append("subscribe")
        for each in self.streams.pop(0):
            if isinstance(each, DragomanError):
                raise each
            yield each

    async def get(self) -> Heard:
        self.asked.append("get")
        said = self.gets.pop(0)
        if isinstance(said, DragomanError):
            raise said
        return said


async def learnt(target: Target, *, listens: bool = True, asks: bool = True) -> list[Heard]:
    clock = ManualClock()
    subscribe: Callable[[], AsyncGenerator[Heard]] | None = target.subscribe if listens else None
    seen: list[Heard] = []

    async def listen() -> None:
        async for each in learn(subscribe, target.get if asks else None, clock=clock, deadline=DEADLINE):
            seen.append(each)

    learning = asyncio.ensure_future(listen())
    while not learning.done():
        await asyncio.sleep(0)
        clock.advance(1)
    await learning
    return seen


def test_a_stream_that_settles_is_enough() -> None:
    target = Target(streams=[[WORKING, DONE]], gets=[])
    assert run(learnt(target)) == [WORKING, DONE]
    assert target.asked == ["subscribe"]


def test_a_stream_that_breaks_off_is_followed_by_a_look_and_then_taken_up_again() -> None:
    target = Target(streams=[[WORKING], [AgentUnavailable()], [DONE]], gets=[WORKING, WORKING])
    assert run(learnt(target))[-1] is DONE
    assert target.asked == ["subscribe", "get", "subscribe", "get", "subscribe"]


def test_a_target_without_streams_is_asked_again_and_again() -> None:
    target = Target(streams=[[NotSupported()]], gets=[WORKING, WORKING, DONE])
    assert run(learnt(target))[-1] is DONE
    assert target.asked == ["subscribe", "get", "get", "get"]
    target = Target(streams=[], gets=[WORKING, DONE])
    assert run(learnt(target, listens=False))[-1] is DONE


def test_what_the_look_meets_is_the_end() -> None:
    target = Target(streams=[[AgentUnavailable()]], gets=[AgentUnavailable("gone")])
    with pytest.raises(AgentUnavailable, match="gone"):
        run(learnt(target))


def test_a_target_that_cannot_be_asked_is_an_error() -> None:
    with pytest.raises(AgentError, match="cannot be asked"):
        run(learnt(Target(streams=[], gets=[]), listens=False, asks=False))
    with pytest.raises(AgentError, match="stream ended"):
        run(learnt(Target(streams=[[WORKING]], gets=[]), asks=False))


def test_the_deadline_is_no_broken_stream() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        target = Target(streams=[[AgentTimeout()]], gets=[])
        with pytest.raises(AgentTimeout):
            async for _ in learn(target.subscribe, target.get, clock=clock, deadline=clock.monotonic()):
                pass
        assert target.asked == ["subscribe"]

    run(scenario())


def test_a_stream_that_says_no_word_is_left_and_the_task_looked_at() -> None:
    async def scenario() -> None:
        target = Target(streams=[], gets=[WORKING, DONE])

        async def silent() -> AsyncGenerator[Heard]:
            target.asked.append("subscribe")
            await asyncio.Event().wait()
            yield WORKING

        clock = ManualClock()
        learning = learn(silent, target.get, clock=clock, deadline=DEADLINE)
        seen = [await anext(learning)]
        further = asyncio.ensure_future(anext(learning))
        while not further.done():
            clock.advance(1)
            await asyncio.sleep(0)
        seen.append(await further)
        assert seen == [WORKING, DONE]
        assert target.asked == ["subscribe", "get", "subscribe", "get"]

    run(asyncio.wait_for(scenario(), 10))
