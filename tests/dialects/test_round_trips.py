"""Whatever a dialect is made to say, it understands when it hears it: the same again, up to exactly what it declares.

Two properties for each dialect and framing. What is declared as `hinted` is lost to strangers alone: between two hubs
it comes back, too.
"""

from typing import Final

import msgspec
import pytest
from hypothesis import example, given

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Loss
from dragoman.dialects.refusals import failure_of
from dragoman.model.content import Artifact, Blob, Data, Message, Role, Text
from dragoman.model.errors import AgentTimeout
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, StatusChanged
from dragoman.model.fit import Feature
from dragoman.model.lifecycle import fold, output_of
from dragoman.model.objects import answer_object, input_object, parts_of_object
from dragoman.model.operations import SendTask
from dragoman.model.states import OPEN, TaskState
from dragoman.model.task import Task
from tests.dialects.differences import differences_of_calls, differences_of_tasks, lost_words
from tests.dialects.goldens import LATER
from tests.dialects.loops import (
    ANSWER,
    EVERY_WAY,
    EVERY_WIRE,
    POLL,
    WAYS,
    WIRES,
    Wire,
    heard_again,
    opened,
    sent_and_read,
    shown_and_heard,
)
from tests.dialects.loss_samples import BIG_CALL, CALL, RICH_CALL, big_task, rich_task, samples_of
from tests.dialects.strategies import SENDS, SETTLED, tasks

LOSSES: Final = [
    (dialect, loss)
    for dialect in DIALECTS.values()
    for loss in dialect.losses
    if not loss.facet.startswith(("card:", "skill:"))  # test_card_round_trips.py
]
EVERY_LOSS = pytest.mark.parametrize(
    ("dialect", "loss"), LOSSES, ids=lambda value: value.slug if isinstance(value, Dialect) else value.facet
)
# An answer has the end, or a question; of a task that goes on hear those who ask again, or are told.
LATER_WAYS = pytest.mark.parametrize(
    ("wire", "way"), [pair for pair in WAYS if pair[1] != ANSWER], ids=lambda value: getattr(value, "name", value)
)
POLLS = pytest.mark.parametrize("wire", [wire for wire in WIRES if POLL in wire.ways], ids=lambda wire: wire.name)


def _declared(wire: Wire, *, hinted: bool) -> set[str]:
    return {loss.facet for loss in wire.dialect.losses if hinted or not loss.hinted}


def _read(wire: Wire, asked: SendTask, *, stranger: bool = False) -> SendTask:
    operation = sent_and_read(wire, asked, stranger=stranger).operation
    assert isinstance(operation, SendTask), operation
    return operation


@EVERY_WIRE
@given(asked=SENDS)
@example(asked=RICH_CALL)
@example(asked=BIG_CALL)
def test_a_call_arrives_as_it_was_sent_save_what_its_dialect_declares(wire: Wire, asked: SendTask) -> None:
    got = _read(wire, asked)
    assert differences_of_calls(asked, got) <= _declared(wire, hinted=False)
    if Feature.PARTS not in wire.features:
        # One object in place of parts is a loss of their form alone: nothing in it is missing.
        assert got.message.parts == parts_of_object(input_object(asked.message.parts, None))


@EVERY_WIRE
@given(asked=SENDS)
def test_a_stranger_reads_a_call_as_it_was_sent_save_what_the_dialect_declares(wire: Wire, asked: SendTask) -> None:
    assert differences_of_calls(asked, _read(wire, asked, stranger=True)) <= _declared(wire, hinted=True)


@EVERY_WAY
@given(task=tasks(SETTLED))
@example(task=rich_task())
@example(task=big_task())
def test_a_task_comes_back_as_it_was_save_what_its_dialect_declares(wire: Wire, way: str, task: Task) -> None:
    got = shown_and_heard(wire, way, task)
    assert differences_of_tasks(task, got) <= _declared(wire, hinted=False)
    assert not lost_words(task, got)
    if Feature.PARTS not in wire.features and task.state is got.state is TaskState.COMPLETED:
        assert output_of(got) == parts_of_object(answer_object(output_of(task), None))


@LATER_WAYS
@given(task=tasks(tuple(OPEN)))
def test_a_task_that_goes_on_is_told_of_as_it_stands(wire: Wire, way: str, task: Task) -> None:
    got = shown_and_heard(wire, way, task)
    assert differences_of_tasks(task, got) <= _declared(wire, hinted=False)
    assert not lost_words(task, got)


