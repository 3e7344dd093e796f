"""The audit of a store: acts in their own commits, calls under digests, and a chain that shows every change."""

import asyncio
from datetime import timedelta

import pytest

from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import BadParams, RateLimited
from dragoman.model.events import MessageAdded
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.audit import BEGUN, Act, AuditQuery, Checked, SignedHead, Window
from dragoman.ports.deliveries import NewNotice
from dragoman.ports.store import CALLBACKS, Growth, NewJob, Rating, Registration, Store, StoredAgent
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import (
    ALICE,
    BOB,
    EVERYONE,
    chunk,
    completed,
    moved,
    new_agent,
    new_task,
    opening,
    sent,
    step,
)
from tests.support.run import run


def act(action: str = "agent.registered", object: str = "weather", tenant: str = "acme") -> Act:
    return Act(
        tenant=tenant, principal="alice", key_id="k1", action=action, object=object, request_id="req_1", digest=None
    )


async def checked(store: Store, window: Window | None = None) -> Checked:
    """All of the audit, checked; its figures added up."""
    window = window or Window()
    acts = calls = unvouched = 0
    while True:
        piece = await store.check_audit(window)
        acts, calls, unvouched = acts + piece.acts, calls + piece.calls, unvouched + piece.unvouched
        if piece.cursor is None:
            return Checked(
                done=piece.done,
                total=piece.total,
                acts=acts,
                calls=calls,
                unvouched=unvouched,
                since=piece.since,
                broken=piece.broken,
            )
        window = Window(since=window.since, until=window.until, cursor=piece.cursor)


async def quick(store: Store, clock: ManualClock, **how: str) -> Task:
    task = new_task(clock, said={"secret": "the word"}, **how)
    await store.open(opening(task))
    growth = step(task, sent(clock), completed(clock, {"told": "the answer"}))
    await store.append(growth)
    return growth.task


async def long(store: Store, clock: ManualClock, **how: str) -> Task:
    task = new_task(clock, said={"secret": "the word"}, **how)
    await store.open(opening(task, durable=True))
    for event in (sent(clock), moved(clock, TaskState.WORKING), chunk(clock, "some "), chunk(clock, "words")):
        growth = step(task, event)
        await store.append(growth)
        task = growth.task
    growth = step(task, completed(clock))
    await store.append(growth)
    return growth.task


