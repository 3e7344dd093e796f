"""What is sent again, when, and how often: the table of retries at a real socket, on a clock that waits for nobody."""

from typing import Any, Final

import msgspec
import pytest

from dragoman.hub.flow.breakers import Breakers
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.errors import AgentTimeout
from dragoman.model.events import Remote, Sent, StatusChanged, TaskEvent
from dragoman.model.states import TaskState
from dragoman.ports.attempts import AttemptOutcome
from tests.support.courier import DONE, SILENCE, Said, ScriptedAgent, courier_to, opened_call
from tests.support.hurried_clock import HurriedClock
from tests.support.run import run


def said(status: int, body: Any = None, *, after: int | None = None) -> Said:
    headers = {} if after is None else {"Retry-After": str(after)}
    return status, headers | ({"Location": "/other"} if status == 302 else {}), {} if body is None else body


OK: Final[Said] = said(200, DONE)
BUSY: Final[Said] = said(503, after=2)
FAILED: Final[Said] = said(200, {"status": "failed", "error": {"code": "AGENT_ERROR", "message": "no"}})
TROUBLE: Final[Said] = said(500, {"error": {"message": "oh"}})


def delivered(
    agent: ScriptedAgent, clock: HurriedClock, told: list[bool] | None = None, *, listening: bool = True, **how: Any
) -> tuple[OpenedCall, tuple[TaskEvent, ...]]:
    """The call, and all that came of it; `told` learns of each attempt whether another was to follow."""

    def tell(call: AdmittedCall, outcome: AttemptOutcome, took_s: float, will_retry: bool) -> None:
        if told is not None:
            told.append(will_retry)

    async def scenario() -> tuple[OpenedCall, tuple[TaskEvent, ...]]:
        attempts = Breakers(clock=clock, p95_ms=lambda tenant, agent_id, skill: None, listeners=[tell])
        if listening:
            await agent.listen()
        async with courier_to(agent, clock, attempts) as courier:
            opened = opened_call(agent.url, clock, **how)
            if how.get("streams"):
                return opened, tuple([event async for each in courier.stream(opened) for event in each.events])
            return opened, (await courier.deliver(opened)).events

    return run(scenario())


def state_of(events: tuple[TaskEvent, ...]) -> TaskState:
    last = events[-1]
    assert isinstance(last, StatusChanged)
    return last.state


@pytest.mark.req("P-32")
@pytest.mark.parametrize("streams", [False, True], ids=["asked", "streamed"])
@pytest.mark.parametrize(
    ("first", "how", "arrivals"),
    [
        pytest.param(OK, {}, 1, id="answered"),
        pytest.param(TROUBLE, {}, 1, id="500"),
        pytest.param(TROUBLE, {"idempotent": True}, 2, id="500, takes repeats"),
        pytest.param(said(502), {"idempotent": True}, 2, id="502, takes repeats"),
        pytest.param(SILENCE, {}, 1, id="connection lost"),
        pytest.param(SILENCE, {"idempotent": True}, 2, id="connection lost, takes repeats"),
        pytest.param(said(503), {}, 1, id="503"),
        pytest.param(said(503), {"idempotent": True}, 2, id="503, takes repeats"),
        pytest.param(BUSY, {}, 2, id="503 with Retry-After"),
        pytest.param(said(429, after=2), {}, 2, id="429 with Retry-After"),
        pytest.param(said(429), {"idempotent": True}, 1, id="429"),
        pytest.param(said(429, after=61), {"idempotent": True}, 1, id="429, much later"),
        pytest.param(said(400), {"idempotent": True}, 1, id="400"),
        pytest.param(said(404), {"idempotent": True}, 1, id="404"),
        pytest.param(said(401), {"idempotent": True}, 1, id="401"),
        pytest.param(said(302), {"idempotent": True}, 1, id="302"),
        pytest.param(FAILED, {"idempotent": True}, 1, id="the task failed"),
        pytest.param(said(200, body=b"rubbish"), {"idempotent": True}, 1, id="rubbish"),
        pytest.param(b"no HTTP at all\r\n\r\n", {"idempotent": True}, 1, id="no HTTP"),
        pytest.param(TROUBLE, {"idempotent": True, "at_most_once": True}, 1, id="500, at most once"),
        pytest.param(SILENCE, {"idempotent": True, "at_most_once": True}, 1, id="connection lost, at most once"),
        pytest.param(BUSY, {"at_most_once": True}, 1, id="503 with Retry-After, at most once"),
    ],
)
def test_only_what_may_be_sent_again_is(first: Said, how: dict[str, Any], arrivals: int, streams: bool) -> None:
    agent, clock, told = ScriptedAgent(first, OK), HurriedClock(), list[bool]()
    opened, events = delivered(agent, clock, told, streams=streams, **how)
    assert len(agent.requests) == arrivals
    assert agent.keys == [opened.task.id] * arrivals
    assert state_of(events) is (TaskState.COMPLETED if arrivals == 2 or first is OK else TaskState.FAILED)
    tries = [event for event in events if isinstance(event, Sent)]
    assert [event.attempt for event in tries] == [1, 2][:arrivals]
    assert [event.failed is not None for event in tries] == [True, False][2 - arrivals :]
    assert len(clock.slept) == arrivals - 1
    assert told == [True, False][2 - arrivals :]
    if first is BUSY and arrivals == 2:
        assert clock.slept == [2]


