"""What is new in what an agent tells again and again."""

from datetime import UTC, datetime

import msgspec

from dragoman.model.content import Artifact, Data, Message, Part, Role, Text
from dragoman.model.events import ArtifactChunk, MessageAdded, Sent, StatusChanged, TaskEvent
from dragoman.model.news import Known, coalesced
from dragoman.model.states import TaskState
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task

AT = datetime(2026, 1, 1, tzinfo=UTC)


def piece(text: str, *, name: str = "a", append: bool = True, last: bool = False) -> ArtifactChunk:
    return made(Text(text=text), name=name, append=append, last=last)


def made(*parts: Part, name: str = "a", append: bool = False, last: bool = True) -> ArtifactChunk:
    return ArtifactChunk(at=AT, artifact=Artifact(id=name, parts=parts), append=append, last=last)


def status(state: TaskState, words: str = "", progress: float | None = None) -> StatusChanged:
    said = Message(id="m", role=Role.AGENT, parts=(Text(text=words),)) if words else None
    return StatusChanged(at=AT, state=state, message=said, progress=progress)


def known(*events: TaskEvent) -> Known:
    fresh = Known(new_task(ManualClock()))
    fresh.news(events)
    return fresh


def words(events: list[TaskEvent]) -> list[tuple[str, bool]]:
    return [
        ("".join(part.text for part in event.artifact.parts if isinstance(part, Text)), event.append)
        for event in events
        if isinstance(event, ArtifactChunk)
    ]


def test_a_piece_of_an_unknown_artifact_begins_it() -> None:
    assert words(known().news((piece("one "), piece("two")))) == [("one ", False), ("two", True)]


def test_the_whole_again_is_no_news() -> None:
    told = known(piece("one "), piece("two"))
    assert told.news((piece("one two", append=False, last=True),)) == []


def test_a_longer_whole_is_its_rest() -> None:
    assert words(known(piece("one ")).news((piece("one two", append=False),))) == [("two", True)]


def test_another_whole_takes_its_place() -> None:
    assert words(known(piece("one")).news((piece("two", append=False),))) == [("two", False)]


def test_further_parts_are_the_rest() -> None:
    first, second = Data(value={"a": 1}), Data(value={"b": 2})
    (rest,) = known(made(first)).news((made(first, second),))
    assert isinstance(rest, ArtifactChunk)
    assert rest.append
    assert rest.artifact.parts == (second,)


def test_a_message_is_news_once_and_the_callers_own_never() -> None:
    task = new_task(ManualClock())
    said = MessageAdded(at=AT, message=Message(id="x", role=Role.AGENT, parts=(Text(text="hi"),)))
    echo = MessageAdded(at=AT, message=task.asked.message)
    told = Known(task)
    assert told.news((echo, said, said)) == [said]
    assert told.news((said,)) == []


def test_a_state_is_news_when_it_its_words_or_its_progress_change() -> None:
    told = known()
    steps = (
        status(TaskState.SUBMITTED),
        status(TaskState.WORKING),
        status(TaskState.WORKING),
        status(TaskState.WORKING, "reading"),
        status(TaskState.WORKING, "reading"),
        status(TaskState.WORKING, "reading", 0.5),
        status(TaskState.COMPLETED),
    )
    assert told.news(steps) == [steps[1], steps[3], steps[5], steps[6]]


def test_what_is_neither_passes() -> None:
    sent = Sent(at=AT, agent_id="a")
    assert known().news((sent, sent)) == [sent, sent]


def test_pieces_that_follow_each_other_are_one() -> None:
    events = [piece("one ", append=False), piece("two "), piece("three", last=True), status(TaskState.COMPLETED)]
    joined = coalesced(events)
    assert words(list(joined)) == [("one two three", False)]
    assert isinstance(joined[0], ArtifactChunk)
    assert joined[0].last
    assert joined[1:] == events[3:]


def test_what_is_not_only_the_next_words_stays_apart() -> None:
    apart = [
        piece("a"),
        piece("b", name="other"),
        piece("c", name="other", append=False),
        made(Data(value={}), name="other", append=True),
        piece("d", name="other"),
        msgspec.structs.replace(piece("e", name="other"), metadata={"k": 1}),
        made(Text(text="f", media_type="text/markdown"), name="other", append=True),
    ]
    assert list(coalesced(apart)) == apart
