"""What is counted, how it is bounded, and that the official parser reads it."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from dragoman.hub.authenticate import OPERATOR
from dragoman.model.agent import Agent, AgentCard, Endpoint
from dragoman.model.call import AdmittedCall
from dragoman.model.content import Artifact, Blob, Data, Text
from dragoman.model.ended import ended_call
from dragoman.model.errors import BY_CODE, BadSignature, Failure, NotAuthenticated, NotAuthorized, RateLimited
from dragoman.model.events import Usage
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.observe import names
from dragoman.observe.cells import IDLE_S, OTHER, Histogram
from dragoman.observe.exposition import Sample
from dragoman.observe.metrics import MOST_NOTED, Metrics
from dragoman.observe.scrape import Scrape
from dragoman.ports.attempts import AttemptOutcome
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.support.scraped import parse_open
from tests.unit.observe.calls_made import ASKED, AT, call

pytestmark = pytest.mark.req("P-36")
MIB: Final = 1024 * 1024

AGENT: Final = Agent(
    uuid="00000000-0000-4000-8000-000000000001",
    tenant="default",
    owner_id="admin",
    card=AgentCard(
        id="agt_target", name="Target", version="1", endpoints=(Endpoint(dialect="a2a-1.0", url="http://127.0.0.1:9"),)
    ),
    registered_at=AT,
    updated_at=AT,
)
Labels = Mapping[str, str]


class Idle(ManualClock):
    """Stands still, but lets others have their turn."""

    async def sleep(self, seconds: float) -> None:
        assert seconds == 0
        await asyncio.sleep(0)


class Counted:
    """Metrics with a clock in the test's hands, read as a scraper reads them."""

    def __init__(self, **how: Any) -> None:
        self.clock = Idle()
        self.metrics = Metrics(clock=self.clock, **how)

    def ended(self, task: Task) -> None:
        self.metrics.ended([ended_call(task, self.metrics.carried().pop(task.id, None))])

    def text(self, *, is_open: bool = False, **more: Any) -> str:
        return run(Scrape(self.metrics, clock=self.clock, **more).text(is_open=is_open)).decode()

    def series(self, **more: Any) -> dict[str, list[tuple[Labels, float]]]:
        """Every series by its name."""
        found: dict[str, list[tuple[Labels, float]]] = {}
        for family in parse_plain(self.text(**more)):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found


def test_a_call_is_one_step_of_its_counter_and_one_of_its_histogram() -> None:
    hub = Counted()
    hub.ended(call(0.03))
    hub.ended(call(0.3, state=TaskState.CANCELED))
    hub.ended(call(0.03, state=TaskState.REJECTED, failure=Failure(code="AGENT_ERROR", message="no")))
    series = hub.series()
    who = {"caller_id": "agt_caller", "target_id": "agt_target", "skill": "echo"}
    assert series["a2a_calls_total"] == [
        ({**who, "status": status}, 1.0) for status in ("completed", "failed", "cancelled")
    ]
    assert series["a2a_call_duration_seconds_count"] == [(who, 3.0)]
    assert series["a2a_call_duration_seconds_sum"][0][1] == pytest.approx(0.36)
    buckets = {labels["le"]: value for labels, value in series["a2a_call_duration_seconds_bucket"]}
    assert (buckets["0.025"], buckets["0.05"], buckets["0.5"], buckets["+Inf"]) == (0, 2, 3, 3)
    assert series["dragoman_call_failures_total"] == [({"target_id": "agt_target", "code": "AGENT_ERROR"}, 1.0)]


def admitted_call(task: Task, **more: Any) -> AdmittedCall:
    """The call of a task."""
    whole: dict[str, Any] = {
        "caller": OPERATOR,
        "operation": task.asked,
        "agent": AGENT,
        "endpoint": AGENT.card.endpoints[0],
        "skill": None,
        "message": task.asked.message,
        "task": task,
        "timeout_s": 30.0,
        "deadline": 30.0,
    }
    return AdmittedCall(**{**whole, **more})


def test_a_call_that_was_sent_again_is_counted_once_and_so_is_each_attempt() -> None:
    hub = Counted()
    task = call(2.0)
    admitted = admitted_call(task)
    hub.metrics.attempted(admitted, AttemptOutcome.BROKEN, 0.5, will_retry=True)
    hub.metrics.attempted(admitted, AttemptOutcome.ANSWERED, 0.3, will_retry=False)
    carried = hub.metrics.carried()[task.id]
    assert (carried.dialect, carried.attempts, carried.took_s) == ("a2a-1.0", 2, 0.8)
    hub.ended(task)
    series = hub.series()
    assert [value for _, value in series["a2a_calls_total"]] == [1.0]
    assert series["dragoman_attempts_total"] == [
        ({"target_id": "agt_target", "outcome": "broken"}, 1.0),
        ({"target_id": "agt_target", "outcome": "answered"}, 1.0),
    ]
    assert series["dragoman_retries_total"] == [({"target_id": "agt_target", "reason": "broken"}, 1.0)]
    pair = {"dialect_in": "platform", "dialect_out": "a2a-1.0"}
    assert series["dragoman_translations_total"] == [(pair, 1.0)]
    assert series["dragoman_hub_overhead_seconds_sum"][0][1] == pytest.approx(1.2)


