"""All breakers of a process: what counts, what is kept, what is told, and who is woken."""

import asyncio
import logging

import msgspec
import pytest

from dragoman.hub.flow import breakers as module
from dragoman.hub.flow.breakers import Breakers
from dragoman.model.agent import Agent, Via
from dragoman.model.call import AdmittedCall, Caller
from dragoman.model.circuit import Circuit
from dragoman.model.errors import CircuitOpen
from dragoman.model.fit import Feature
from dragoman.ports.attempts import AttemptOutcome
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent, new_task
from tests.support.run import run

FAILURES = (AttemptOutcome.UNREACHABLE, AttemptOutcome.TIMED_OUT, AttemptOutcome.BROKEN)


class Watch:
    """Breakers on a clock that stands still, and calls to one agent or another."""

    def __init__(self, p95_ms: int | None = None) -> None:
        self.clock = ManualClock()
        self.told: list[tuple[AttemptOutcome, bool]] = []
        self.unreached: list[AdmittedCall] = []
        self.breakers = Breakers(
            clock=self.clock,
            p95_ms=lambda tenant, agent_id, skill: p95_ms,
            listeners=[lambda call, outcome, took_s, will_retry: self.told.append((outcome, will_retry))],
            unreached=self.unreached.append,
        )
        self.agent = new_agent(self.clock, "agt_dead", skills=["echo"])

    def call(self, agent: Agent | None = None, *, timeout_s: float = 30.0, via: Via = Via.HTTP) -> AdmittedCall:
        agent, task = agent or self.agent, new_task(self.clock)
        endpoint = msgspec.structs.replace(agent.card.endpoints[0], via=via)
        return AdmittedCall(
            caller=Caller(tenant="acme", id="alice"),
            operation=task.asked,
            agent=agent,
            endpoint=endpoint,
            skill=None,
            message=task.asked.message,
            task=task,
            timeout_s=timeout_s,
            deadline=self.clock.monotonic() + timeout_s,
        )

    def ends(self, outcome: AttemptOutcome, times: int = 1, call: AdmittedCall | None = None) -> None:
        for _ in range(times):
            made = call or self.call()
            self.breakers.ended(made, outcome, made.timeout_s, will_retry=False)

    @property
    def state(self) -> Circuit:
        return self.breakers.state(self.agent)


@pytest.mark.req("P-33")
@pytest.mark.parametrize("outcome", AttemptOutcome)
def test_only_what_the_agent_did_wrong_opens_its_breaker(outcome: AttemptOutcome) -> None:
    watch = Watch()
    watch.ends(outcome, 50)
    assert watch.state is (Circuit.OPEN if outcome in FAILURES else Circuit.CLOSED)
    assert watch.told == [(outcome, False)] * 50


@pytest.mark.req("P-33")
def test_an_answer_between_breaks_the_row_and_what_says_nothing_does_not() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.BROKEN, 4)
    watch.ends(AttemptOutcome.DROPPED)
    assert watch.state is Circuit.CLOSED
    watch.ends(AttemptOutcome.BROKEN)
    assert watch.state is Circuit.OPEN
    other = Watch()
    other.ends(AttemptOutcome.BROKEN, 4)
    other.ends(AttemptOutcome.REFUSED)
    other.ends(AttemptOutcome.BROKEN, 4)
    assert other.state is Circuit.CLOSED


@pytest.mark.req("P-33")
@pytest.mark.parametrize(
    ("timeout_s", "p95_ms", "opens"),
    [(0.001, 200, False), (0.2, 200, False), (0.201, 200, True), (0.001, None, True), (30.0, 200, True)],
)
def test_a_caller_in_a_hurry_shuts_no_agent_for_everyone(timeout_s: float, p95_ms: int | None, opens: bool) -> None:
    watch = Watch(p95_ms)
    watch.ends(AttemptOutcome.TIMED_OUT, 50, watch.call(timeout_s=timeout_s))
    assert (watch.state is Circuit.OPEN) == opens


def test_an_agent_that_reports_later_has_to_take_its_calls_in_time_however_long_they_last() -> None:
    watch = Watch(p95_ms=3_600_000)
    call = watch.call()
    reports = msgspec.structs.replace(call.endpoint, features=frozenset({Feature.REPORTS}))
    watch.ends(AttemptOutcome.TIMED_OUT, 5, msgspec.structs.replace(call, endpoint=reports))
    assert watch.state is Circuit.OPEN


def test_the_absence_of_an_agent_that_connects_is_no_failure_but_its_silence_is() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.UNREACHABLE, 50, watch.call(via=Via.CONNECTED))
    assert watch.state is Circuit.CLOSED
    watch.ends(AttemptOutcome.TIMED_OUT, 5, watch.call(via=Via.CONNECTED))
    assert watch.state is Circuit.OPEN


@pytest.mark.parametrize("outcome", AttemptOutcome)
def test_who_checks_agents_is_told_of_calls_that_found_no_connection_alone(outcome: AttemptOutcome) -> None:
    watch = Watch()
    call = watch.call()
    watch.ends(outcome, call=call)
    assert watch.unreached == ([call] if outcome is AttemptOutcome.UNREACHABLE else [])


