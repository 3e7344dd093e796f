"""R16: the schedule of callbacks to the second, what ends it, and one webhook-id over attempts and replays."""

import asyncio
import contextlib
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest

from dragoman.delivery.notices import NOTICE_S
from dragoman.hub.outbox import FAILING, WAITS_S
from dragoman.ports.store import CALLBACKS
from tests.contracts.manual_clock import ManualClock
from tests.support.outbox import ALICE, Begin, Post, post_office, receiving
from tests.support.planted import BUGS
from tests.support.run import run

DAY_S = 86_400.0
SCHEDULE_S = [5, 300, 1800, 7200, 18_000, 36_000, 36_000]  # the promise, written down a second time


class Jittery(ManualClock):
    """A clock whose chance always falls on one side."""

    def __init__(self, side: float) -> None:
        super().__init__()
        self._side = side

    def jitter(self, seconds: float, share: float) -> float:
        return seconds * (1 + self._side * share)


async def exhaust(post: Post) -> list[float]:
    """Make every attempt there is; the waits between them."""
    await post.work()
    waits: list[float] = []
    while await post.store.next_due(CALLBACKS) is not None:
        waits.append(await post.pass_time())
    return waits


async def scheduled(begin: Begin, clock: ManualClock) -> None:
    """A receiver that never takes it is tried eight times, to the second, under one id; then the notice is parked."""
    async with begin() as post, receiving(clock) as receiver:
        receiver.always = (500, {})
        task = await post.owe(receiver.url)
        began = clock.now()
        assert await exhaust(post) == SCHEDULE_S
        at = [(one.at - began).total_seconds() for one in receiver.got]
        assert at == [sum(SCHEDULE_S[:n]) for n in range(8)]
        (parked,) = await post.listed()
        assert (parked.state, parked.tries, parked.answer, parked.again_at) == ("parked", 8, "HTTP 500", None)
        # Somebody mends the receiver, and has it sent once more: from the beginning, under the same id.
        receiver.statuses(500)
        receiver.always = (200, {})
        assert (await post.desk.replay_one(ALICE, parked.id)).state == "pending"
        await post.work()
        assert await post.pass_time() == SCHEDULE_S[0]
        (delivered,) = await post.listed()
        assert (delivered.state, delivered.tries, delivered.replays) == ("delivered", 2, 1)
        assert len(receiver.got) == 10
        assert {one.headers["webhook-id"] for one in receiver.got} == {f"cb_{task.id}"}
        assert {one.raw for one in receiver.got} == {receiver.got[0].raw}


async def redirected(begin: Begin, clock: ManualClock) -> None:
    """A redirect is a failure like any other: nobody is sent elsewhere."""
    async with begin() as post, receiving(clock) as receiver, receiving(clock) as elsewhere:
        for code in (301, 302, 303, 307, 308):
            receiver.answers.append((code, {"Location": elsewhere.url}))
        receiver.answers.append((308, {"Location": f"{receiver.url}/"}))
        await post.owe(receiver.url)
        assert await exhaust(post) == SCHEDULE_S[:6]
        (delivered,) = await post.listed()
        assert (delivered.state, delivered.tries) == ("delivered", 7)
        assert elsewhere.got == []


@pytest.mark.req("P-60")
@pytest.mark.req("P-61")
def test_a_callback_is_tried_eight_times_to_the_second_and_then_parked_and_replayed(
    begin: Begin, clock: ManualClock
) -> None:
    run(scheduled(begin, clock))


@pytest.mark.req("P-61")
def test_a_redirect_is_a_failure(begin: Begin, clock: ManualClock) -> None:
    run(redirected(begin, clock))


@pytest.mark.req("P-61")
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_chance_moves_an_attempt_by_a_fifth_at_most(side: float, tmp_path: Path) -> None:
    clock = Jittery(side)

    async def scenario() -> None:
        async with post_office(tmp_path, clock)() as post, receiving(clock) as receiver:
            receiver.always = (500, {})
            await post.owe(receiver.url)
            assert await exhaust(post) == [pytest.approx(wait * (1 + side * 0.2)) for wait in SCHEDULE_S]

    run(scenario())


def test_the_schedule_is_the_one_promised() -> None:
    assert list(WAITS_S) == SCHEDULE_S
    assert 26 < sum(SCHEDULE_S) / 3600 < 30
    assert NOTICE_S == 15.0
    assert timedelta(days=5) == FAILING


