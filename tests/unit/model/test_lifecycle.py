"""The life of a task: what may happen, and what the task is afterwards."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.model.content import Artifact, Data, Message, Role, Text
from dragoman.model.errors import Failure
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, Sent, StatusChanged, TaskEvent, Usage
from dragoman.model.lifecycle import answered_at_once, fold, legal, output_of
from dragoman.model.operations import SendTask
from dragoman.model.states import FINAL, INTERRUPTED, MOVES, TaskState, may_move
from dragoman.model.task import Task, Trace

AT = datetime(2026, 1, 12, 10, 0, tzinfo=UTC)
ASKED = SendTask(message=Message(id="m1", role=Role.USER, parts=(Text(text="hi"),)))
TASK = Task(
    id="t1",
    tenant="default",
    caller_id="c",
    agent_id="a",
    agent_version="1",
    dialect="platform",
    context_id="x",
    asked=ASKED,
    trace=Trace(trace_id="0" * 32, span_id="0" * 16),
    created_at=AT,
    updated_at=AT,
    last_seq=1,
)

states = st.sampled_from(TaskState)
texts = st.text(max_size=5).map(lambda text: Text(text=text))
parts = st.lists(texts, max_size=3).map(tuple)
artifacts = st.builds(Artifact, id=st.sampled_from("ab"), parts=parts)
times = st.integers(0, 1000).map(lambda n: AT + timedelta(seconds=n))
events: st.SearchStrategy[TaskEvent] = st.one_of(
    st.builds(StatusChanged, at=times, state=states),
    st.builds(ArtifactChunk, at=times, artifact=artifacts, append=st.booleans()),
    st.builds(Sent, at=times, agent_id=st.just("a")),
    st.builds(MessageAdded, at=times, message=st.just(Message(id="m2", role=Role.AGENT, parts=(Text(text="so"),)))),
)


def made(name: str, *texts: str, append: bool = False) -> ArtifactChunk:
    return ArtifactChunk(
        at=AT, artifact=Artifact(id=name, parts=tuple(Text(text=text) for text in texts)), append=append
    )


def test_the_table_of_moves_is_total() -> None:
    assert set(MOVES) == set(TaskState)


@pytest.mark.parametrize("state", FINAL)
@given(event=events)
def test_a_finished_task_never_moves(state: TaskState, event: TaskEvent) -> None:
    assert legal(state, (event,)) == []


def test_nothing_goes_back_to_submitted() -> None:
    assert [state for state in TaskState if may_move(state, TaskState.SUBMITTED)] == [TaskState.SUBMITTED]


def test_a_question_is_left_by_work_or_by_the_end() -> None:
    for state in INTERRUPTED:
        assert MOVES[state] == FINAL | {TaskState.WORKING, state}


@given(batch=st.lists(events, max_size=12))
def test_what_is_legal_never_follows_an_end(batch: list[TaskEvent]) -> None:
    kept = legal(TaskState.SUBMITTED, batch)
    ends = [n for n, event in enumerate(kept) if isinstance(event, StatusChanged) and event.state in FINAL]
    assert not ends or ends == [len(kept) - 1]


@given(first=st.lists(events, min_size=1, max_size=6), second=st.lists(events, min_size=1, max_size=6))
def test_folding_in_two_batches_is_folding_at_once(first: list[TaskEvent], second: list[TaskEvent]) -> None:
    kept = legal(TaskState.SUBMITTED, first + second)
    cut = min(len(first), len(kept) - 1)
    if cut < 1:
        return
    assert fold(fold(TASK, kept[:cut]), kept[cut:]) == fold(TASK, kept)


def test_chunks_extend_and_replace_artifacts() -> None:
    task = fold(TASK, [made("a", "one "), made("a", "two", append=True), made("b", "x"), made("b", "y")])
    assert [(each.id, [part for part in each.parts]) for each in task.artifacts] == [
        ("a", [Text(text="one "), Text(text="two")]),
        ("b", [Text(text="y")]),
    ]


def test_the_answer_is_found_in_one_place_only() -> None:
    said = Message(id="m", role=Role.AGENT, parts=(Text(text="said"),))
    talk = MessageAdded(at=AT, message=said)
    words = StatusChanged(
        at=AT, state=TaskState.COMPLETED, message=msgspec.structs.replace(said, parts=(Text(text="s"),))
    )
    assert output_of(fold(TASK, [talk, made("a", "made"), words])) == (Text(text="made"),)
    assert output_of(fold(TASK, [talk, words])) == (Text(text="s"),)
    assert output_of(fold(TASK, [talk, StatusChanged(at=AT, state=TaskState.COMPLETED)])) == (Text(text="said"),)
    assert output_of(fold(TASK, [StatusChanged(at=AT, state=TaskState.COMPLETED)])) == ()


def test_a_lone_object_is_the_result_itself() -> None:
    chunk = ArtifactChunk(at=AT, artifact=Artifact(id="a", parts=(Data(value={"n": 2**70}),)))
    assert fold(TASK, [chunk, StatusChanged(at=AT, state=TaskState.COMPLETED)]).result == {"n": 2**70}


def test_sending_tells_when_work_began_and_what_the_target_calls_it() -> None:
    later = AT + timedelta(seconds=5)
    task = fold(TASK, [Sent(at=AT, agent_id="a", remote=Remote(task_id="r")), Sent(at=later, agent_id="a", attempt=2)])
    assert (task.started_at, task.attempt, task.remote) == (AT, 2, Remote(task_id="r"))


sent = st.builds(
    Sent,
    at=times,
    agent_id=st.just("a"),
    attempt=st.integers(1, 3),
    remote=st.none() | st.just(Remote(task_id="t", context_id="c")),
)
answers = st.builds(
    ArtifactChunk,
    at=times,
    artifact=st.builds(Artifact, id=st.just("a"), parts=parts | st.just((Data(value={"a": 1}),))),
    append=st.booleans(),
    n=st.integers(0, 2),
)
ends = st.builds(
    StatusChanged,
    at=times,
    state=st.sampled_from([TaskState.COMPLETED, TaskState.COMPLETED, TaskState.COMPLETED, TaskState.FAILED]),
    message=st.none() | st.just(Message(id="m3", role=Role.AGENT, parts=(Text(text="done"),))),
    progress=st.none() | st.just(0.5),
    usage=st.none() | st.just(Usage(tokens=3)),
    result=st.none() | st.just({"b": 2}),
    n=st.integers(0, 2),
)
DONE = StatusChanged(at=AT, state=TaskState.COMPLETED)
freshly_opened = st.sampled_from([TASK, msgspec.structs.replace(TASK, remote=Remote(context_id="earlier"))])


@given(task=freshly_opened, first=sent, second=answers, third=ends)
@example(
    task=TASK,
    first=Sent(at=AT, agent_id="a", attempt=2),
    second=made("a", "so"),
    third=msgspec.structs.replace(
        DONE, progress=0.5, usage=Usage(tokens=3), n=7, failure=Failure(code="X", message="x")
    ),
)
@example(task=TASK, first=StatusChanged(at=AT, state=TaskState.WORKING), second=made("a", "so"), third=DONE)
@example(task=TASK, first=Sent(at=AT, agent_id="a"), second=StatusChanged(at=AT, state=TaskState.FAILED), third=DONE)
def test_a_call_that_is_answered_at_once_is_folded_the_same(
    task: Task, first: TaskEvent, second: TaskEvent, third: TaskEvent
) -> None:
    story = (first, second, third)
    grown = answered_at_once(task, story)
    if grown is not None:
        assert tuple(legal(task.state, story)) == story
        assert grown == fold(task, story)


def test_most_calls_are_answered_at_once() -> None:
    story = (Sent(at=AT, agent_id="a"), made("a", "so"), StatusChanged(at=AT, state=TaskState.COMPLETED))
    assert answered_at_once(TASK, story) is not None
    assert answered_at_once(msgspec.structs.replace(TASK, last_seq=2), story) is None
    assert answered_at_once(TASK, story[1:]) is None
