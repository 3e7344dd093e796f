"""The exporter by itself: its bounds, and what it does with a collector that does not take what it sends."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.task import Task, Trace
from dragoman.observe.export import AT_ONCE, MOST_WAITING, TRIES, Exporter, Unreached
from dragoman.observe.otel_settings import Destination, Sampler
from dragoman.observe.span import Span, SpanKind
from dragoman.observe.spans import spans_of
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task
from tests.support.collector import Received, read_otlp


class World:
    """An exporter, and a collector that answers as a test says."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self.clock = ManualClock()
        self.task = new_task(self.clock)
        self.answers: list[int | None] = []  # a status, or nothing
        self.got: list[Received] = []
        self.posts = 0
        to = Destination(url="http://c/v1/traces", headers={}, resource={}, sampler=sampler or Sampler())
        self.exporter = Exporter(to, spans=self._spans, post=self._post, clock=self.clock)

    async def _spans(self, _: str, call_id: str) -> tuple[Task, tuple[Span, ...]] | None:
        if call_id == "gone":
            return None
        if call_id == "broken":
            raise ValueError("a row that cannot be read")
        ended = msgspec.structs.replace(self.task, id=call_id, ended_at=self.clock.now())
        return ended, spans_of(ended, ())

    async def _post(self, request: HttpRequest, _: float) -> HttpReply:
        self.posts += 1
        status = self.answers.pop(0) if self.answers else 200
        if status is None:
            raise Unreached("refused")
        if status == 200:
            self.got += read_otlp(request.body, request.headers[b"content-type"].decode())
        return HttpReply(status=status)

    def end(self, name: str) -> None:
        self.exporter.ended(msgspec.structs.replace(self.task, id=name))

    def make(self, name: str) -> None:
        now, trace = self.clock.now(), self.task.trace
        span = Span(
            span_id="5" * 16, call_id="c1", name=name, kind=SpanKind.CLIENT, started_at=now, ended_at=now,
            linked=trace.span_id,
        )  # fmt: skip
        self.exporter.made(trace, span)

    async def run_until(self, done: Callable[[], bool]) -> None:
        """Run the exporter, moving time whenever it waits."""
        running = asyncio.ensure_future(self.exporter.run())
        async with asyncio.timeout(5):
            while not done():
                await asyncio.sleep(0)
                self.clock.advance(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        await work

    asyncio.run(main())


def test_many_calls_are_one_request() -> None:
    async def work() -> None:
        world = World()
        for number in range(AT_ONCE):
            world.end(f"c{number}")
        await world.run_until(lambda: world.exporter.exported > 0)
        assert (world.posts, len(world.got), world.exporter.dropped) == (1, AT_ONCE * 2, 0)

    run(work())


@pytest.mark.parametrize("status", [None, 429, 503])
def test_what_may_pass_is_sent_again_and_what_does_not_is_dropped_and_counted(status: int | None) -> None:
    async def work() -> None:
        world = World()
        world.answers = [status] * (TRIES - 1)
        world.end("c1")
        await world.run_until(lambda: world.exporter.exported > 0)
        assert (world.posts, world.exporter.dropped) == (TRIES, 0)
        world.answers = [status] * TRIES
        world.end("c2")
        await world.run_until(lambda: world.exporter.dropped > 0)
        assert (world.posts, world.exporter.dropped) == (TRIES * 2, 1)

    run(work())


def test_a_refusal_is_not_repeated() -> None:
    async def work() -> None:
        world = World()
        world.answers = [400]
        world.end("c1")
        await world.run_until(lambda: world.exporter.dropped > 0)
        assert world.posts == 1

    run(work())


def test_a_full_queue_drops_what_comes_and_counts_it() -> None:
    async def work() -> None:
        world = World()
        for number in range(MOST_WAITING + 7):
            world.end(f"c{number}")
        assert world.exporter.dropped == 7

    run(work())


def test_a_span_by_itself_goes_out_with_the_calls_as_it_is() -> None:
    async def work() -> None:
        world = World()
        world.end("c1")
        world.make("d1")
        await world.run_until(lambda: world.exporter.exported > 0)
        assert (world.posts, world.exporter.exported, world.exporter.dropped) == (1, 3, 0)
        (made,) = (span for span in world.got if span.name == "d1")
        assert (made.trace_id, made.links) == (
            world.task.trace.trace_id,
            ((world.task.trace.trace_id, world.task.trace.span_id),),
        )

    run(work())


def test_spans_by_themselves_are_bounded_and_sampled_like_calls() -> None:
    async def work() -> None:
        world = World()
        for number in range(MOST_WAITING + 3):
            world.make(f"d{number}")
        assert world.exporter.dropped == 3
        sampled = World(Sampler(share=0.0))
        sampled.make("d1")
        decided = Trace(trace_id="1" * 32, span_id="2" * 16, parent_span_id="3" * 16)
        sampled.task = msgspec.structs.replace(sampled.task, trace=decided)
        sampled.make("d2")
        await sampled.run_until(lambda: sampled.exporter.exported > 0)
        assert ([span.name for span in sampled.got], sampled.exporter.dropped) == (["d2"], 0)

    run(work())


def test_a_call_that_cannot_be_read_keeps_no_other_back() -> None:
    async def work() -> None:
        world = World()
        for name in ("gone", "broken", "c1"):
            world.end(name)
        await world.run_until(lambda: world.exporter.exported > 0)
        assert (len(world.got), world.exporter.dropped) == (2, 2)

    run(work())


def test_what_was_in_hand_when_the_hub_stops_is_sent() -> None:
    async def work() -> None:
        world = World()
        world.end("c1")
        running = asyncio.ensure_future(world.exporter.run())
        await asyncio.sleep(0)
        running.cancel()
        finishing = asyncio.ensure_future(world.exporter.finish())
        await asyncio.sleep(0)
        world.clock.advance(0.1)
        await finishing
        assert len(world.got) == 2

    run(work())


def test_only_sampled_traces_wait() -> None:
    async def work() -> None:
        world = World(Sampler(share=0.0))
        world.end("c1")
        await asyncio.sleep(0)
        assert world.posts == 0
        decided = Trace(trace_id="1" * 32, span_id="2" * 16, parent_span_id="3" * 16)
        world.task = msgspec.structs.replace(world.task, trace=decided)
        world.end("c2")
        await world.run_until(lambda: world.exporter.exported > 0)
        assert {span.parent_id for span in world.got if span.name.startswith("invoke")} == {"3" * 16}

    run(work())