@pytest.mark.parametrize("many", [1, MOST_NOTED, MOST_NOTED + 5])
def test_every_attempt_is_counted_when_somebody_looks_though_its_call_goes_on(many: int) -> None:
    hub = Counted()
    for number in range(many):
        admitted = admitted_call(call(id=f"call-{number}"))
        hub.metrics.attempted(admitted, AttemptOutcome.ANSWERED, 0.1, will_retry=False)
    answered = {"target_id": "agt_target", "outcome": "answered"}
    assert hub.series()["dragoman_attempts_total"] == [(answered, many)]


def test_what_was_changed_for_a_dialect_is_counted_where_the_target_answered() -> None:
    hub = Counted()
    fitted = msgspec.structs.replace(ASKED.message, parts=(Data(value={"text": "hi"}),))
    admitted = admitted_call(call(), message=fitted)
    assert "dragoman_translation_losses_total" not in hub.series()
    hub.metrics.attempted(admitted, AttemptOutcome.UNREACHABLE, 0.5, will_retry=True)
    hub.metrics.attempted(admitted, AttemptOutcome.ANSWERED, 0.5, will_retry=False)
    hub.metrics.attempted(admitted_call(call()), AttemptOutcome.ANSWERED, 0.5, will_retry=False)
    assert hub.series()["dragoman_translation_losses_total"] == [({"dialect": "a2a-1.0", "facet": "part:text"}, 1.0)]


@pytest.mark.parametrize("linking", [(), ("platform",)])
def test_a_file_for_a_caller_who_gets_links_is_counted_when_its_call_ends(linking: tuple[str, ...]) -> None:
    hub = Counted()
    hub.metrics.expect(("platform",), linking)
    for part in (Text(text="hi"), Blob(raw=b"x")):
        hub.ended(call(artifacts=(Artifact(id="a", parts=(part,)),)))
    counted = [({"dialect": "platform", "facet": "part:blob"}, 1.0)]
    assert hub.series().get("dragoman_translation_losses_total", []) == (counted if linking else [])


def test_the_first_piece_of_a_stream_is_timed_by_target_within_the_bound_of_targets() -> None:
    hub = Counted(max_values=3)
    for number in range(5):
        card = msgspec.structs.replace(AGENT.card, id=f"t{number}")
        agent = msgspec.structs.replace(AGENT, card=card)
        hub.metrics.spoke(admitted_call(call(), agent=agent), 0.3)
    series = hub.series()
    counted = {labels["target_id"]: value for labels, value in series["dragoman_first_event_seconds_count"]}
    assert counted == {"t0": 1, "t1": 1, "t2": 1, OTHER: 2}
    buckets = {labels["le"]: value for labels, value in series["dragoman_first_event_seconds_bucket"]}
    assert (buckets["0.25"], buckets["0.5"], buckets["+Inf"]) == (0, 2, 2)
    overflowed = {labels["label"]: value for labels, value in series["dragoman_label_overflow_total"]}
    assert overflowed["target_id"] == 2
    hub.clock.advance(IDLE_S + 1)
    assert "dragoman_first_event_seconds_count" not in hub.series()
    hub.ended(call(agent_id="new"))
    assert hub.series()["a2a_calls_total"][0][0]["target_id"] == "new"


def test_open_metrics_has_the_trace_of_the_last_call_as_an_exemplar() -> None:
    hub = Counted()
    hub.ended(call(0.03))
    families = {family.name: family for family in parse_open(hub.text(is_open=True))}
    buckets = families["a2a_call_duration_seconds"].samples
    shown = [(sample.labels["le"], sample.exemplar) for sample in buckets if sample.exemplar]
    assert [(le, exemplar.labels) for le, exemplar in shown] == [("0.05", {"trace_id": "ab" * 16})]
    assert families["a2a_calls"].type == "counter"
    assert "exemplar" not in hub.text()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NotAuthenticated(), "missing"),
        (NotAuthenticated(reason="unknown_key"), "unknown"),
        (NotAuthenticated(reason="revoked"), "revoked"),
        (NotAuthenticated(reason="expired"), "expired"),
        (NotAuthenticated(reason="who knows"), OTHER),
        (NotAuthorized(missing=["a2a:call"]), "scope"),
        (BadSignature(reason="signature_invalid"), "signature"),
        (BadSignature(reason="replayed"), "replay"),
    ],
)
def test_a_refusal_for_who_sent_it_says_why_in_one_of_a_few_words(error: Any, reason: str) -> None:
    hub = Counted()
    hub.metrics.refused("platform", error)
    series = hub.series()
    assert series["dragoman_auth_failures_total"] == [({"reason": reason}, 1.0)]
    assert series["dragoman_refusals_total"] == [({"dialect": "platform", "code": error.code}, 1.0)]


