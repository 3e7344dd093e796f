"""Sessions that are lost, refused, renewed and left, and the streams within them."""

import asyncio
import logging
import threading

import pytest

from dragoman.errors import NotAuthenticated, NotAuthorized, Overloaded
from dragoman.model.errors import BadRequest
from dragoman.sdk.connect.links import SessionOver
from tests.sdk.connect_worker import AWAY, Worker, played
from tests.support.run import run
from tests.support.scripted_link import Scripted, connected


def test_a_session_that_is_over_is_followed_by_one_that_is_told_what_runs() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: at.link.said("c1") == ["start", "progress"])
        at.link.end_session()
        await at.until(lambda: len(at.link.hellos) > 1)
        hello = at.link.hellos[-1]
        assert "session_id" not in hello and "card" in hello
        assert hello["running"] == [{"call_id": "c1", "attempt": 1, "n": 2}]
        worker.go_on.set()
        await at.until(lambda: at.link.said("c1") == ["start", "progress", "complete"])

    played(worker, told)
    assert worker.ran == ["c1"]


def test_whatever_hears_first_that_a_session_is_over_opens_the_next() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.telling.append(SessionOver())
        at.link.offer("c1")
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])
        at.link.opening.append(SessionOver())
        await at.pass_s(12)
        await at.until(lambda: sum("card" in hello for hello in at.link.hellos) == 3)

    played(worker, told)


def test_calls_that_a_new_session_drops_are_cancelled_at_once_and_say_nothing_more() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: at.link.said("c1") == ["start", "progress"])
        at.link.opening.append({"drop": ["c1"], "session_id": "s1"})
        at.link.end_session()
        await at.until(lambda: worker.cancelled == ["c1"])
        await at.pass_s(12)
        assert at.link.said("c1") == ["start", "progress"]
        assert at.link.hellos[-1]["running"] == []

    played(worker, told)


def test_a_frame_that_comes_again_after_a_lost_stream_is_known() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1")
        await at.until(lambda: at.link.said("c1") == ["start", "complete"])
        at.link.break_stream()
        await at.until(lambda: len(at.link.streams) == 2)
        at.link.offer("c2")
        await at.until(lambda: at.link.said("c2") == ["start", "complete"])
        at.link.repeating = 2
        for number in (3, 4):
            at.link.break_stream(AWAY)
            await at.until(lambda: len(at.link.streams) == number)  # noqa: B023
        at.link.offer("c3")
        await at.until(lambda: at.link.said("c3") == ["start", "complete"])
        assert at.link.streams == [("s0", 0), ("s0", 1), ("s0", 2), ("s0", 2)]

    played(worker, told)
    assert worker.ran == ["c1", "c2", "c3"]


def test_lost_streams_are_opened_again_later_and_later() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        for _ in range(6):
            at.link.break_stream(AWAY)
        began = at.clock.monotonic()
        await at.until(lambda: len(at.link.streams) == 7)
        # Without chance, half of 0.2, 0.4, 0.8, 1.6, 3.2 and 6.4 s.
        assert 6.3 <= at.clock.monotonic() - began < 7.0

    played(worker, told)


def test_a_hub_that_drains_is_left_alone_for_as_long_as_it_says() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.say("drain", reconnect_after_ms=3000)
        at.link.break_stream()
        await at.pass_s(2.5)
        assert len(at.link.streams) == 1
        await at.pass_s(1)
        assert len(at.link.streams) == 2

    played(worker, told)


def test_heartbeats_tell_what_runs_and_go_on_through_failures() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: at.link.said("c1") == ["start", "progress"])
        at.link.opening.extend([AWAY, AWAY])
        await at.pass_s(22)
        beats = at.link.hellos[1:]
        assert len(beats) == 4, "at ten seconds, twice again soon after, and at twenty"
        assert all(beat["session_id"] == "s0" and beat["received"] == 1 and "card" not in beat for beat in beats)
        assert beats[0]["running"] == [{"call_id": "c1", "attempt": 1, "n": 2}]

    played(worker, told)