@pytest.mark.req("P-32")
def test_three_retries_after_one_two_and_four_seconds_give_or_take_a_fifth() -> None:
    agent, clock = ScriptedAgent(TROUBLE), HurriedClock()
    opened, events = delivered(agent, clock, idempotent=True)
    assert agent.keys == [opened.task.id] * 4
    for slept, planned in zip(clock.slept, (1, 2, 4), strict=True):
        assert abs(slept - planned) <= 0.2 * planned
    tries = [event for event in events if isinstance(event, Sent)]
    assert [(each.attempt, each.failed, each.status) for each in tries] == [
        (1, "AGENT_ERROR", 500),
        (2, "AGENT_ERROR", 500),
        (3, "AGENT_ERROR", 500),
        (4, None, None),
    ]


@pytest.mark.req("P-32")
@pytest.mark.parametrize("at_most_once", [False, True])
@pytest.mark.parametrize("streams", [False, True], ids=["asked", "streamed"])
def test_what_was_never_sent_is_tried_until_the_agent_is_there(streams: bool, at_most_once: bool) -> None:
    agent, clock = ScriptedAgent(OK), HurriedClock()
    asked = list[int]()

    async def scenario() -> tuple[TaskEvent, ...]:
        attempts = Waking(clock, agent)
        async with courier_to(agent, clock, attempts) as courier:
            opened = opened_call(agent.url, clock, streams=streams, at_most_once=at_most_once)
            asked.append(opened.attempt)
            if streams:
                return tuple([event async for each in courier.stream(opened) for event in each.events])
            return (await courier.deliver(opened)).events

    events = run(scenario())
    assert state_of(events) is TaskState.COMPLETED
    assert len(agent.requests) == 1
    tries = [event for event in events if isinstance(event, Sent)]
    assert [(each.attempt, each.failed) for each in tries] == [
        (1, "AGENT_UNAVAILABLE"),
        (2, "AGENT_UNAVAILABLE"),
        (3, None),
    ]


class Waking(Breakers):
    """Breakers, and an agent that listens once two tries have failed."""

    def __init__(self, clock: HurriedClock, agent: ScriptedAgent) -> None:
        super().__init__(clock=clock, p95_ms=lambda tenant, agent_id, skill: None)
        self._agent = agent
        self._pauses_made = 0

    async def pause(self, call: Any, seconds: float, *, aside: bool) -> None:
        await super().pause(call, seconds, aside=aside)
        self._pauses_made += 1
        if self._pauses_made == 2:
            await self._agent.listen()


@pytest.mark.req("P-32")
def test_a_dead_agent_is_tried_four_times_and_then_the_call_fails() -> None:
    agent, clock = ScriptedAgent(OK), HurriedClock()
    _, events = delivered(agent, clock, listening=False)
    last = events[-1]
    assert isinstance(last, StatusChanged) and last.failure is not None
    assert (last.failure.code, (last.failure.details or {})["reason"]) == ("AGENT_UNAVAILABLE", "refused")
    assert len(clock.slept) == 3


@pytest.mark.req("P-32")
def test_nothing_is_tried_past_the_deadline() -> None:
    agent, clock = ScriptedAgent(TROUBLE), HurriedClock()
    delivered(agent, clock, idempotent=True, timeout_s=2.0)
    assert len(agent.requests) == 2
    agent, clock = ScriptedAgent(said(429, after=5)), HurriedClock()
    delivered(agent, clock, timeout_s=4.0)
    assert (len(agent.requests), clock.slept) == (1, [])


@pytest.mark.req("P-32")
def test_an_agent_that_asks_for_time_again_and_again_gets_a_minute_of_it() -> None:
    agent, clock = ScriptedAgent(said(429, after=25)), HurriedClock()
    delivered(agent, clock)
    assert clock.slept == [25, 25]
    assert len(agent.requests) == 3