def test_a_limit_is_counted_by_whose_and_which_it_was_and_an_agents_words_are_not_taken() -> None:
    hub = Counted()
    hub.metrics.refused("", RateLimited(scope="key", limit="requests_per_minute"))
    hub.metrics.refused("", RateLimited(scope="mine", limit=["x"]))
    assert hub.series()["dragoman_rate_limited_total"] == [
        ({"scope": "key", "limit": "requests_per_minute"}, 1.0),
        ({"scope": OTHER, "limit": OTHER}, 1.0),
    ]


def test_what_agents_say_they_used_is_added_up_and_nonsense_is_not() -> None:
    hub = Counted()
    for usage in (
        Usage(input_tokens=100, output_tokens=50, tokens=150, cost_usd=0.25),
        Usage(tokens=7),
        Usage(tokens=-1, cost_usd=float("inf")),
        Usage(tokens=10**12, cost_usd=float("nan")),
    ):
        hub.ended(call(usage=usage))
    series = hub.series()
    assert {labels["direction"]: value for labels, value in series["dragoman_usage_tokens_total"]} == {
        "input": 100,
        "output": 50,
        "both": 7,
    }
    assert [value for _, value in series["dragoman_usage_cost_usd_total"]] == [0.25]


def test_ten_thousand_agents_and_callers_cost_little_and_the_sums_stay_exact() -> None:
    hub = Counted()
    for number in range(3_600):  # as many combinations as there are places, and more
        hub.ended(call(caller_id=f"agt_{number % 60}", agent_id=f"agt_{number // 60}"))
    for number in range(10_000):
        # Each its own pair, and one that is known: it goes on being counted.
        hub.ended(call(caller_id=f"agt_{number}", agent_id=f"agt_{number * 7 % 10_000}", skill=f"s{number}"))
        hub.ended(call(0.2, caller_id="agt_0", agent_id="agt_0"))
    since = time.perf_counter()
    text = hub.text()
    took_s = time.perf_counter() - since
    assert len(text.encode()) < 8 * MIB
    assert took_s < 0.5
    # The official parser takes seconds for so many lines.
    found = {name: dict(_lines(text, name)) for name in ("a2a_calls_total", "a2a_call_duration_seconds_count")}
    for series in found.values():
        assert len(series) == 2_001
        assert sum(series.values()) == 23_600
    assert found["a2a_calls_total"]['caller_id="agt_0",target_id="agt_0",skill="echo",status="completed"'] == 10_001
    assert sum(value for _, value in _lines(text, "dragoman_label_overflow_total")) == 3_600 - 2_000 + 10_000


def _lines(text: str, name: str) -> list[tuple[str, float]]:
    """The series of one name: labels and value."""
    begin = name + "{"
    lines = (line.removeprefix(begin) for line in text.splitlines() if line.startswith(begin))
    return [(labels, float(value)) for labels, _, value in (line.rpartition("} ") for line in lines)]


def test_so_many_combinations_have_a_line_and_the_rest_is_one_line_of_others() -> None:
    hub = Counted(max_values=20)
    for caller in range(20):
        for target in range(20):
            hub.ended(
                call(
                    caller_id=f"c{caller}",
                    agent_id=f"t{target}",
                    state=TaskState.FAILED,
                    failure=Failure(code="X", message=""),
                )
            )
    series = hub.series()
    counted = series["a2a_call_duration_seconds_count"]
    assert len(counted) == 201
    assert sum(value for _, value in counted) == 400
    assert ({"caller_id": OTHER, "target_id": OTHER, "skill": OTHER}, 200.0) in counted


def test_each_call_that_is_counted_with_the_others_is_one_value_without_a_place() -> None:
    hub = Counted(max_values=1)
    hub.ended(call())
    hub.metrics.ended([ended_call(call(agent_id="agt_late"))] * 3)
    series = hub.series()
    overflowed = {labels["label"]: value for labels, value in series["dragoman_label_overflow_total"]}
    assert overflowed["target_id"] == 3
    assert sum(value for _, value in series["a2a_calls_total"]) == 4


