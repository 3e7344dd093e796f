"""The spans of calls, derived from what is stored: calls of every course, by the events they leave."""

from typing import Any

import msgspec
import pytest

from dragoman.model.agent import Binding, Endpoint, Via
from dragoman.model.errors import AgentUnavailable, Failure
from dragoman.model.events import Happened, Remote, Sent, StatusChanged, TaskEvent
from dragoman.model.lifecycle import fold
from dragoman.model.operations import Step, Wait
from dragoman.model.states import TaskState
from dragoman.observe.span import Span, span_id_of
from dragoman.observe.spans import Target, spans_of
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import chunk, completed, moved, new_agent, new_task

HTTP = Endpoint(dialect="a2a-1.0", url="https://agents.example:8443/a2a", binding=Binding.JSONRPC)


class Course:
    """A call as it goes, second by second."""

    def __init__(self, wait: Wait = Wait.END, **asked: Any) -> None:
        self.clock = ManualClock()
        task = new_task(self.clock, skill="forecast")
        self.task = msgspec.structs.replace(task, asked=msgspec.structs.replace(task.asked, wait=wait, **asked))
        self.events: list[Happened] = [
            Happened(seq=1, event=StatusChanged(at=self.clock.now(), state=TaskState.SUBMITTED))
        ]

    def at(self, seconds: float) -> ManualClock:
        self.clock.advance(seconds - self.clock.monotonic())
        return self.clock

    def told(self, *events: TaskEvent) -> None:
        for event in events:
            self.task = fold(self.task, (event,))
            self.events.append(Happened(seq=self.task.last_seq, event=event))

    def sent(self, attempt: int = 1, **more: Any) -> None:
        self.told(Sent(at=self.clock.now(), agent_id="weather", attempt=attempt, **more))

    def spans(self, endpoint: Endpoint = HTTP) -> list[Span]:
        agent = new_agent(self.clock, "weather")
        return list(spans_of(self.task, self.events, Target(agent=agent, endpoint=endpoint)))

    def shown(self, endpoint: Endpoint = HTTP) -> list[tuple[str, float, float | None, str | None]]:
        """Each span by its name, from when to when, and why it failed."""

        def seconds(at: Any) -> float:
            return (at - self.task.created_at).total_seconds()

        return [
            (
                span.name,
                seconds(span.started_at),
                None if span.ended_at is None else seconds(span.ended_at),
                span.failed,
            )
            for span in self.spans(endpoint)
        ]


def failure(code: str = "AGENT_UNAVAILABLE", **details: Any) -> Failure:
    return msgspec.structs.replace(AgentUnavailable("It is gone.", **details).failure(), code=code)


def test_a_plain_call_is_its_own_span_its_admission_and_one_attempt() -> None:
    course = Course()
    course.at(0.5)
    course.sent()
    course.at(2)
    course.told(completed(course.clock))
    call, admit, attempt = course.spans()
    assert course.shown() == [
        ("invoke_agent Agent weather", 0, 2, None),
        ("admit", 0, 0.5, None),
        ("attempt", 0.5, 2, None),
    ]
    assert call.span_id == course.task.trace.span_id, "what its agent was told"
    assert (admit.parent_id, attempt.parent_id) == (call.span_id, call.span_id)
    assert call.parent_id is None
    assert call.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert call.attributes["a2a.skill"] == "forecast"
    assert (attempt.attributes["server.address"], attempt.attributes["server.port"]) == ("agents.example", 8443)
    assert attempt.attributes["a2a.dialect.out"] == "a2a-1.0"
    assert [event.name for event in call.events] == ["status", "status"]


def test_ids_follow_from_the_call_so_whoever_looks_finds_the_same() -> None:
    course = Course()
    course.sent()
    first = course.spans()
    course.at(1)
    course.told(completed(course.clock))
    again = course.spans()
    assert [span.span_id for span in first] == [span.span_id for span in again]
    assert len({span.span_id for span in again}) == len(again)
    assert again[2].span_id == span_id_of(course.task.id, "attempt", 1)


