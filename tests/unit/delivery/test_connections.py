"""The switchboard, on a clock that stands still: who waits how long, who gets what, and what is acknowledged when."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.delivery.board import Running
from dragoman.delivery.connections import UNREAD_S
from dragoman.model.call import Before
from dragoman.model.errors import EventGap, Overloaded, SessionOver, StaleAttempt
from dragoman.model.operations import Priority, Wait
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.support.switchboard import LEASE_S, Switchboard, switchboard

DONE: tuple[str, dict[str, Any]] = ("complete", {"status": "completed", "result": {"ok": True}})
Play = Callable[[Switchboard], Awaitable[None]]


def played(folder: Path, *lives: Play, outlived: bool = True) -> None:
    """Play these on one store, each in a life of the hub of its own."""

    async def all_of_them() -> None:
        clock = ManualClock()
        for life in lives:
            async with switchboard(folder, clock, outlived=outlived) as board:
                await life(board)

    run(all_of_them())


def test_nothing_is_acknowledged_before_it_is_on_disk(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call()
        call = await agent.next("call")
        carried.hold.clear()
        told = agent.tell(call, ("chunk", {"content": "a"}))
        await board.settle()
        assert not told.done()
        again = agent.tell(call, ("chunk", {"content": "a"}))  # The client gave up waiting, and says it once more.
        await board.settle()
        assert not again.done()
        carried.hold.set()
        assert (await told, await again) == (1, 1)
        assert (await board.load(carried.task.id)).heard == 1

    played(tmp_path, play)


def test_a_quick_call_is_written_once(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call()
        call = await agent.next("call")
        assert await agent.tell(call, ("start", {})) == 1  # There is nothing in it to keep.
        assert carried.batches == []
        await agent.tell(call, ("chunk", {"content": "a"}), ("chunk", {"content": "b"}), DONE, first=2)
        assert len(carried.batches) == 1
        task = await board.load(carried.task.id)
        assert (task.attempt, task.heard, task.last_seq) == (1, 4, 5)  # submitted, sent, "ab", the result, the end

    played(tmp_path, play)


def test_what_is_told_while_the_last_is_written_is_the_next_batch(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call(wait=Wait.STREAM)
        call = await agent.next("call")
        carried.hold.clear()
        told = [agent.tell(call, ("chunk", {"content": "a"}))]
        await board.settle()
        told += [agent.tell(call, ("chunk", {"content": word}), first=n) for n, word in enumerate("bcd", 2)]
        await board.settle()
        with pytest.raises(Overloaded):
            await agent.tell(call, ("chunk", {"content": "e"}), first=5)
        carried.hold.set()
        assert [await each for each in told] == [1, 2, 3, 4]
        assert len(carried.batches) == 2
        with pytest.raises(EventGap) as gap:
            await agent.tell(call, ("chunk", {"content": "f"}), first=6)
        assert gap.value.details["expected"] == 5

    played(tmp_path, play)


def test_a_caller_waits_15_seconds_for_an_agent_that_may_come(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        late = await board.call()
        early = await board.call()
        await board.pass_time(14.0)
        assert (late.state, early.state) == ("submitted", "submitted")
        agent = await board.open()
        assert len(await agent.frames()) == 2
        board.connections.leave(agent.session)
        await board.settle()
        third = await board.call()
        await board.pass_time(15.0)
        assert third.reason == "AGENT_UNAVAILABLE not_connected"
        assert late.state == "submitted"  # It was given out, and waits for the agent until its time is over.

    played(tmp_path, play)


def test_nobody_waits_for_an_agent_that_an_old_hub_has_never_seen(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        await board.pass_time(31.0)
        carried = await board.call()
        assert carried.reason == "AGENT_UNAVAILABLE not_connected"

    played(tmp_path, play)


def test_what_nobody_waits_for_waits_until_its_deadline_and_takes_no_place(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        carried = await board.call(wait=Wait.NONE, timeout_s=3600)
        lost = await board.call(wait=Wait.NONE, timeout_s=100)
        assert board.resting == 2
        await board.pass_time(1000.0)
        assert (carried.state, lost.reason) == ("submitted", "AGENT_TIMEOUT")
        agent = await board.open()
        assert board.resting == 0
        await agent.tell(await agent.next("call"), DONE)
        await board.settle()
        assert carried.state == "completed"

    played(tmp_path, play)


def test_a_session_lasts_while_it_is_heard_of(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        for _ in range(4):
            await board.pass_time(LEASE_S - 1)
            agent.beat()
        await board.pass_time(LEASE_S)
        assert board.gone == [("weather", 0.0)]
        with pytest.raises(SessionOver):
            board.connections.session(agent.session.id)
        assert await anext(agent.reader, None) is None  # Its stream has ended.

    played(tmp_path, play)


def test_what_is_told_keeps_the_session_too(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        await board.call(timeout_s=1000)
        call = await agent.next("call")
        await board.pass_time(LEASE_S - 1)
        await agent.tell(call, ("progress", {"progress": 0.1}))
        await board.pass_time(LEASE_S - 1)
        assert board.connections.session(agent.session.id) is agent.session

    played(tmp_path, play)


def test_the_most_urgent_goes_first_to_whoever_has_most_room(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        one, two = await board.open(capacity=1), await board.open(capacity=3)
        for _ in range(2):
            await board.call(wait=Wait.NONE)
        assert (await one.frames(), len(await two.frames())) == ([], 2)
        for _ in range(2):
            await board.call(wait=Wait.NONE)
        first = await one.next("call")
        assert len(await two.frames()) == 1
        await board.call(wait=Wait.NONE, priority=Priority.LOW)
        urgent = await board.call(wait=Wait.NONE, priority=Priority.URGENT)
        await one.tell(first, DONE)
        await board.settle()
        assert (await one.next("call"))["call_id"] == urgent.task.id

    played(tmp_path, play)


def test_an_answer_goes_to_who_asked_once_there_is_room(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent, other = await board.open(capacity=1), await board.open(capacity=0)
        asking = await board.call()
        await agent.tell(await agent.next("call"), ("ask", {"ask": 0, "prompt": "?"}))
        await board.settle()
        assert asking.state == "input-required"
        await board.call()
        busy = await agent.next("call")  # A call that asks takes no room.
        answered = await board.answer(asking, "blue")
        waiting = await board.call()
        assert await agent.frames() == []
        board.connections.renewed(other.session, 1, 0, ())
        await board.settle()
        assert (await other.next("call"))["call_id"] == waiting.task.id  # The answer is for the one that asked alone.
        await agent.tell(busy, DONE)
        await board.settle()
        answer = await agent.next("input")
        assert (answer["call_id"], answer["attempt"], answer["ask"]) == (asking.task.id, 2, 0)
        await agent.tell(answer, DONE)
        await board.settle()
        assert answered.state == "completed"

    played(tmp_path, play)


def test_a_process_whose_stream_is_closed_is_waited_for_a_moment_not_for_its_lease(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        killed, other = await board.open(), await board.open(capacity=0)
        await board.call()
        call = await killed.next("call")
        killed.reader.close()
        await board.pass_time(UNREAD_S - 1)
        killed.reader = board.connections.frames(killed.session, 1)  # It was only the connection.
        await board.pass_time(UNREAD_S)
        assert (await killed.frames(), killed.session.over) == ([], False)
        killed.reader.close()
        await board.pass_time(UNREAD_S)
        assert killed.session.over
        board.connections.renewed(other.session, 1, 0, ())
        await board.settle()
        again = await other.next("call")
        assert (again["call_id"], again["attempt"]) == (call["call_id"], 2)

    played(tmp_path, play)


def test_a_stream_that_takes_anothers_place_ends_no_session(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        first, agent.reader = agent.reader, board.connections.frames(agent.session, 0)
        first.close()
        await board.pass_time(UNREAD_S + 1)
        assert not agent.session.over

    played(tmp_path, play)


def test_an_answer_whose_process_is_lost_goes_to_another_with_the_whole_call(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open(capacity=1)
        asking = await board.call()
        await agent.tell(await agent.next("call"), ("ask", {"ask": 0, "prompt": "?"}))
        await board.settle()
        await board.call(timeout_s=1000)
        await board.answer(asking, "blue")  # It waits for room where it was asked.
        await board.pass_time(LEASE_S)
        other = await board.open()
        found = {data["call_id"]: (name, data) for name, data in await other.frames()}
        name, whole = found[asking.task.id]
        assert (name, whole["attempt"], len(whole["answers"])) == ("call", 2, 1)
        # A question that was answered there is lost again: the whole call, once more.
        await board.pass_time(LEASE_S)
        third = await board.open()
        found = {data["call_id"]: (name, data) for name, data in await third.frames()}
        assert found[asking.task.id][1]["attempt"] == 3

    played(tmp_path, play)


def test_a_process_that_comes_back_goes_on_and_one_that_comes_too_late_drops_it(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call(timeout_s=1000)
        call = await agent.next("call")
        await agent.tell(call, ("start", {}), ("chunk", {"content": "a"}))
        await board.pass_time(LEASE_S)
        with pytest.raises(SessionOver):
            await agent.tell(call, ("chunk", {"content": "b"}), first=3)
        running = Running(call_id=call["call_id"], attempt=1, n=2)
        back = await board.open(running=(running,))
        assert (back.keep, await back.frames()) == ([call["call_id"]], [])
        assert await back.tell(call, ("chunk", {"content": "b"}), first=3) == 3
        await board.pass_time(LEASE_S)
        other = await board.open()
        again = await other.next("call")
        assert (again["attempt"], again["heard"]) == (2, {"attempt": 1, "n": 3})
        late = await board.open(running=(running,))
        assert late.drop == [call["call_id"]]
        with pytest.raises(StaleAttempt):
            await late.tell(call, DONE, first=4)
        await other.tell(again, ("chunk", {"content": "c"}), ("complete", {"status": "completed"}))
        await board.settle()
        assert carried.task.result == {"text": "abc"}  # It went on where the first had stopped.

    played(tmp_path, play)


@pytest.mark.parametrize(("read", "left", "again"), [(True, False, False), (False, False, True), (True, True, True)])
def test_what_may_be_begun_once_only_is_given_to_another_only_if_it_was_not_begun(
    tmp_path: Path, read: bool, left: bool, again: bool
) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call(at_most_once=True, wait=Wait.NONE, timeout_s=1000)
        if read:
            await agent.next("call")
        if left:
            board.connections.leave(agent.session)
        await board.pass_time(LEASE_S)
        other = await board.open()
        assert [name for name, _ in await other.frames()] == (["call"] if again else [])
        assert carried.reason == (None if again else "AGENT_ERROR interrupted")

    played(tmp_path, play)


def test_a_call_that_is_cancelled_before_it_was_read_is_never_read(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        unread, read = await board.call(), None
        board.connections.cancel(unread.task, "no")
        assert await agent.frames() == []
        read = await board.call()
        call = await agent.next("call")
        board.connections.cancel(read.task, "no")
        assert await agent.next("cancel") == {"call_id": call["call_id"], "attempt": 1, "reason": "no"}
        slow = await board.call(timeout_s=5)
        await agent.next("call")
        await board.pass_time(5.0)
        assert slow.reason == "AGENT_TIMEOUT"
        board.connections.cancel(slow.task, "timeout")
        assert (await agent.next("cancel"))["reason"] == "timeout"
        asking = await board.call()
        await agent.tell(await agent.next("call"), ("ask", {"ask": 0, "prompt": "?"}))
        await board.settle()
        board.connections.cancel(asking.task, "nobody can answer")
        assert (await agent.next("cancel"))["call_id"] == asking.task.id

    played(tmp_path, play)


def test_a_session_that_takes_nothing_gets_no_more_calls(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        deaf = await board.open(capacity=1000)
        deaf.session.say("call", {"large": "x" * 9 * 1024 * 1024})
        carried = await board.call(wait=Wait.NONE)
        assert carried.state == "submitted" and deaf.session.free == 0
        deaf.beat(received=1)
        await board.settle()
        assert [name for name, _ in await deaf.frames()] == ["call"]

    played(tmp_path, play)


def test_a_process_that_has_a_call_keeps_it_over_the_hubs_death(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    async def before(board: Switchboard) -> None:
        agent = await board.open()
        await board.call(timeout_s=1000)
        calls.append(await agent.next("call"))
        await agent.tell(calls[0], ("chunk", {"content": "a"}), ("unknown", {}))

    async def after(board: Switchboard) -> None:
        call = calls[0]
        running = Running(call_id=call["call_id"], attempt=1, n=2)
        other = await board.open(running=(Running(call_id=call["call_id"], attempt=2),))
        assert other.drop == [call["call_id"]]  # Nobody has it under that attempt.
        agent = await board.open(running=(running,))
        assert agent.keep == [call["call_id"]]
        assert (await board.open(running=(running,))).drop == [call["call_id"]]  # One alone keeps it.
        told = agent.tell(call, ("chunk", {"content": "b"}), first=3)
        await board.settle()
        assert not told.done()  # Nobody carries it yet.
        carried = await board.take_up(call["call_id"], Before.UNREPEATABLE)
        assert await told == 3
        assert await agent.tell(call, ("chunk", {"content": "a"}), first=1) == 3
        await agent.tell(call, ("complete", {"status": "completed"}), first=4)
        await board.settle()
        assert carried.task.result == {"text": "ab"}

    played(tmp_path, before, after)


def test_an_answer_that_was_not_handed_on_before_the_hub_died_is_handed_on_after(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []

    async def before(board: Switchboard) -> None:
        agent = await board.open()
        asking = [await board.call(), await board.call()]
        for _, call in await agent.frames():
            calls.append(call)
            await agent.tell(call, ("ask", {"ask": 0, "prompt": "?"}))
        await board.settle()
        board.connections.renewed(agent.session, 0, 0, ())  # There is no room for an answer.
        for each in asking:
            await board.answer(each, "blue")
        assert await agent.frames() == []

    async def after(board: Switchboard) -> None:
        early, late = (Running(call_id=call["call_id"], attempt=1, n=1) for call in calls)
        agent = await board.open(running=(early,))
        assert agent.keep == [early.call_id]
        await board.take_up(early.call_id, Before.UNREPEATABLE)
        answer = await agent.next("input")
        assert (answer["call_id"], answer["attempt"], answer["ask"]) == (early.call_id, 2, 0)
        # And one whose carrier was there before its process.
        await board.take_up(late.call_id, Before.UNREPEATABLE)
        assert await agent.frames() == []
        other = await board.open(running=(late,))
        assert (other.keep, (await other.next("input"))["call_id"]) == ([late.call_id], late.call_id)

    played(tmp_path, before, after)


@pytest.mark.parametrize(
    ("sent", "after_s", "reason"),
    [(Before.REPEATABLE, 5.0, None), (Before.UNREPEATABLE, LEASE_S, "AGENT_ERROR interrupted")],
)
def test_a_call_that_nobody_has_any_more_waits_a_while_for_its_process(
    tmp_path: Path, sent: Before, after_s: float, reason: str | None
) -> None:
    ids: list[str] = []

    async def before(board: Switchboard) -> None:
        agent = await board.open()
        ids.append((await board.call(timeout_s=1000)).task.id)
        await agent.tell(await agent.next("call"), ("chunk", {"content": "a"}))

    async def after(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.take_up(ids[0], sent)
        await board.pass_time(after_s - 0.1)
        assert (await agent.frames(), carried.reason) == ([], None)
        await board.pass_time(0.2)
        frames = await agent.frames()
        assert carried.reason == reason
        if reason is None:
            ((_, call),) = frames
            assert (call["attempt"], call["heard"]) == (2, {"attempt": 1, "n": 1})
            assert (await board.load(ids[0])).attempt == 2  # On disk before the agent knew.

    played(tmp_path, before, after)


def test_agents_that_die_with_their_hub_are_not_waited_for(tmp_path: Path) -> None:
    ids: list[str] = []

    async def before(board: Switchboard) -> None:
        agent = await board.open()
        for _ in range(2):
            ids.append((await board.call(timeout_s=1000)).task.id)
        for _, call in await agent.frames():
            await agent.tell(call, ("chunk", {"content": "a"}))

    async def after(board: Switchboard) -> None:
        agent = await board.open()
        again = await board.take_up(ids[0], Before.REPEATABLE)
        never = await board.take_up(ids[1], Before.UNREPEATABLE)
        assert (await agent.next("call"))["call_id"] == again.task.id
        assert never.reason == "AGENT_ERROR interrupted"

    played(tmp_path, before, after, outlived=False)


def test_what_is_told_of_a_call_that_the_hub_ended_is_stale(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call()
        call = await agent.next("call")
        carried.hold.clear()
        told = agent.tell(call, ("chunk", {"content": "a"}))
        await board.settle()
        assert carried.work is not None
        carried.work.cancel()  # Somebody cancelled the call while this was being written.
        with pytest.raises(StaleAttempt):
            await told
        with pytest.raises(StaleAttempt):
            await agent.tell({"call_id": "never-was", "attempt": 1}, DONE)

    played(tmp_path, play)


def test_while_a_call_asks_nothing_more_of_it_is_taken(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        await board.call()
        call = await agent.next("call")
        await agent.tell(call, ("ask", {"ask": 0, "prompt": "?"}))
        await board.settle()
        assert await agent.tell(call, ("ask", {"ask": 0, "prompt": "?"})) == 1
        with pytest.raises(Overloaded):
            await agent.tell(call, ("chunk", {"content": "meanwhile"}), first=2)

    played(tmp_path, play)


def test_what_follows_the_end_is_not_listened_to(tmp_path: Path) -> None:
    async def play(board: Switchboard) -> None:
        agent = await board.open()
        carried = await board.call()
        call = await agent.next("call")
        carried.hold.clear()
        first = agent.tell(call, DONE)
        more = agent.tell(call, ("chunk", {"content": "late"}), first=2)
        await board.settle()
        carried.hold.set()
        assert await first == 1
        assert await asyncio.wait_for(more, 5) == 1
        await board.settle()
        assert carried.state == "completed"

    played(tmp_path, play)
