"""What an agent that connected to the hub is told of a call, and what each thing means that it tells."""

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.platform.connected import (
    ENDPOINT,
    answers_of,
    call_frame,
    input_frame,
    read_connected_card,
    turns_of,
)
from dragoman.dialects.platform.connected_events import ConnectedListener, Told
from dragoman.dialects.platform.connected_parts import artifact_object, part_object, read_artifact
from dragoman.model.agent import Skill, Via
from dragoman.model.call import AdmittedCall, Caller
from dragoman.model.content import REFERENCED, Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import BadParams
from dragoman.model.events import ArtifactChunk, Logged, MessageAdded, StatusChanged
from dragoman.model.lifecycle import fold
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent, new_task

AT = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
PARTS: tuple[Part, ...] = (
    Text(text="hello", metadata={"lang": "en"}),
    Data(value={"a": [1, None]}),
    Blob(raw=b"\x00\xff", filename="a.bin", media_type="application/x-thing"),
    Link(url="https://example.com/f", filename="f.pdf", media_type="application/pdf"),
)


def outgoing(task: Task, wait: Wait = Wait.END, **more: Any) -> Outgoing:
    asked = msgspec.structs.replace(task.asked, wait=wait)
    task = msgspec.structs.replace(task, asked=asked)
    return Outgoing(verb=Verb.STREAM, task=task, asked=asked, endpoint=ENDPOINT, at=AT, caller="alice", **more)


def fresh_task() -> Task:
    return msgspec.structs.replace(new_task(ManualClock()), messages=(), deadline=AT)


def heard(listener: ConnectedListener, name: str, data: dict[str, Any], n: int = 1) -> Heard:
    return listener.hear(Told(n=n, event=name, data=data), AT)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_goes_there_and_back_unchanged(part: Part) -> None:
    made = Artifact(id="a", parts=(part,), name="n", description="d", metadata={"x": 1})
    assert read_artifact(artifact_object(made)) == made


def test_bytes_are_base64_and_links_are_uris() -> None:
    assert part_object(PARTS[2])["file"]["bytes"] == base64.b64encode(b"\x00\xff").decode()
    assert part_object(PARTS[3]) == {
        "file": {"uri": "https://example.com/f", "name": "f.pdf", "mime_type": "application/pdf"}
    }


NO_ARTIFACTS: list[Any] = [
    {},
    {"id": "", "parts": []},
    {"id": "a"},
    {"id": "a", "parts": {}},
    {"id": "a", "parts": ["x"]},
    {"id": "a", "parts": [{}]},
    {"id": "a", "parts": [{"file": {}}]},
    {"id": "a", "parts": [{"file": {"bytes": "not base64!"}}]},
]


@pytest.mark.parametrize("data", NO_ARTIFACTS)
def test_an_artifact_that_makes_no_sense_is_refused_with_its_path(data: dict[str, Any]) -> None:
    with pytest.raises(BadParams) as refusal:
        read_artifact(data)
    assert refusal.value.details["errors"][0]["path"].startswith("artifact.")


@pytest.mark.parametrize(
    ("name", "data", "state", "settled"),
    [
        ("complete", {"status": "completed", "result": {"a": 1}}, TaskState.COMPLETED, True),
        ("complete", {"status": "cancelled"}, TaskState.CANCELED, True),
        ("error", {"code": "X", "message": "broke"}, TaskState.FAILED, True),
        ("cancelled", {}, TaskState.CANCELED, True),
        ("rejected", {"message": "not mine"}, TaskState.REJECTED, True),
        ("ask", {"ask": 0, "prompt": "Which?"}, TaskState.INPUT_REQUIRED, True),
        ("auth", {"ask": 0, "message": "Log in"}, TaskState.AUTH_REQUIRED, True),
        ("progress", {"progress": 0.5, "message": "half"}, TaskState.WORKING, False),
        ("usage", {"tokens": 5, "model": "m"}, TaskState.WORKING, False),
    ],
)
def test_what_each_event_means_for_the_task(name: str, data: dict[str, Any], state: TaskState, settled: bool) -> None:
    said = heard(ConnectedListener(outgoing(fresh_task())), name, data, n=7)
    last = said.events[-1]
    assert isinstance(last, StatusChanged)
    assert (last.state, said.settled, last.n) == (state, settled, 7)