@pytest.mark.req("P-32")
@pytest.mark.parametrize(
    ("first", "asked"), [(said(500), 2), (SILENCE, 2), (BUSY, 2), (said(404), 1)], ids=["500", "lost", "503", "404"]
)
def test_an_agent_that_is_only_asked_how_far_it_is_is_asked_again(first: Said, asked: int) -> None:
    task = {"id": "r-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}}
    agent, clock = ScriptedAgent(first, said(200, {"jsonrpc": "2.0", "id": "x", "result": task})), HurriedClock()

    async def scenario() -> list[TaskEvent]:
        await agent.listen()
        attempts = Breakers(clock=clock, p95_ms=lambda tenant, agent_id, skill: None)
        async with courier_to(agent, clock, attempts) as courier:
            opened = opened_call(agent.url, clock, dialect="a2a-1.0", at_most_once=True)
            sent = msgspec.structs.replace(opened.task, remote=Remote(task_id="r-1"), state=TaskState.WORKING)
            opened = OpenedCall(call=opened.call, task=sent)
            return [event async for each in courier.follow(opened, lambda: sent) for event in each]

    events = run(scenario())
    assert len(agent.requests) == asked
    assert state_of(tuple(events)) is (TaskState.COMPLETED if asked == 2 else TaskState.FAILED)


@pytest.mark.req("P-33")
def test_no_further_try_goes_to_an_agent_that_others_found_dead() -> None:
    agent, clock = ScriptedAgent(SILENCE), HurriedClock()

    async def scenario() -> list[tuple[TaskEvent, ...]]:
        attempts = Breakers(clock=clock, p95_ms=lambda tenant, agent_id, skill: None)
        await agent.listen()
        async with courier_to(agent, clock, attempts) as courier:
            first = opened_call(agent.url, clock, idempotent=True)
            again = opened_call(agent.url, clock, idempotent=True)
            same = msgspec.structs.replace(again.call, agent=first.call.agent)
            again = OpenedCall(call=same, task=again.task)
            return [(await courier.deliver(each)).events for each in (first, again, again)]

    own, cut, refused = run(scenario())
    assert len(agent.requests) == 5
    assert [_code(each) for each in (own, cut, refused)] == ["AGENT_UNAVAILABLE", "CIRCUIT_OPEN", "CIRCUIT_OPEN"]
    assert [event.attempt for event in cut if isinstance(event, Sent)] == [1]
    assert len(refused) == 1  # It was not sent at all.


class Aside(Breakers):
    """Breakers that note of each wait whether others have the call's place meanwhile; a call may not get it back."""

    def __init__(self, clock: HurriedClock, *, late: bool = False) -> None:
        super().__init__(clock=clock, p95_ms=lambda tenant, agent_id, skill: None)
        self.asides: list[bool] = []
        self._late = late

    async def pause(self, call: AdmittedCall, seconds: float, *, aside: bool) -> None:
        self.asides.append(aside)
        if self._late:
            raise AgentTimeout(reason="queued")


@pytest.mark.req("P-30", "P-32")
@pytest.mark.parametrize("streams", [False, True], ids=["asked", "streamed"])
@pytest.mark.parametrize(
    ("first", "aside"),
    [
        pytest.param(TROUBLE, True, id="500"),
        pytest.param(said(501), True, id="501"),
        pytest.param(said(502), False, id="502: it is not there"),
        pytest.param(said(503), False, id="503: it is not there"),
        pytest.param(said(504), False, id="504: it may still be at it"),
        pytest.param(BUSY, False, id="503 with Retry-After: it wants to be left alone"),
        pytest.param(said(429, after=2), False, id="429 with Retry-After: it wants to be left alone"),
        pytest.param(SILENCE, False, id="connection lost: it may still be at it"),
    ],
)
def test_others_go_first_only_where_the_agent_is_done_with_a_try(first: Said, aside: bool, streams: bool) -> None:
    agent, clock = ScriptedAgent(first, OK), HurriedClock()
    attempts = Aside(clock)

    async def scenario() -> tuple[TaskEvent, ...]:
        await agent.listen()
        async with courier_to(agent, clock, attempts) as courier:
            opened = opened_call(agent.url, clock, idempotent=True, streams=streams)
            if streams:
                return tuple([event async for each in courier.stream(opened) for event in each.events])
            return (await courier.deliver(opened)).events

    assert state_of(run(scenario())) is TaskState.COMPLETED
    assert attempts.asides == [aside]


def test_a_call_that_gets_no_further_turn_in_time_ends_with_its_last_failure() -> None:
    agent, clock = ScriptedAgent(TROUBLE, OK), HurriedClock()

    async def scenario() -> tuple[TaskEvent, ...]:
        await agent.listen()
        async with courier_to(agent, clock, Aside(clock, late=True)) as courier:
            return (await courier.deliver(opened_call(agent.url, clock, idempotent=True))).events

    events = run(scenario())
    assert len(agent.requests) == 1
    assert _code(events) == "AGENT_ERROR"
    assert [event.attempt for event in events if isinstance(event, Sent)] == [1]


def _code(events: tuple[TaskEvent, ...]) -> str:
    last = events[-1]
    assert isinstance(last, StatusChanged) and last.failure is not None
    return last.failure.code
