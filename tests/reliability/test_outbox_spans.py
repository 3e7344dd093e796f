"""The spans that the outbox hands over: one for each attempt that was made, with that attempt's times."""

import asyncio

from dragoman.delivery.notices import NOTICE_S
from dragoman.model.callbacks import Callback, Tells
from dragoman.observe.notice_spans import delivery_spans
from dragoman.ports.store import CALLBACKS
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import chunk, completed
from tests.support.outbox import Begin, receiving
from tests.support.run import run


def test_eight_attempts_over_a_day_are_eight_spans_and_the_hub_shows_one_over_all(
    begin: Begin, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.always = (500, {})
            task = await post.owe(receiver.url)
            await post.work()
            while await post.store.next_due(CALLBACKS) is not None:
                await post.pass_time()
            assert [span.started_at for span in post.spans] == [one.at for one in receiver.got]
            assert [span.attributes["a2a.attempt"] for span in post.spans] == list(range(1, 9))
            assert [span.attributes["a2a.status"] for span in post.spans] == [*["pending"] * 7, "parked"]
            told = [one.headers["x-span-id"] for one in receiver.got]
            assert told == [f"span_{span.span_id}" for span in post.spans]
            assert len(set(told)) == 8
            (shown,) = delivery_spans(task, await post.listed())
            assert (shown.span_id, shown.started_at) == (post.spans[-1].span_id, receiver.got[0].at)
            assert shown.ended_at == post.spans[-1].ended_at

    run(scenario())


def test_an_attempt_that_nobody_answers_lasts_as_long_as_it_was_waited_for(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            receiver.always = None
            await post.owe(receiver.url)
            (job,) = await post.due()
            delivering = asyncio.ensure_future(post.outbox.deliver(job))
            await receiver.arrived(1)
            clock.advance(NOTICE_S)
            await delivering
            (span,) = post.spans
            assert span.ended_at is not None
            assert (span.ended_at - span.started_at).total_seconds() == NOTICE_S
            assert (span.failed, span.attributes.get("http.response.status_code")) == ("no answer in time", None)

    run(scenario())


def test_what_is_posted_to_nobody_has_no_span(begin: Begin, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with begin() as post, receiving(clock) as receiver:
            # AgentVault's callbacks have no word for a piece of an answer.
            callback = Callback(id="cb", dialect="agentvault", url=receiver.url, tells=Tells.EVENTS)
            task = await post.open(callback)
            await post.grow(task, chunk(clock, "a piece"), completed(clock))
            await post.work()
            assert await post.states() == ["delivered", "delivered"]
            assert [span.name for span in post.spans] == ["deliver agentvault callback"]
            assert len(receiver.got) == 1
            # One that has no address finds it in its mailbox.
            await post.grow(await post.open(Callback(id="cb", dialect="envelope", agent_id="nobody")), completed(clock))
            await post.work()
            assert (await post.listed())[-1].answer == "mailbox"
            assert len(post.spans) == 1

    run(scenario())