def test_a_question_carries_its_words_and_its_schema() -> None:
    schema = {"type": "object"}
    said = heard(ConnectedListener(outgoing(fresh_task())), "ask", {"ask": 2, "prompt": "Which?", "schema": schema})
    (asked,) = said.events
    assert isinstance(asked, StatusChanged) and asked.message is not None
    assert asked.message.parts == (Text(text="Which?"),)
    assert (asked.message.role, asked.message.metadata) == (Role.AGENT, {"schema": schema})


def test_chunks_are_one_artifact_and_the_answer_without_a_result() -> None:
    task = fresh_task()
    listener = ConnectedListener(outgoing(task))
    for n, word in enumerate(("a", "b"), 1):
        task = fold(task, heard(listener, "chunk", {"content": word}, n).events)
    task = fold(task, heard(listener, "complete", {"status": "completed"}, 3).events)
    assert [artifact.parts for artifact in task.artifacts] == [(Text(text="a"), Text(text="b"))]
    assert (task.state, task.heard) == (TaskState.COMPLETED, 3)


def test_a_call_that_begins_anew_replaces_what_an_earlier_attempt_made() -> None:
    task = fresh_task()
    first = ConnectedListener(outgoing(task))
    task = fold(task, heard(first, "chunk", {"content": "Hal"}).events)
    piece = {"id": "f", "parts": [{"text": "old"}]}
    task = fold(task, heard(first, "artifact", piece, 2).events)
    goes_on = ConnectedListener(outgoing(task))
    assert fold(task, heard(goes_on, "chunk", {"content": "lo"}).events).artifacts[0].parts == (
        Text(text="Hal"),
        Text(text="lo"),
    )
    anew = ConnectedListener(outgoing(task))
    assert heard(anew, "start", {}).events == ()
    task = fold(task, heard(anew, "chunk", {"content": "Hello"}, 2).events)
    task = fold(task, heard(anew, "artifact", {"id": "f", "parts": [{"text": "new"}], "append": True}, 3).events)
    assert [artifact.parts for artifact in task.artifacts] == [(Text(text="Hello"),), (Text(text="new"),)]


def test_whoever_listens_hears_that_work_begins() -> None:
    (began,) = heard(ConnectedListener(outgoing(fresh_task(), Wait.STREAM)), "start", {}).events
    assert isinstance(began, StatusChanged) and began.state is TaskState.WORKING
    assert heard(ConnectedListener(outgoing(fresh_task(), Wait.END)), "start", {}).events == ()


def test_artifacts_are_the_answer_or_stand_beside_the_result() -> None:
    task = fresh_task()
    listener = ConnectedListener(outgoing(task))
    said = heard(listener, "artifact", {"id": "r", "name": "R", "parts": [{"text": "x"}], "last": False})
    (piece,) = said.events
    assert isinstance(piece, ArtifactChunk) and not piece.last and not piece.append
    assert len(heard(listener, "complete", {"status": "completed"}, 2).events) == 1
    *_, end = heard(listener, "complete", {"status": "completed", "result": {"pages": 1}}, 2).events
    assert isinstance(end, StatusChanged) and end.result == {"pages": 1}


def test_lines_are_kept_a_hundred_and_two_kibibytes_each() -> None:
    listener = ConnectedListener(outgoing(msgspec.structs.replace(fresh_task(), logged=98)))
    (line,) = heard(listener, "log", {"level": "loud", "message": "é" * 5000, "fields": {"a": "b"}}).events
    assert isinstance(line, Logged)
    assert (len(line.message.encode()), line.level, line.fields) == (2048, "info", None)
    (line,) = heard(listener, "log", {"level": "error", "message": "x", "fields": {"a": 1}, "at": "2026-01-01"}).events
    assert isinstance(line, Logged) and line.fields == {"a": 1} and line.at.year == 2026
    assert heard(listener, "log", {"message": "one too many"}).events == ()


def test_unknown_events_say_nothing() -> None:
    listener = ConnectedListener(outgoing(fresh_task()))
    for name in ("span", "later", "released", ""):
        assert heard(listener, name, {"content": "x", "status": "completed"}) == Heard(events=(), settled=False)


def admitted(task: Task, caller: Caller, skill: Skill | None = None) -> AdmittedCall:
    return AdmittedCall(
        caller=caller,
        operation=task.asked,
        agent=new_agent(ManualClock(), "weather"),
        endpoint=ENDPOINT,
        skill=skill,
        message=task.asked.message,
        task=task,
        timeout_s=30.0,
        deadline=30.0,
    )


