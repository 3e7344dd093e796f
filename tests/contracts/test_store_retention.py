"""What a store removes when its time is over, and what it never does; the audit stays whole."""

import asyncio
from datetime import timedelta
from typing import Final

import pytest

from dragoman.model.figures import Counted
from dragoman.model.figures import Outcome as CallOutcome
from dragoman.model.operations import Discover, ListTasks
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.audit import TRIMMED, Act, AuditQuery, Checked, SignedHead, Window
from dragoman.ports.deliveries import DeliveryState, NewNotice, Outcome
from dragoman.ports.minutes import Minute, MinuteQuery
from dragoman.ports.store import CALLBACKS, Mark, NewJob, Once, Opening, Rating, Registration, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import (
    EVERYONE,
    chunk,
    completed,
    moved,
    new_agent,
    new_task,
    once,
    opening,
    sent,
    step,
)
from tests.support.run import run

DAY: Final = 86_400.0


async def quick(store: Store, clock: ManualClock, **how: str) -> Task:
    """A call that is one row."""
    task = new_task(clock, **how)
    await store.open(opening(task))
    growth = step(task, sent(clock), completed(clock))
    await store.append(growth)
    return growth.task


async def long(store: Store, clock: ManualClock, chunks: int = 2, *, ends: bool = True, **how: str) -> Task:
    """A call that has rows of its own for its events; where it does not end it is open."""
    task = new_task(clock, **how)
    await store.open(opening(task, durable=True))
    for events in ((sent(clock), moved(clock, TaskState.WORKING)), [chunk(clock, f"{n} ") for n in range(chunks)]):
        growth = step(task, *events)
        await store.append(growth)
        task = growth.task
    if ends:
        growth = step(task, completed(clock))
        await store.append(growth)
    return growth.task


async def expire_calls(store: Store, clock: ManualClock, days: float) -> int:
    """Remove all that ended so many days ago; how many calls went."""
    removed, after = 0, 0
    before = clock.now() - timedelta(days=days)
    while True:
        done = await store.expire_calls(before, after)
        removed += done.calls
        if done.next is None:
            return removed
        assert done.next > after
        after = done.next


async def expire_rest(store: Store, clock: ManualClock, days: float | None = None) -> int:
    """Remove what expires by itself, and mail of so many days ago; how many rows went."""
    rows = 0
    while True:
        mail = None if days is None else clock.now() - timedelta(days=days)
        done = await store.expire_rest(clock.now(), mail)
        rows += done.rows
        if done.next is None:
            return rows


async def verified(store: Store) -> Checked:
    """All of the audit, checked; the figures of all its pieces together."""
    window, calls, unvouched = Window(), 0, 0
    while True:
        piece = await store.check_audit(window)
        calls, unvouched = calls + piece.calls, unvouched + piece.unvouched
        if piece.broken is not None or piece.cursor is None:
            return Checked(
                done=piece.done,
                total=piece.total,
                calls=calls,
                unvouched=unvouched,
                since=piece.since,
                broken=piece.broken,
            )
        window = Window(cursor=piece.cursor)


async def there(store: Store, *tasks: Task) -> list[bool]:
    return [await store.load(EVERYONE, task.id) is not None for task in tasks]


