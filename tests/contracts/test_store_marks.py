"""What may be used once: each mark is new to its caller once, until it has expired, over every restart."""

import asyncio
from datetime import timedelta

import pytest

from dragoman.ports.store import Mark
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run

KEPT_S = 600


def mark(clock: ManualClock, name: str, caller: str = "alice", tenant: str = "acme") -> Mark:
    expires_at = clock.now() + timedelta(seconds=KEPT_S)
    return Mark(tenant=tenant, caller=caller, digest=name.encode(), expires_at=expires_at)


@pytest.mark.req("P-29")
def test_a_mark_is_new_once_and_each_caller_has_its_own(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            assert await running.see([mark(clock, "a")])
            assert not await running.see([mark(clock, "a")])
            assert await running.see([mark(clock, "a", caller="bob")])
            assert await running.see([mark(clock, "a", tenant="other")])
            # One known mark spoils the others that came with it.
            assert not await running.see([mark(clock, "b"), mark(clock, "a")])
        async with store() as running:
            assert not await running.see([mark(clock, "a")])

    run(scenario())


@pytest.mark.req("P-29")
def test_a_mark_is_known_until_the_last_moment_at_which_it_could_count(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            assert await running.see([mark(clock, "a")])
            for _ in range(KEPT_S):
                clock.advance(1)
                assert not await running.see([mark(clock, "a")])
            clock.advance(1)
            assert await running.see([mark(clock, "a")])

    run(scenario())


@pytest.mark.req("P-29")
def test_of_many_at_once_one_is_the_first(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            same = mark(clock, "a")
            seen = await asyncio.gather(*(running.see([same]) for _ in range(50)))
            assert sum(seen) == 1

    run(scenario())