@pytest.mark.parametrize(
    ("caller", "kind", "name"),
    [
        (Caller(tenant="acme", id="key_1", scopes=frozenset({"a2a:call"})), "key", "key_1"),
        (Caller(tenant="acme", id="bob", agent_id="agt_b"), "agent", "agt_b"),
        (Caller(tenant="acme", id="anonymous", anonymous=True), "anonymous", "anonymous"),
    ],
)
def test_a_call_says_who_calls(caller: Caller, kind: str, name: str) -> None:
    task = fresh_task()
    frame = call_frame(outgoing(task, attempt=3), admitted(task, caller), (), (2, 9))
    assert (frame["caller"]["kind"], frame["caller"]["name"]) == (kind, name)
    assert (frame["attempt"], frame["heard"]) == (3, {"attempt": 2, "n": 9})
    assert frame["deadline"] == "2026-07-01T12:00:00.000Z"


def test_a_text_becomes_the_input_that_the_skill_wants() -> None:
    task = fresh_task()
    message = Message(id="m", role=Role.USER, parts=(Text(text="Lisbon"),))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    skill = Skill(id="s", name="s", input_schema=schema)
    call = admitted(task, Caller(tenant="acme", id="k"), skill)
    frame = call_frame(outgoing(task, message=message), call, (), None)
    assert (frame["input"], frame["message"]["parts"]) == ({"city": "Lisbon"}, [{"text": "Lisbon"}])
    assert "heard" not in frame


def test_the_whole_call_has_the_first_message_and_the_answers() -> None:
    task = fresh_task()
    answer = Message(id="a1", role=Role.USER, parts=(Text(text="blue"),))
    words = Message(id="w", role=Role.AGENT, parts=(Text(text="hm"),))
    task = fold(task, (MessageAdded(at=AT, message=words), MessageAdded(at=AT, message=answer)))
    asked = outgoing(task, message=answer, attempt=2)
    frame = call_frame(asked, admitted(task, Caller(tenant="acme", id="k")), (), None)
    assert frame["message"]["id"] == task.asked.message.id
    assert [each["id"] for each in frame["answers"]] == ["a1"]
    assert answers_of(task) == (answer,)
    assert input_frame(asked, None) == {
        "call_id": task.id,
        "attempt": 2,
        "ask": 0,
        "message": {"id": "a1", "role": "user", "parts": [{"text": "blue"}]},
    }


def test_a_conversation_is_told_from_its_oldest_turn_fifty_at_most() -> None:
    clock = ManualClock()
    tasks: list[Task] = []
    for number in range(40):
        clock.advance(1)
        task = msgspec.structs.replace(new_task(clock, said={"n": number}), messages=())
        done = StatusChanged(at=AT, state=TaskState.COMPLETED, result={"n": number})
        answer = ArtifactChunk(at=AT, artifact=Artifact(id="r", parts=(Data(value={"said": number}),)))
        tasks.append(fold(task, (answer, done)))
    turns = turns_of(reversed(tasks))
    assert len(turns) == 50
    assert [turn.role for turn in turns[-2:]] == [Role.USER, Role.AGENT]
    assert turns[-1].parts == (Data(value={"said": 39}),)


REFERENCES: list[Any] = [None, {}, [], {"t": None}, {"t": [3, {"parts": 4}, {"parts": [{}]}]}]


@pytest.mark.parametrize("made", REFERENCES)
def test_references_of_any_shape_do_no_harm(made: Any) -> None:
    task = fresh_task()
    message = Message(id="m", role=Role.USER, parts=(), references=("t",), metadata={REFERENCED: made, "mine": 1})
    frame = call_frame(outgoing(task, message=message), admitted(task, Caller(tenant="acme", id="k")), (), None)
    assert frame["references"][0]["call_id"] == "t"
    assert frame["message"]["metadata"] == {"mine": 1}
    assert frame["input"] == {}


def test_a_card_needs_no_endpoint_and_is_served_with_the_hubs() -> None:
    card = {"name": "A", "description": "d", "version": "1.0.0", "skills": [{"name": "s"}], "endpoint": "http://x/"}
    read = read_connected_card(card, "agt_a")
    assert (read.id, read.endpoints[0].via, read.endpoints[0].url) == ("agt_a", Via.CONNECTED, None)
    del card["endpoint"]
    assert read_connected_card(card, None).id
    with pytest.raises(BadParams):
        read_connected_card({"name": "A"}, None)