def test_nothing_is_sent_a_second_too_early(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.statuses(500, 500)
            await post.owe(receiver.url)
            await post.work()
            clock.advance(4)
            assert await post.work() == 0
            clock.advance(1)
            assert await post.work() == 1
            clock.advance(299)
            assert await post.work() == 0
            clock.advance(1)
            assert await post.work() == 1
            assert await post.states() == ["delivered"]

    run(scenario())


@pytest.mark.req("P-61")
@pytest.mark.parametrize(
    ("status", "asked", "wait_s"),
    [
        (429, "120", 120),
        (503, "120", 120),
        (503, "86400", 3600),  # the most that is granted
        (503, "1", 5),  # never sooner than the schedule
        (500, "120", 5),  # only where it means something
        (503, "soon", 5),
    ],
)
def test_a_receiver_may_ask_for_time(begin: Begin, clock: ManualClock, status: int, asked: str, wait_s: int) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.answers = [(status, {"Retry-After": asked})]
            await post.owe(receiver.url)
            assert await exhaust(post) == [wait_s]
            assert await post.states() == ["delivered"]

    run(scenario())


@pytest.mark.req("P-61")
def test_a_receiver_that_does_not_answer_is_given_15_seconds(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.answers = [None]
            await post.owe(receiver.url)
            async with asyncio.TaskGroup() as group:
                group.create_task(post.work())
                await receiver.arrived(1)
                clock.advance(14.9)
                assert [one.tries for one in await post.listed()] == [0]
                clock.advance(0.2)
            (waiting,) = await post.listed()
            assert (waiting.state, waiting.tries) == ("pending", 1)
            assert waiting.again_at == clock.now() + timedelta(seconds=5)

    run(scenario())


@pytest.mark.req("P-61")
def test_an_address_that_says_gone_is_disabled_with_all_that_waits_for_it(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver, receiving(clock) as other:
            receiver.statuses(500, 500, 410)
            for url in (receiver.url, receiver.url, other.url):
                await post.owe(url)
            other.statuses(500)
            await post.work()
            clock.advance(1)
            await post.owe(receiver.url)
            await post.work()
            assert await post.states() == ["disabled", "disabled", "pending", "disabled"]
            await post.owe(receiver.url)
            await post.work()
            assert [one.tries for one in await post.listed()] == [1, 1, 1, 1, 0]
            assert await post.pass_time() == 4
            assert len(receiver.got) == 3, "a disabled address is not dialled"
        async with begin() as post, receiving(clock) as receiver:
            await post.work()
            assert await post.states() == ["disabled", "disabled", "delivered", "disabled", "disabled"]

    run(scenario())


@pytest.mark.req("P-61")
def test_an_address_that_took_nothing_for_five_days_is_disabled(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.always = (500, {})
            began = clock.now()
            await post.owe(receiver.url)
            await exhaust(post)
            clock.advance(2 * DAY_S)
            await post.owe(receiver.url)
            await exhaust(post)
            assert await post.states() == ["parked", "parked"]
            await post.owe(receiver.url)
            clock.advance(5 * DAY_S - (clock.now() - began).total_seconds() - 1)
            await post.work()
            assert (await post.states())[-1] == "pending"
        async with begin() as post:
            # The next life knows since when; nobody listens there any more, which is a failure too.
            assert await post.pass_time() == 5
            assert await post.states() == ["parked", "parked", "disabled"]
            assert "no success since 2026-07-01 12:00 UTC" in str((await post.listed())[-1].disabled)

    run(scenario())


def test_one_success_in_five_days_keeps_an_address(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            for _ in range(4):
                receiver.statuses(500)
                await post.owe(receiver.url)
                assert await exhaust(post) == [5]
                clock.advance(2 * DAY_S)
            assert set(await post.states()) == {"delivered"}

    run(scenario())


def test_a_replay_that_arrives_enables_the_address_and_one_that_fails_does_not(
    begin: Begin, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.statuses(410, 500)
            await post.owe(receiver.url)
            await post.work()
            (gone,) = await post.listed()
            await post.desk.replay_one(ALICE, gone.id)
            await post.work()
            (still,) = await post.listed()
            assert (still.state, still.disabled, still.answer) == ("disabled", "HTTP 410", "HTTP 500")
            await post.desk.replay_one(ALICE, gone.id)
            await post.work()
            (delivered,) = await post.listed()
            assert (delivered.state, delivered.disabled, delivered.replays) == ("delivered", None, 2)
            await post.owe(receiver.url)
            await post.work()
            assert await post.states() == ["delivered", "delivered"]

    run(scenario())


def test_an_address_is_disabled_and_enabled_by_hand(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.statuses(500)
            await post.owe(receiver.url)
            await post.work()
            (first,) = await post.listed()
            disabled = await post.desk.switch(ALICE, first.id, enabled=False)
            assert (disabled.state, disabled.disabled) == ("disabled", "disabled by alice")
            await post.owe(receiver.url)
            assert await exhaust(post) == []
            assert (await post.states(), len(receiver.got)) == (["disabled", "disabled"], 1)
            assert (await post.desk.switch(ALICE, first.id, enabled=True)).disabled is None
            await post.owe(receiver.url)
            await post.work()
            assert await post.states() == ["disabled", "disabled", "delivered"]

    run(scenario())


# -- planted bugs


@contextlib.contextmanager
def planted(bug: str) -> Generator[None]:
    """The bug in this process, for a while."""
    BUGS[bug](1)
    try:
        yield
    finally:
        mock.patch.stopall()


@pytest.mark.planted
def test_a_new_id_per_attempt_is_found(begin: Begin, clock: ManualClock) -> None:
    with planted("new_id_per_attempt"), pytest.raises(AssertionError):
        run(scheduled(begin, clock))


@pytest.mark.planted
def test_a_redirect_that_is_followed_is_found(begin: Begin, clock: ManualClock) -> None:
    with planted("redirect_followed"), pytest.raises(AssertionError):
        run(redirected(begin, clock))
