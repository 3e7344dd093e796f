"""Callbacks keep the order of events, receivers do not hold up each other, and no forbidden address is dialled."""

import asyncio

import pytest

from dragoman.delivery.notices import NOTICE_S
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import completed, moved
from tests.support.outbox import ALICE, Begin, Post, Receiver, receiving
from tests.support.run import run


async def told_in_order(post: Post, receiver: Receiver, clock: ManualClock) -> Task:
    callback = Callback(id="cb", dialect="agentvault", url=receiver.url, tells=Tells.EVENTS)
    task = await post.open(callback)
    task = await post.grow(task, moved(clock, TaskState.WORKING), moved(clock, TaskState.INPUT_REQUIRED))
    await post.work()
    return await post.grow(task, moved(clock, TaskState.WORKING), completed(clock))


def numbers(receiver: Receiver) -> list[int]:
    """Of which events the receiver heard, without the calls that have only an end."""
    ids = [one.headers["webhook-id"] for one in receiver.got]
    return [int(one.rpartition("_")[2]) for one in ids if one.startswith("wh_")]


def test_a_late_notice_holds_back_the_later_ones_of_its_own_line_also_after_a_restart(
    begin: Begin, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with receiving(clock) as receiver:
            receiver.statuses(200, 500, 500)
            async with begin() as post:
                await told_in_order(post, receiver, clock)
                await post.work()
                assert numbers(receiver) == [2, 3]
                await post.owe(receiver.url)  # Another call, to the same address: another line.
                await post.work()
                assert len(receiver.got) == 3
            async with begin() as post:
                assert await post.work() == 0
                assert await post.pass_time() == 5
                assert numbers(receiver) == [2, 3, 3, 4, 5]

    run(scenario())


def test_a_line_goes_on_after_one_was_parked_and_a_replay_takes_its_place_again(
    begin: Begin, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.statuses(*([500] * 9))
            await told_in_order(post, receiver, clock)
            for _ in range(7):
                await post.pass_time()
            assert await post.states() == ["parked", "pending", "pending", "pending"]
            assert numbers(receiver) == [2] * 8 + [3]
            (parked, *_) = await post.listed()
            await post.desk.replay_one(ALICE, parked.id)
            await post.work()
            assert numbers(receiver)[9:] == [2, 3, 4, 5]
            assert set(await post.states()) == {"delivered"}

    run(scenario())


# -- lanes


def test_a_dead_receiver_holds_up_no_other_and_has_eight_attempts_at_once(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as dead, receiving(clock) as other:
            dead.always = None
            for _ in range(40):
                await post.owe(dead.url)
            async with asyncio.TaskGroup() as group:
                working = [group.create_task(post.outbox.deliver(job)) for job in await post.due()]
                await dead.arrived(8)
                await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                while sum(not each.done() for each in working) > 8:
                    await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                await post.owe(other.url)
                assert await post.work() == 1
                assert len(other.got) == 1
                for round_ in range(2, 6):
                    clock.advance(NOTICE_S + 0.1)
                    await dead.arrived(8 * round_)
                clock.advance(NOTICE_S + 0.1)
            assert dead.most_busy == 8
            assert [one.tries for one in await post.listed(url=dead.url)] == [1] * 40

    run(scenario())


# -- addresses


@pytest.mark.req("X-17")
def test_a_receiver_whose_name_moves_to_a_forbidden_address_is_not_connected_to(
    begin: Begin, clock: ManualClock
) -> None:
    async def scenario() -> None:
        addresses = ["127.0.0.1"]

        async def resolve(_: str) -> list[str]:
            return addresses

        async with begin(resolve) as post, receiving(clock) as receiver:
            receiver.answers = [(500, {"Connection": "close"})]
            await post.owe(f"http://moving.example:{receiver.server.port}/done")
            await post.work()
            assert receiver.server.accepted == 1
            met: list[str] = []

            async def meet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                met.append("somebody who was not to be met")
                writer.close()

            addresses[:] = ["127.0.0.2"]
            async with await asyncio.start_server(meet, "127.0.0.2", receiver.server.port):
                clock.advance(60)
                await post.work()
            (refused,) = await post.listed()
            assert (refused.state, refused.tries, refused.answer) == ("pending", 2, "address not allowed")
            assert (met, receiver.server.accepted) == ([], 1)

    run(scenario())