def test_each_attempt_has_its_span_with_why_it_failed() -> None:
    course = Course()
    course.at(1)
    course.sent(1, failed="AGENT_UNAVAILABLE", status=503, took_ms=500, waited_ms=400)
    course.at(2)
    course.sent(2, waited_ms=400)
    course.at(3)
    course.told(StatusChanged(at=course.clock.now(), state=TaskState.FAILED, failure=failure(agent_status=502)))
    assert course.shown() == [
        ("invoke_agent Agent weather", 0, 3, "AGENT_UNAVAILABLE"),
        ("admit", 0, 0.6, None),
        ("queue", 0.6, 1, None),
        ("attempt", 1, 1.5, "AGENT_UNAVAILABLE"),
        ("attempt", 2, 3, "AGENT_UNAVAILABLE"),
    ]
    spans = course.spans()
    assert [span.attributes.get("http.response.status_code") for span in spans[3:]] == [503, 502]
    assert "retry" in [event.name for event in spans[0].events]


def test_an_agent_that_is_asked_again_has_an_attempt_and_a_following() -> None:
    course = Course(Wait.NONE)
    course.at(1)
    course.sent(remote=Remote(task_id="t1"))
    course.told(moved(course.clock, TaskState.WORKING))  # noted when it was sent
    course.at(1.5)
    course.told(moved(course.clock, TaskState.WORKING))  # what the agent answered
    course.at(4)
    course.told(chunk(course.clock, "a"), completed(course.clock))
    assert course.shown()[2:] == [("attempt", 1, 1.5, None), ("follow", 1.5, 4, None)]
    assert course.spans()[3].attributes["a2a.events"] == 2


@pytest.mark.parametrize(
    ("endpoint", "streamed"), [(HTTP, True), (Endpoint(dialect="platform", via=Via.CONNECTED), False)]
)
def test_a_stream_is_one_attempt_to_its_end(endpoint: Endpoint, streamed: bool) -> None:
    course = Course(Wait.STREAM)
    course.at(1)
    course.sent(streamed=streamed)
    for second in (2, 3):
        course.at(second)
        course.told(chunk(course.clock, "a"))
    course.told(completed(course.clock))
    assert course.shown(endpoint)[2:] == [("attempt", 1, 3, None)]
    assert [event.name for event in course.spans(endpoint)[0].events] == ["status", "first chunk", "status"]


def test_what_has_not_ended_has_no_end() -> None:
    course = Course(Wait.NONE)
    assert course.shown()[1:] == [("admit", 0, 0, None), ("queue", 0, None, None)]
    course.at(1)
    course.sent(waited_ms=900)
    assert course.shown() == [
        ("invoke_agent Agent weather", 0, None, None),
        ("admit", 0, 0.1, None),
        ("queue", 0.1, 1, None),
        ("attempt", 1, None, None),
    ]


def test_a_question_ends_an_attempt_and_its_answer_begins_another() -> None:
    course = Course()
    course.sent()
    course.at(1)
    course.told(moved(course.clock, TaskState.INPUT_REQUIRED))
    course.at(60)
    course.told(moved(course.clock, TaskState.WORKING))
    course.sent(2)
    course.at(61)
    course.told(completed(course.clock))
    assert course.shown()[2:] == [("attempt", 0, 1, None), ("attempt", 60, 61, None)]


def test_a_workflow_is_its_steps() -> None:
    course = Course(then=(Step(skill="b"), Step(skill="c")))
    for second, share in ((1, 0.0), (2, 1 / 3), (4, 2 / 3)):
        course.at(second)
        course.told(StatusChanged(at=course.clock.now(), state=TaskState.WORKING, progress=share))
    course.at(5)
    course.told(completed(course.clock))
    assert course.shown() == [
        ("workflow", 0, 5, None),
        ("admit", 0, 1, None),
        ("step 0", 1, 2, None),
        ("step 1", 2, 4, None),
        ("step 2", 4, 5, None),
    ]
    assert course.spans()[3].span_id == span_id_of(course.task.id, "step", 1)


def test_a_name_that_would_break_a_line_does_not() -> None:
    course = Course()
    agent = new_agent(course.clock, "weather")
    named = msgspec.structs.replace(agent, card=msgspec.structs.replace(agent.card, name="a\x1b[2J\nb" + "x" * 100))
    span = spans_of(course.task, course.events, Target(agent=named))[0]
    assert span.name.isprintable()
    assert len(span.name) <= len("invoke_agent ") + 64