def test_a_hub_that_is_away_at_first_is_waited_for_and_said_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        worker = Worker()
        with connected(worker.agent) as at:
            at.link.opening.extend([AWAY, AWAY, Overloaded(), AWAY])
            await at.until(at.connection.opened.is_set)
            assert len(at.link.hellos) == 5

    with caplog.at_level(logging.INFO):
        run(play())
    said = [record.message for record in caplog.records]
    assert said == ["No hub answers at http://127.0.0.1:1. Trying again until it answers.", "The hub answers again."]


@pytest.mark.parametrize("refusal", [NotAuthenticated(), NotAuthorized("an id of somebody else"), BadRequest("card")])
@pytest.mark.parametrize("later", [False, True])
def test_a_hub_that_refuses_the_agent_ends_it_with_that_error(refusal: Exception, later: bool) -> None:
    async def play() -> None:
        worker = Worker()
        with connected(worker.agent) as at:
            if later:
                await at.until(at.connection.opened.is_set)
                at.link.offer("c1", "wait")
                await at.until(lambda: worker.ran == ["c1"])
            at.link.opening.append(refusal)
            with pytest.raises(type(refusal)) as raised:
                await at.until(at.task.done, step_s=1)
                at.task.result()
            assert raised.value is refusal
            assert at.link.closed

    run(play())


def test_an_agent_that_is_stopped_finishes_what_runs_hands_back_what_comes_and_leaves() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        at.link.offer("c2", "ask")
        await at.until(lambda: at.link.said("c2") == ["start", "ask"])
        at.connection.stop()
        await at.settle()
        assert at.link.hellos[-1]["capacity"] == 0
        at.link.offer("c3")
        await at.pass_s(20)
        assert at.link.said("c3") == ["released"] and not at.task.done()
        worker.go_on.set()
        await at.pass_s(1)
        assert at.task.done() and at.link.said("c1")[-1:] == ["complete"]
        assert at.link.said("c2") == ["start", "ask"], "whoever takes it up has what was answered"
        assert at.link.left == ["s0"] and at.link.closed and not at.connection.stuck

    played(worker, told)
    assert worker.cancelled == []


def test_an_agent_that_waits_for_its_hub_may_be_stopped() -> None:
    async def play() -> None:
        with connected(Worker().agent) as at:
            at.link.opening.extend([AWAY] * 1000)
            await at.pass_s(5)
            at.connection.stop()
            await at.settle()
            assert at.task.done() and at.link.closed and at.link.left == []

    run(play())


def test_an_agent_whose_loop_ends_without_a_stop_still_leaves() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: worker.ran == ["c1"])
        at.task.cancel()
        await at.settle()
        assert at.task.cancelled() and at.link.left == ["s0"] and at.link.closed

    played(worker, told)
    assert worker.cancelled == ["c1"]


def test_what_is_not_done_thirty_seconds_after_a_stop_is_left_to_others() -> None:
    worker = Worker()

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "wait")
        await at.until(lambda: worker.ran == ["c1"])
        at.connection.stop()
        await at.pass_s(29)
        assert not worker.cancelled
        await at.pass_s(2)
        assert at.task.done() and worker.cancelled == ["c1"]
        assert at.link.said("c1") == ["start", "progress"], "it was not cancelled by anybody who may"

    played(worker, told)


def test_a_thread_that_does_not_look_holds_nobody_up() -> None:
    worker = Worker()
    held = threading.Event()

    def stubborn() -> str:
        worker.ran.append("stubborn")
        held.wait(10)
        return "late"

    worker.agent.skill(stubborn)

    async def told(at: Scripted) -> None:
        at.link.offer("c1", "stubborn")
        await at.until(lambda: worker.ran == ["stubborn"])
        at.connection.stop()
        await at.pass_s(37)
        assert at.link.left == ["s0"] and at.connection.stuck
        held.set()
        async with asyncio.timeout(5):
            await asyncio.wait({at.task})

    played(worker, told)