@pytest.mark.req("E-24")
def test_calls_of_every_kind_are_covered_and_the_chain_is_whole(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await asyncio.gather(*[quick(running, clock) for _ in range(20)])
            await asyncio.gather(*[long(running, clock) for _ in range(5)])
            await running.open(opening(new_task(clock), durable=True))
            found = await checked(running)
            assert found.broken is None
            assert found.calls >= 20 + 5 * 2 + 1
            assert found.unvouched == 0
        async with store() as running:
            await quick(running, clock)
            again = await checked(running)
            assert again.broken is None
            assert again.calls == found.calls + 1

    run(scenario())


def test_an_act_is_noted_with_what_it_did_and_not_without(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            agent = new_agent(clock, "weather")
            await running.register(Registration(agent=agent, act=act()))
            await running.register(Registration(agent=agent, act=act()))
            await running.change_agent("acme", "unknown", None, open_=True, private=None, act=act("agent.changed"))
            assert await running.revoke_key("unknown", clock.now(), act("key.revoked")) is False
            assert list(await running.replay(EVERYONE, ["dlv_1"], act("delivery.replayed"))) == []
            assert await running.switch_receiver(EVERYONE, "dlv_1", "why", clock.now(), act("receiver")) is None
            await running.note(act("settings.loaded"))
            listed = await running.list_audit(AuditQuery())
            assert [(row.action, row.outcome) for row in listed.rows] == [
                ("settings.loaded", "done"),
                ("agent.registered", "changed"),
                ("agent.registered", "created"),
                (BEGUN, "done"),
            ]
            assert listed.rows[0].request_id == "req_1"
            assert (await checked(running)).acts == 4

    run(scenario())


def test_acts_are_listed_by_tenant_and_filter_page_by_page(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for number in range(7):
                await running.note(act("key.created", f"k{number}", "acme" if number % 2 else "other"))
                clock.advance(1)
            of_acme = await running.list_audit(AuditQuery(tenant="acme", limit=2))
            assert [row.object for row in of_acme.rows] == ["k5", "k3"]
            rest = await running.list_audit(AuditQuery(tenant="acme", limit=2, cursor=of_acme.cursor))
            assert [row.object for row in rest.rows] == ["k1"]
            assert rest.cursor is None
            assert [row.object for row in (await running.list_audit(AuditQuery(object="k2"))).rows] == ["k2"]
            since = await running.list_audit(AuditQuery(since=clock.now() - timedelta(seconds=2)))
            assert [row.object for row in since.rows] == ["k6", "k5"]
            with pytest.raises(BadParams):
                await running.list_audit(AuditQuery(cursor="?"))
            await quick(running, clock)
            covering = await running.list_audit(AuditQuery(calls=True))
            assert [row.covers for row in covering.rows] == [1]

    run(scenario())


def test_a_stretch_of_time_is_checked_alone(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for number in range(10):
                await running.note(act("key.created", f"k{number}"))
                clock.advance(10)
            begun = clock.now() - timedelta(seconds=100)
            window = Window(since=begun + timedelta(seconds=25), until=begun + timedelta(seconds=50))
            found = await checked(running, window)
            assert (found.broken, found.acts) == (None, 3)

    run(scenario())


def test_signed_heads_are_kept_with_the_hash_of_their_row(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.note(act())
            head = await running.audit_head()
            await running.keep_head(SignedHead(n=head.n, token="signed"))
            assert list(await running.signed_heads(5)) == [(SignedHead(n=head.n, token="signed"), head.hash)]

    run(scenario())


def test_what_was_written_is_forgotten_and_the_chain_stays_whole(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            one, other, foreign = await quick(running, clock), await long(running, clock), await quick(running, clock)
            still_open = new_task(clock)
            await running.open(opening(still_open, durable=True))
            ids = [one.id, other.id, still_open.id, "unknown"]
            assert list(await running.forget(BOB, ids)) == []
            assert list(await running.forget(ALICE, ids, act("calls.forgotten", "context x"))) == [one.id, other.id]
            for before in (one, other):
                left = await running.load(ALICE, before.id)
                assert left is not None
                assert (left.state, left.created_at, left.ended_at) == (
                    before.state,
                    before.created_at,
                    before.ended_at,
                )
                assert left.forgotten_at is not None
                events = await running.events(before.id, 0, 100)
                assert [each.seq for each in events] == list(range(1, before.last_seq + 1))
                kept = str((left, events))
                assert not [word for word in ("secret", "the word", "the answer", "some", "sky") if word in kept]
            untouched = await running.load(ALICE, foreign.id)
            assert untouched == foreign
            found = await checked(running)
            assert found.broken is None
            newest = (await running.list_audit(AuditQuery(limit=1))).rows[0]
            assert (newest.action, newest.outcome) == ("calls.forgotten", "2 forgotten")

    run(scenario())


def test_what_was_forgotten_does_not_come_back_with_a_late_note(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for before in (await quick(running, clock), await long(running, clock)):
                await running.forget(ALICE, [before.id])
                raced = await running.append(Growth(task=before, after=before.last_seq, events=()))
                assert raced is not None
                assert raced.task.forgotten_at is not None
                again = await running.append(Growth(task=raced.task, after=before.last_seq, events=()))
                assert again is None
                left = await running.load(ALICE, before.id)
                assert left is not None
                assert "secret" not in str(left)
            assert (await checked(running)).broken is None

    run(scenario())


def test_mail_ratings_and_what_is_owed_are_forgotten_with_the_call(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.register(Registration(agent=new_agent(clock, "weather")))
            task = new_task(clock)
            await running.open(opening(task))
            job = NewJob(queue=CALLBACKS, notice=NewNotice(callback_id="cb", seq=2, url="https://a.example/cb"))
            growth = step(task, completed(clock), jobs=(job,))
            await running.append(growth)
            await running.rate(
                Rating(
                    tenant="acme",
                    agent_id="weather",
                    task_id=task.id,
                    stars=1,
                    rated_at=clock.now(),
                    comment="my own words",
                )
            )
            await running.put_mail("acme", "alice", f'{{"task": "{task.id}", "words": "x"}}'.encode())
            await running.put_mail("acme", "alice", b'{"task": "another"}')
            await running.forget(ALICE, [task.id])
            assert [body for _, body in await running.read_mail("acme", "alice", 0, 10)] == [b'{"task": "another"}']
            owner = await running.begin_epoch("hub")
            assert list(await running.lease([CALLBACKS], 10, owner)) == []

    run(scenario())


def test_a_message_after_the_end_of_another_step_is_covered_too(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task, durable=True))
            said = Message(id="m", role=Role.USER, parts=(Text(text="more"),))
            first = step(task, moved(clock, TaskState.WORKING))
            second = step(first.task, MessageAdded(at=clock.now(), message=said))
            await asyncio.gather(running.append(first), running.append(second))
            assert (await checked(running)).broken is None

    run(scenario())


def test_a_tenant_has_no_more_agents_than_it_may(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for name in ("one", "two"):
                stored = await running.register(Registration(agent=new_agent(clock, name), most=2))
                assert isinstance(stored, StoredAgent)
            with pytest.raises(RateLimited) as refused:
                await running.register(Registration(agent=new_agent(clock, "three"), act=act(), most=2))
            assert refused.value.details["reason"] == "quota"
            assert await running.find_agent("acme", "three") is None
            assert isinstance(await running.register(Registration(agent=new_agent(clock, "two"), most=2)), StoredAgent)
            assert (await checked(running)).acts == 1

    run(scenario())


def test_what_tenants_take_is_known_after_a_restart_too(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await quick(running, clock)
            await long(running, clock)
            await running.open(opening(new_task(clock), durable=True))
            before = await running.usage()
            assert dict(before.open_calls) == {"acme": 1}
            assert before.stored_bytes["acme"] > 500
        async with store() as running:
            after = await running.usage()
            assert dict(after.open_calls) == {"acme": 1}
            assert after.stored_bytes["acme"] == pytest.approx(before.stored_bytes["acme"], rel=0.3)

    run(scenario())