def test_what_ended_long_ago_goes_with_all_of_it_and_what_is_open_or_young_stays(
    store: Running, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with store() as running:
            old_quick, old_long = await quick(running, clock), await long(running, clock)
            old_open = await long(running, clock, ends=False)
            clock.advance(40 * DAY)
            young_quick, young_long = await quick(running, clock), await long(running, clock)
            assert await expire_calls(running, clock, days=30) == 2
            kept = [False, False, True, True, True]
            assert await there(running, old_quick, old_long, old_open, young_quick, young_long) == kept
            assert list(await running.events(old_long.id, 0, 100)) == []
            assert len(await running.events(old_open.id, 0, 100)) == old_open.last_seq
            listed = await running.list_tasks(EVERYONE, ListTasks(limit=100))
            assert {task.id for task in listed.tasks} == {old_open.id, young_quick.id, young_long.id}
            assert (await verified(running)).broken is None
            assert await expire_calls(running, clock, days=30) == 0
        async with store() as running:
            assert await there(running, old_quick, old_long, old_open, young_quick, young_long) == kept
            assert (await verified(running)).broken is None

    run(scenario())


def test_a_call_whose_end_came_late_is_as_young_as_its_end(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = await long(running, clock, ends=False)
            clock.advance(40 * DAY)
            await running.append(step(task, completed(clock)))
            assert await expire_calls(running, clock, days=30) == 0
            clock.advance(31 * DAY)
            assert await expire_calls(running, clock, days=30) == 1

    run(scenario())


def test_what_is_owed_to_somebody_stays_until_it_was_told(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("hub")
            task = new_task(clock)
            await running.open(opening(task))
            notice = NewNotice(callback_id="cb", seq=3, url="https://told.example/")
            born = NewJob(queue=CALLBACKS, notice=notice)
            await running.append(step(task, sent(clock), completed(clock), jobs=[born]))
            clock.advance(40 * DAY)
            assert await expire_calls(running, clock, days=30) == 0
            (job,) = await running.lease([CALLBACKS], 10, owner)
            outcome = Outcome(state=DeliveryState.DELIVERED, url="https://told.example/", at=clock.now(), answer="200")
            assert await running.attempted(job, outcome)
            assert await expire_calls(running, clock, days=30) == 1
            assert (await verified(running)).broken is None

    run(scenario())


def test_the_first_call_of_a_conversation_stays_while_the_conversation_does(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = await quick(running, clock, context="ctx", caller="alice")
            second = await quick(running, clock, context="ctx", caller="bob")
            clock.advance(40 * DAY)
            third = await quick(running, clock, context="ctx", caller="bob")
            assert await expire_calls(running, clock, days=30) == 1
            assert await there(running, first, second, third) == [True, False, True]
            assert await running.context_owner("acme", "ctx") == "alice"
            clock.advance(40 * DAY)
            assert await expire_calls(running, clock, days=30) == 1
            assert await expire_calls(running, clock, days=30) == 1
            assert await running.context_owner("acme", "ctx") is None

    run(scenario())


def test_a_long_call_goes_in_pieces_and_its_events_all_go(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = await long(running, clock, chunks=1300)
            after = await quick(running, clock)
            clock.advance(40 * DAY)
            done = await running.expire_calls(clock.now() - timedelta(days=30), 0)
            assert done.calls == 1
            assert done.rows <= 502
            assert await there(running, task) == [False]
            assert (await verified(running)).broken is None
            assert await expire_calls(running, clock, days=30) == 1
        async with store() as running:
            assert await expire_rest(running, clock) >= 800
            assert await expire_rest(running, clock) == 0
            assert await there(running, task, after) == [False, False]
            assert (await running.usage()).stored_bytes.get("acme", 0) == 0

    run(scenario())


def test_numbers_of_removed_calls_and_notices_are_not_given_again(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await quick(running, clock)
            await long(running, clock, chunks=600)
            clock.advance(40 * DAY)
            assert await expire_calls(running, clock, days=30) == 2
        async with store() as running:
            # Under a number of before it would meet events that are still there, or lose its own with them.
            await quick(running, clock)
            task = await long(running, clock, chunks=600)
            await expire_rest(running, clock)
            assert len(await running.events(task.id, 0, 1000)) == task.last_seq
            found = await verified(running)
            assert (found.broken, found.unvouched) == (None, 0)

    run(scenario())


def test_a_removed_call_is_known_by_no_name_any_more(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            for_ever = clock.now() + timedelta(days=365_000)
            alias = Once(principal="alice", scope="alias", key="mine", digest=b"", expires_at=for_ever)
            kept = once(clock, "k1")
            how = Opening(task=task, job=NewJob(queue="call"), durable=True, once=kept, alias=alias)
            await running.open(how)
            await running.append(step(task, sent(clock), completed(clock)))
            await running.register(Registration(agent=new_agent(clock, "weather")))
            rating = Rating(
                tenant="acme", agent_id="weather", task_id=task.id, stars=1, rated_at=clock.now(), comment="x"
            )
            await running.rate(rating)
        clock.advance(40 * DAY)
        async with store() as running:
            assert await expire_calls(running, clock, days=30) == 1
            assert await running.find_once("acme", "alice", "alias", "mine") is None
            assert await running.find_once("acme", "alice", "key", "k1") is None
            assert await expire_rest(running, clock) == 1
            other = new_task(clock)
            assert await running.open(opening(other, durable=True, once=once(clock, "k1"))) is not None
            found = await running.search(EVERYONE, Discover())
            assert found.agents[0].figures.rating < 4.5  # What was said of the agent still counts.

    run(scenario())


def test_expired_keys_marks_and_old_mail_go(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for number in range(3):
                await running.open(opening(new_task(clock), durable=True, once=once(clock, f"k{number}", hours=1)))
            seen = Mark(tenant="acme", caller="alice", digest=b"m", expires_at=clock.now() + timedelta(minutes=10))
            assert await running.see([seen])
            await running.put_mail("acme", "box", b"old")
            assert await expire_rest(running, clock, days=30) == 0
            clock.advance(40 * DAY)
            await running.put_mail("acme", "box", b"new")
            assert await expire_rest(running, clock) == 4
            assert await expire_rest(running, clock, days=30) == 1
            assert [body for _, body in await running.read_mail("acme", "box", 0, 10)] == [b"new"]

    run(scenario())


def test_the_audit_begins_later_and_is_still_a_whole_chain(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await quick(running, clock)
            old_open = await long(running, clock, ends=False)
            await running.keep_head(SignedHead(n=(await running.audit_head()).n, token="old"))
            clock.advance(500 * DAY)
            began = clock.now()
            await running.note(Act(tenant="acme", principal="alice", action="key.created", object="k"))
            young = await quick(running, clock)
            assert await expire_calls(running, clock, days=30) == 1
            done = await running.expire_audit(clock.now() - timedelta(days=400))
            assert done.rows > 3
            assert done.next is None
            found = await verified(running)
            assert (found.broken, found.since) == (None, began)
            assert found.unvouched == 1  # The old open call: only rows that are gone told of it.
            assert await there(running, old_open, young) == [True, True]
            assert list(await running.signed_heads(10)) == []
            listed = await running.list_audit(AuditQuery())
            assert [row.action for row in listed.rows] == [TRIMMED, "key.created"]
            assert (await running.expire_audit(clock.now() - timedelta(days=400))).rows == 0
            # What happens to it now is vouched for again.
            await running.append(step(old_open, completed(clock)))
            assert (await verified(running)).unvouched == 0
        async with store() as running:
            await quick(running, clock)
            assert (await verified(running)).broken is None
            since = await running.check_audit(Window(since=clock.now()))
            assert since.broken is None

    run(scenario())


def test_the_last_row_of_the_audit_always_stays(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await quick(running, clock)
            clock.advance(500 * DAY)
            for _ in range(3):
                await running.expire_audit(clock.now() - timedelta(days=400))
            assert (await verified(running)).broken is None
        async with store() as running:
            await quick(running, clock)
            assert (await verified(running)).broken is None

    run(scenario())


def test_calls_that_are_removed_while_the_audit_is_checked_break_nothing(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for number in range(210):
                await running.note(Act(tenant="acme", principal="alice", action="key.created", object=str(number)))
            await asyncio.gather(*[quick(running, clock) for _ in range(40)])
            clock.advance(500 * DAY)
            await asyncio.gather(*[quick(running, clock) for _ in range(20)])
            piece = await running.check_audit(Window())
            assert piece.cursor is not None
            await expire_calls(running, clock, days=30)
            await running.expire_audit(clock.now() - timedelta(days=400))
            while piece.cursor is not None:
                piece = await running.check_audit(Window(cursor=piece.cursor))
                assert piece.broken is None

    run(scenario())


def test_old_statistics_are_those_of_hours_and_then_go(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            minute = int(clock.now().timestamp()) // 60 // 60 * 60
            counted = Counted(outcome=CallOutcome.COMPLETED, count=1, sum_ms=5, buckets=(1, *[0] * 23))
            made = [
                Minute(tenant="acme", agent_id="weather", skill="s", minute=at, counted=counted)
                for at in (*range(minute, minute + 300), *range(minute, minute + 300, 7))
            ]
            await running.add_minutes(made, [])
            query = MinuteQuery(since=minute, until=minute + 10_000, by=60, tenant="acme", agent_id="weather")
            before = await running.minutes(query)
            fine = MinuteQuery(since=minute, until=minute + 10_000, by=1, tenant="acme", agent_id="weather")
            for days, left in ((10, 300), (40, 5), (500, 0)):
                clock.advance(days * DAY)
                after: int | None = 0
                while after is not None:
                    fold, drop = clock.now() - timedelta(days=30), clock.now() - timedelta(days=400)
                    after = (await running.expire_minutes(fold, drop, after)).next
                assert len(await running.minutes(fine)) == left
                assert list(await running.minutes(query)) == (list(before) if left else [])

    run(scenario())


@pytest.mark.parametrize("quickly", [True, False])
def test_a_whole_file_is_found_to_be_whole(store: Running, clock: ManualClock, quickly: bool) -> None:
    async def scenario() -> None:
        async with store() as running:
            await long(running, clock)
            await running.register(Registration(agent=new_agent(clock, "weather", skills=["s"])))
            assert running.left_open() is False
            found = await running.inspect(quick=quickly)
            assert (found.whole, found.wrong) == (True, ())
        async with store() as running:
            assert running.left_open() is False

    run(scenario())