@pytest.mark.req("P-33")
def test_a_refusal_says_why_and_when_to_come_back() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.UNREACHABLE, 5)
    watch.clock.advance(12.4)
    with pytest.raises(CircuitOpen) as refused:
        watch.breakers.refuse(watch.agent)
    assert refused.value.retry_after_s == 48
    assert refused.value.details == {"agent_id": "agt_dead", "last_failure": "unreachable", "retry_after": 48}
    assert refused.value.retryable
    watch.breakers.refuse(new_agent(watch.clock, "agt_well"))


@pytest.mark.req("P-33")
def test_one_call_is_let_through_and_its_answer_opens_the_way_for_all() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.UNREACHABLE, 5)
    watch.clock.advance(60)
    probe, other = watch.call(), watch.call()
    watch.breakers.refuse(watch.agent)
    with pytest.raises(CircuitOpen):
        watch.breakers.refuse(watch.agent)
    watch.breakers.begin(probe)
    with pytest.raises(CircuitOpen):
        watch.breakers.begin(other)
    watch.breakers.answering(probe)  # A stream has begun: nobody waits for its end.
    watch.breakers.begin(other)
    assert watch.breakers.states() == []


def test_transitions_are_logged_with_reason_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    with caplog.at_level(logging.INFO, "dragoman.hub"):
        watch.ends(AttemptOutcome.ANSWERED, 3)
        watch.ends(AttemptOutcome.BROKEN, 5)
        watch.clock.advance(60)
        watch.breakers.refuse(watch.agent)
        watch.ends(AttemptOutcome.ANSWERED)
    fields = [(record.levelname, vars(record)["fields"]) for record in caplog.records]
    assert [(level, each["circuit"], each["agent_id"]) for level, each in fields] == [
        ("WARNING", "open", "agt_dead"),
        ("INFO", "half_open", "agt_dead"),
        ("INFO", "closed", "agt_dead"),
    ]
    counts = {"in_a_row": 5, "failures": 5, "calls": 8, "open_s": 60.0, "reason": "broken", "tenant": "acme"}
    assert counts.items() <= fields[0][1].items()
    assert watch.breakers.transitions == {Circuit.OPEN: 1, Circuit.HALF_OPEN: 1, Circuit.CLOSED: 1}


def test_nothing_is_kept_of_agents_that_are_well() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.ANSWERED, 30)
    assert watch.breakers.states() == []
    watch.ends(AttemptOutcome.BROKEN)
    assert watch.breakers.states() == [("acme", "agt_dead", Circuit.CLOSED)]
    watch.clock.advance(31)
    watch.ends(AttemptOutcome.ANSWERED)
    assert watch.breakers.states() == []


def test_an_agent_that_nobody_calls_any_more_is_forgotten() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.BROKEN, 5)
    watch.clock.advance(3600)
    assert watch.breakers.states() == []
    watch.breakers.refuse(watch.agent)


def test_there_is_a_bound_to_the_agents_that_are_remembered() -> None:
    watch = Watch()
    for number in range(module.MOST_TARGETS + 5):
        agent = new_agent(watch.clock, f"agt_{number}")
        watch.ends(AttemptOutcome.BROKEN, call=watch.call(agent))
    states = watch.breakers.states()
    assert len(states) == module.MOST_TARGETS
    assert states[0][1] == "agt_5"


def test_the_calls_of_two_agents_are_two_matters_though_they_share_a_name() -> None:
    watch = Watch()
    watch.ends(AttemptOutcome.BROKEN, 5)
    twin = new_agent(watch.clock, "agt_dead", tenant="globex")
    assert watch.breakers.state(twin) is Circuit.CLOSED
    assert watch.breakers.circuits([watch.agent]) == {"agt_dead": Circuit.OPEN}
    assert watch.breakers.circuits([twin]) == {}


@pytest.mark.req("P-33")
def test_a_call_that_waits_for_its_next_try_ends_when_its_agent_is_left_alone() -> None:
    async def scenario() -> None:
        watch = Watch()
        waiting = watch.call()
        watch.ends(AttemptOutcome.UNREACHABLE, call=waiting)
        async with asyncio.TaskGroup() as group:
            paused = group.create_task(watch.breakers.pause(waiting, 4.0, aside=False))
            await asyncio.sleep(0)
            watch.ends(AttemptOutcome.UNREACHABLE, 3)
            await asyncio.sleep(0)
            assert not paused.done()
            watch.ends(AttemptOutcome.UNREACHABLE)
        with pytest.raises(CircuitOpen):
            watch.breakers.begin(waiting)
        await watch.breakers.pause(waiting, 4.0, aside=False)  # Not for an agent that is left alone already.

    run(scenario())


def test_a_call_that_waits_goes_on_when_its_time_has_come() -> None:
    async def scenario() -> None:
        watch = Watch()
        async with asyncio.TaskGroup() as group:
            paused = group.create_task(watch.breakers.pause(watch.call(), 4.0, aside=False))
            await asyncio.sleep(0)
            watch.clock.advance(3.9)
            await asyncio.sleep(0)
            assert not paused.done()
            watch.clock.advance(0.1)

    run(scenario())