def test_what_was_idle_for_an_hour_gives_its_place_to_others() -> None:
    hub = Counted(max_values=10)
    for number in range(10):
        hub.ended(call(caller_id=f"old{number}", agent_id=f"old{number}", usage=Usage(tokens=1)))
    hub.ended(call(caller_id="late", agent_id="late"))
    assert (
        {"caller_id": OTHER, "target_id": OTHER, "skill": "echo", "status": "completed"},
        1.0,
    ) in hub.series()["a2a_calls_total"]
    hub.clock.advance(IDLE_S + 1)
    assert "a2a_calls_total" not in hub.series()
    for number in range(10):
        hub.ended(call(caller_id=f"new{number}", agent_id=f"new{number}", usage=Usage(tokens=1)))
    series = hub.series()
    assert {labels["caller_id"] for labels, _ in series["a2a_calls_total"]} == {f"new{number}" for number in range(10)}
    assert {labels["target_id"] for labels, _ in series["dragoman_usage_tokens_total"]} == {
        f"new{number}" for number in range(10)
    }


def test_the_subject_of_somebody_elses_token_is_no_label_its_issuer_is() -> None:
    hub = Counted()
    for number in range(300):
        hub.ended(call(caller_id=f"acme|user-{number}"))
    assert [labels["caller_id"] for labels, _ in hub.series()["a2a_calls_total"]] == ["acme|"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.text(), st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=8))
def test_no_name_changes_the_structure(named: list[tuple[str, str, str]]) -> None:
    hub = Counted()
    hostile = ('evil"} 1\na2a_calls_total{x="y', "back\\slash\\", "line\nfeed\r\u2028", "\ud800", "{}#,=")
    for caller, target, skill in (*named, *((each, each, each) for each in hostile)):
        hub.ended(
            call(
                caller_id=caller,
                agent_id=target,
                skill=skill,
                state=TaskState.FAILED,
                failure=Failure(code=target, message=""),
            )
        )
    for is_open, parse in ((False, parse_plain), (True, parse_open)):
        families = {family.name: family for family in parse(hub.text(is_open=is_open))}
        calls = families["a2a_calls"].samples
        assert sum(sample.value for sample in calls) == len(named) + len(hostile)
        assert all(set(sample.labels) == {"caller_id", "target_id", "skill", "status"} for sample in calls)
        codes = {sample.labels["code"] for sample in families["dragoman_call_failures"].samples}
        assert codes <= {*BY_CODE, OTHER}


def test_gauges_by_target_are_bounded_too_and_say_the_worst_of_the_rest() -> None:
    hub = Counted(max_values=10)

    def read() -> list[Sample]:
        return [
            *(Sample(names.CALL_QUEUE, (f"t{number}",), number) for number in range(30)),
            *(Sample(names.AGENT_UP, (f"t{number}",), number % 2) for number in range(30)),
            *(Sample(names.BREAKER, ("same",), state) for state in (0, 2)),
        ]

    series = hub.series(readers=(read,))
    queues = {labels["target_id"]: value for labels, value in series["a2a_call_queue_size"]}
    assert (len(queues), queues["t29"], queues[OTHER]) == (11, 29, sum(range(20)))
    ups = {labels["target_id"]: value for labels, value in series["dragoman_agent_up"]}
    assert (len(ups), ups[OTHER]) == (11, 0)
    assert series["a2a_circuit_breaker_state"] == [({"target_id": "same"}, 2.0)]


def test_a_figure_that_cannot_be_read_is_left_out_and_the_rest_is_there(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> list[Sample]:
        raise RuntimeError("gone")

    hub = Counted()
    hub.ended(call())
    logger = "dragoman.observe"
    caplog.set_level("WARNING", logger)
    assert hub.series(readers=(broken, lambda: [Sample(names.SESSIONS, (), 3)]))["dragoman_sessions_open"] == [
        ({}, 3.0)
    ]


def test_a_histogram_is_read_as_it_was_kept() -> None:
    cells = Histogram((0.1, 1.0))
    for figure in (0.05, 0.1, 0.5, 7.0):
        cells.observe(figure)
    metric = msgspec.structs.replace(names.STORE_COMMIT, bounds=(0.1, 1.0))
    series = Counted().series(readers=(lambda: [Sample(metric, (), cells)],))
    assert [value for _, value in series["dragoman_store_commit_seconds_bucket"]] == [2, 3, 4]
    assert series["dragoman_store_commit_seconds_sum"][0][1] == pytest.approx(7.65)


def test_every_name_is_there_once_and_is_well_formed() -> None:
    assert len(names.METRICS) > 40
    assert max(Counter(metric.name for metric in names.METRICS).values()) == 1
    for metric in names.METRICS:
        assert metric.name.endswith("_total") == (metric.kind is names.Kind.COUNTER), metric.name
        assert bool(metric.bounds) == (metric.kind is names.Kind.HISTOGRAM), metric.name
        assert list(metric.bounds) == sorted(metric.bounds)
        assert "\n" not in metric.says
