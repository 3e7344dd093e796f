"""The clock of `testing.hub()`: it runs by itself, and tests move it ahead."""

import asyncio

from dragoman.sdk.testing.moved_clock import MovedClock


def test_an_hour_passes_at_once_and_what_is_due_happens_in_its_order() -> None:
    async def scenario() -> None:
        clock, rung = MovedClock(), list[str]()
        before, wall = clock.monotonic(), clock.now()
        clock.call_at(before + 1800, lambda: rung.append("later"))
        clock.call_at(before + 60, lambda: rung.append("soon"))
        never = clock.call_at(before + 90, lambda: rung.append("never"))
        never.cancel()
        async with asyncio.TaskGroup() as group:
            asleep = group.create_task(clock.sleep(3599))
            await asyncio.sleep(0)  # it begins
            await clock.advance(3600)
            assert asleep.done()
        assert rung == ["soon", "later"]
        assert clock.monotonic() - before >= 3600
        assert (clock.now() - wall).total_seconds() >= 3600

    asyncio.run(scenario())


def test_what_is_not_due_waits() -> None:
    async def scenario() -> None:
        clock, rung = MovedClock(), list[str]()
        clock.call_at(clock.monotonic() + 60, lambda: rung.append("soon"))
        await clock.advance(50)
        assert rung == []
        await clock.advance(10)
        assert rung == ["soon"]

    asyncio.run(scenario())


def test_it_runs_by_itself() -> None:
    async def scenario() -> None:
        clock = MovedClock()
        await clock.advance(100)
        before = clock.monotonic()
        await clock.sleep(0.01)
        assert 0.01 <= clock.monotonic() - before < 5

    asyncio.run(scenario())