@EVERY_LOSS
def test_what_is_declared_as_lost_is_lost(dialect: Dialect, loss: Loss) -> None:
    wires = [wire for wire in WIRES if wire.dialect is dialect]
    samples = list(samples_of(loss.facet))
    assert samples, f"nobody knows what {loss.facet} is"
    lost = [loss.facet in _lost(wire, sample, stranger=loss.hinted) for wire in wires for sample in samples]
    assert any(lost)
    if loss.hinted:
        assert not any(loss.facet in _lost(wire, sample, stranger=False) for wire in wires for sample in samples)


def _lost(wire: Wire, sample: SendTask | Task, *, stranger: bool) -> set[str]:
    if isinstance(sample, SendTask):
        return differences_of_calls(sample, _read(wire, sample, stranger=stranger))
    ways = [way for way in wire.ways if way != ANSWER or sample.state in SETTLED or wire.ways == (ANSWER,)]
    heard = (shown_and_heard(wire, way, sample, stranger=stranger) for way in ways)
    return {facet for got in heard for facet in differences_of_tasks(sample, got)}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)
def test_nothing_is_declared_twice_and_everything_says_what_it_becomes(dialect: Dialect) -> None:
    facets = [loss.facet for loss in dialect.losses]
    assert len(facets) == len(set(facets))
    assert all(loss.becomes for loss in dialect.losses)


@EVERY_WIRE
def test_a_further_message_goes_into_the_task_that_the_agent_knows(wire: Wire) -> None:
    asked = SendTask(message=Message(id="m-2", role=Role.USER, parts=(Data(value={"a": 2}),)), continues="task-7")
    known = msgspec.structs.replace(opened(CALL), remote=Remote(task_id="theirs"))
    if Feature.CONTINUE not in wire.features and wire.dialect.slug != "platform":  # whose cards may add it
        return
    got = sent_and_read(wire, asked, known).operation
    assert isinstance(got, SendTask)
    named = got.continues or got.alias
    assert named == ("theirs" if Feature.GET in wire.features else known.id)


@POLLS
@given(task=tasks((TaskState.INPUT_REQUIRED,)))
def test_what_was_heard_before_is_not_heard_again(wire: Wire, task: Task) -> None:
    once = shown_and_heard(wire, POLL, task)
    again = heard_again(wire, POLL, task, once)
    assert (again.messages, again.artifacts, again.status_message) == (
        once.messages,
        once.artifacts,
        once.status_message,
    )


@EVERY_WAY
@pytest.mark.parametrize("role", Role)
def test_the_callers_own_words_do_not_come_back_as_the_agents(wire: Wire, way: str, role: Role) -> None:
    asked = SendTask(message=Message(id="m", role=role, parts=(Text(text="hello"), Blob(raw=b"x"))), skill="s")
    task = fold(opened(asked), [StatusChanged(at=LATER, state=TaskState.COMPLETED)])
    got = shown_and_heard(wire, way, task)
    assert got.messages == ()
    assert output_of(got) in ((), (Data(value={}),))


@EVERY_WAY
def test_a_task_that_asked_and_then_failed_says_why_and_not_what_it_asked(wire: Wire, way: str) -> None:
    asked = Message(id="q", role=Role.AGENT, parts=(Text(text="Which one?"),))
    task = fold(opened(CALL), [StatusChanged(at=LATER, state=TaskState.INPUT_REQUIRED, message=asked)])
    task = fold(task, [StatusChanged(at=LATER, state=TaskState.FAILED, failure=AgentTimeout("too late").failure())])
    assert failure_of(shown_and_heard(wire, way, task)).message == "too late"


@EVERY_WAY
def test_an_answer_that_repeats_the_question_is_an_answer(wire: Wire, way: str) -> None:
    asked = SendTask(message=Message(id="m", role=Role.AGENT, parts=(Text(text="hello"),)), skill="s")
    said = Message(id="a", role=Role.AGENT, parts=(Text(text="hello"),))
    for event in (
        MessageAdded(at=LATER, message=said),
        ArtifactChunk(at=LATER, artifact=Artifact(id="x", parts=said.parts)),
    ):
        task = fold(opened(asked), [event, StatusChanged(at=LATER, state=TaskState.COMPLETED)])
        assert output_of(shown_and_heard(wire, way, task)) in (said.parts, (Data(value={"text": "hello"}),))
    words = fold(opened(asked), [StatusChanged(at=LATER, state=TaskState.COMPLETED, message=said)])
    assert output_of(shown_and_heard(wire, way, words)) in (said.parts, (Data(value={"text": "hello"}),))
