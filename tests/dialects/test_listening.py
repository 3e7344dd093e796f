"""Streams of the A2A family, heard by shape: every way in which agents tell of a task, each word passed on once."""

import json
from typing import Any

import pytest

from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.listening import TaskListener
from dragoman.dialects.sse import SseEvent
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.content import Artifact, Data, Text
from dragoman.model.errors import AgentError, NotSupported
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.lifecycle import fold, legal, output_of
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.dialects.goldens import AT, LATER, task_of

ENDPOINT = Endpoint(
    dialect="a2a-1.0", binding=Binding.JSONRPC, url="http://agent.test/", features=frozenset({Feature.GET})
)


def _listener(verb: Verb = Verb.STREAM, task: Task | None = None, **asked: Any) -> TaskListener:
    opened = task or task_of({"asked": asked})
    return TaskListener(Outgoing(verb=verb, task=opened, asked=opened.asked, endpoint=ENDPOINT, at=AT))


def _event(value: Any, name: str = "") -> SseEvent:
    return SseEvent(name, value if isinstance(value, bytes) else json.dumps(value).encode())


def _framed(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "result": value}


def _heard(*values: Any, listener: TaskListener | None = None) -> list[Heard]:
    hears = listener or _listener()
    return [hears.hear(_event(value), LATER) for value in values]


def _events(heard: list[Heard]) -> list[TaskEvent]:
    return [event for each in heard for event in each.events]


def _task(state: str = "TASK_STATE_WORKING", **more: Any) -> dict[str, Any]:
    return {"task": {"id": "T", "contextId": "C", "status": {"state": state}, **more}}


def _status(state: str, text: str = "", **more: Any) -> dict[str, Any]:
    said = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}} if text else {}
    return {"statusUpdate": {"taskId": "T", "contextId": "C", "status": {"state": state, **said}, **more}}


def _made(text: str, name: str = "A", **more: Any) -> dict[str, Any]:
    artifact = {"artifactId": name, "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "T", "contextId": "C", "artifact": artifact, **more}}


def _outcome(heard: list[Heard], task: Task | None = None) -> Task:
    opened = task or task_of({})
    return fold(opened, legal(opened.state, _events(heard)))


def _answer(heard: list[Heard], task: Task | None = None) -> str:
    """The words of the answer after all that was heard."""
    parts = output_of(_outcome(heard, task))
    return "".join(part.text for part in parts if isinstance(part, Text))


def _pieces(heard: list[Heard]) -> list[tuple[str, str, bool, bool]]:
    """What was passed on of artifacts: whose, which words, whether they add to it, whether they are the last."""
    return [
        (
            event.artifact.id,
            "".join(part.text for part in event.artifact.parts if isinstance(part, Text)),
            event.append,
            event.last,
        )
        for event in _events(heard)
        if isinstance(event, ArtifactChunk)
    ]


# -- the strict stream, in every framing


@pytest.mark.parametrize("framed", [True, False])
def test_a_strict_stream_is_heard_framed_or_bare(*, framed: bool) -> None:
    heard = _heard(
        *(
            _framed(each) if framed else each
            for each in (
                _task("TASK_STATE_SUBMITTED"),
                _status("TASK_STATE_WORKING"),
                _made("hello ", append=False, lastChunk=False),
                _made("you", append=True, lastChunk=True),
                _status("TASK_STATE_COMPLETED"),
            )
        )
    )
    assert [each.settled for each in heard] == [False, False, False, False, True]
    assert all(each.remote == Remote(task_id="T", context_id="C") for each in heard)
    assert _pieces(heard) == [("A", "hello ", False, False), ("A", "you", True, True)]
    assert _answer(heard) == "hello you"
    assert [event.state for event in _events(heard) if isinstance(event, StatusChanged)] == ["working", "completed"]


def test_the_kinds_and_states_of_0_3_are_heard_as_well() -> None:
    heard = _heard(
        _framed({"kind": "task", "id": "T", "contextId": "C", "status": {"state": "submitted"}}),
        _framed({"kind": "status-update", "taskId": "T", "status": {"state": "working"}, "final": False}),
        _framed(
            {
                "kind": "artifact-update",
                "taskId": "T",
                "artifact": {"artifactId": "A", "parts": [{"kind": "text", "text": "hi"}]},
                "lastChunk": True,
            }
        ),
        _framed({"kind": "status-update", "taskId": "T", "status": {"state": "input-required"}, "final": True}),
    )
    assert [each.settled for each in heard] == [False, False, False, True]
    assert _outcome(heard).state is TaskState.INPUT_REQUIRED


def test_q7_shapes_may_change_from_event_to_event_and_q9_events_may_have_names() -> None:
    listener = _listener()
    mixed = {"kind": "status-update", "status": {"state": "TASK_STATE_COMPLETED"}, "final": True}
    heard = [listener.hear(_event(_framed(each), "message"), LATER) for each in (_task(), _made("hi"), mixed)]
    assert _answer(heard) == "hi"
    assert heard[-1].settled


def test_underscores_and_whole_doubles_are_read() -> None:
    data = {"artifact": {"artifact_id": "A", "parts": [{"data": {"n": 1.0}}]}, "task_id": "T", "last_chunk": True}
    (chunk,) = _events(_heard({"artifact_update": data}))
    assert chunk == ArtifactChunk(at=LATER, artifact=Artifact(id="A", parts=(Data(value={"n": 1}),)), last=True)
    assert isinstance(chunk, ArtifactChunk)
    assert isinstance(chunk.artifact.parts[0], Data)
    assert type(chunk.artifact.parts[0].value["n"]) is int


def test_what_no_version_knows_is_passed_over() -> None:
    heard = _heard(b"[DONE]", b"ping", b"{}", b"[1]", b"null", b"\xff", {"result": 5}, {"result": {"what": 1}})
    assert _events(heard) == []
    assert not any(each.settled for each in heard)


# -- whole tasks at any place


def test_q13_one_whole_task_is_a_stream() -> None:
    done = _task("completed", artifacts=[{"artifactId": "A", "parts": [{"text": "all"}]}])
    heard = _heard(_framed(done["task"]))
    assert heard[0].settled
    assert _answer(heard) == "all"


def test_a_whole_task_tells_only_what_is_new() -> None:
    first = [{"artifactId": "A", "parts": [{"text": "one "}]}]
    second = [{"artifactId": "A", "parts": [{"text": "one two"}]}]
    heard = _heard(
        _task(artifacts=first),
        _task(artifacts=second),
        _task(artifacts=second),
        _task("TASK_STATE_COMPLETED", artifacts=second),
    )
    assert _pieces(heard) == [("A", "one ", False, True), ("A", "two", True, True)]
    assert _answer(heard) == "one two"


def test_a_subscriber_hears_of_a_task_only_what_the_hub_does_not_have() -> None:
    known = task_of({"state": "working", "artifacts": [{"id": "A", "parts": [{"type": "text", "text": "one "}]}]})
    listener = _listener(Verb.SUBSCRIBE, known)
    heard = _heard(
        _task(artifacts=[{"artifactId": "A", "parts": [{"text": "one two"}]}]),
        _made(" three", append=True, lastChunk=True),
        _status("TASK_STATE_COMPLETED"),
        listener=listener,
    )
    assert _pieces(heard) == [("A", "two", True, True), ("A", " three", True, True)]
    assert _answer(heard, known) == "one two three"


def test_the_question_that_was_just_answered_does_not_end_the_stream_of_the_answer() -> None:
    heard = _heard(
        _task("TASK_STATE_INPUT_REQUIRED"),
        _made("done"),
        _status("TASK_STATE_COMPLETED"),
        listener=_listener(continues="task-1"),
    )
    assert [each.settled for each in heard] == [False, False, True]
    assert _heard(_task("TASK_STATE_INPUT_REQUIRED"))[0].settled


# -- artifacts


@pytest.mark.parametrize("again", ["hello from", "hello from X"])
def test_q27_pieces_may_begin_with_append_and_be_followed_by_the_whole_again(again: str) -> None:
    heard = _heard(
        _task(),
        _made("hello ", append=True, lastChunk=False),
        _made("from", append=True, lastChunk=False),
        _made(again, append=False, lastChunk=True),
        _status("TASK_STATE_COMPLETED"),
    )
    assert _pieces(heard) == [
        ("A", "hello ", False, False),
        ("A", "from", True, False),
        ("A", again.removeprefix("hello from"), True, True),
    ]
    assert _answer(heard) == again


def test_an_artifact_that_says_something_else_takes_the_place_of_the_old() -> None:
    heard = _heard(_made("draft"), _made("final", append=False, lastChunk=True), _status("TASK_STATE_COMPLETED"))
    assert _pieces(heard)[-1] == ("A", "final", False, True)
    assert _answer(heard) == "final"


# -- words of a status


def test_q8_words_that_grow_are_the_answer_and_each_is_passed_on_once() -> None:
    texts = ("hello", "hello ", "hello from", "hello from X")
    heard = _heard(
        _task(),
        *(_status("TASK_STATE_WORKING", text) for text in texts),
        _made("hello from X", lastChunk=True),
        _status("TASK_STATE_COMPLETED"),
    )
    assert _pieces(heard) == [
        ("result", "hello ", False, False),
        ("result", "from", True, False),
        ("result", " X", True, False),
        ("result", "", True, True),
    ]
    assert _answer(heard) == "hello from X"
    said = [event.message for event in _events(heard) if isinstance(event, StatusChanged) and event.message]
    assert len(said) == 1


@pytest.mark.parametrize(
    "pieces", [("hello from X",), ("hello ", "from X"), ("hello from X", "!"), ("other", " words")]
)
def test_q8_an_artifact_that_follows_growing_words_stands_in_their_place(pieces: tuple[str, ...]) -> None:
    made = [_made(piece, append=index > 0, lastChunk=index == len(pieces) - 1) for index, piece in enumerate(pieces)]
    heard = _heard(
        _status("TASK_STATE_WORKING", "hello"),
        _status("TASK_STATE_WORKING", "hello from X"),
        *made,
        _status("TASK_STATE_COMPLETED", "hello from X"),
    )
    assert _answer(heard) == "".join(pieces)
    assert [each.id for each in _outcome(heard).artifacts] == ["result"]


def test_data_that_follows_growing_words_stands_in_their_place_and_further_artifacts_beside_it() -> None:
    data = {"artifactUpdate": {"taskId": "T", "artifact": {"artifactId": "A", "parts": [{"data": {"n": 2}}]}}}
    heard = _heard(
        _status("TASK_STATE_WORKING", "think"),
        _status("TASK_STATE_WORKING", "thinking"),
        data,
        _made("B's words", "B"),
        _status("TASK_STATE_COMPLETED"),
    )
    assert output_of(_outcome(heard)) == (Data(value={"n": 2}), Text(text="B's words"))


def test_q8_the_history_says_growing_words_once_more_and_adds_nothing() -> None:
    history = [
        {"messageId": "u", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
        {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "hello there"}]},
    ]
    heard = _heard(
        _status("TASK_STATE_WORKING", "hello"),
        _status("TASK_STATE_WORKING", "hello there"),
        _task("TASK_STATE_COMPLETED", history=history),
    )
    assert _answer(heard) == "hello there"


def test_growing_words_go_on_where_a_broken_stream_ended() -> None:
    first = _heard(_task(), _status("TASK_STATE_WORKING", "hello"), _status("TASK_STATE_WORKING", "hello from"))
    known = _outcome(first)
    second = _heard(
        _task(),
        _status("TASK_STATE_WORKING", "hello from X"),
        _status("TASK_STATE_COMPLETED"),
        listener=_listener(Verb.SUBSCRIBE, known),
    )
    assert _pieces(second) == [("result", " X", True, False)]
    assert _answer(second, known) == "hello from X"


def test_words_that_do_not_grow_stay_progress() -> None:
    heard = _heard(
        _status("TASK_STATE_WORKING", "looking"),
        _status("TASK_STATE_WORKING", "writing"),
        _made("the answer"),
        _status("TASK_STATE_COMPLETED"),
    )
    assert _pieces(heard) == [("A", "the answer", False, False)]
    assert _answer(heard) == "the answer"


def test_a_question_that_goes_on_with_what_was_said_is_a_question() -> None:
    heard = _heard(_status("TASK_STATE_WORKING", "I need"), _status("TASK_STATE_INPUT_REQUIRED", "I need a name"))
    assert _pieces(heard) == []
    asked = _outcome(heard).status_message
    assert asked is not None
    assert asked.parts == (Text(text="I need a name"),)


def test_q24_words_seen_only_on_the_way_are_the_last_resort() -> None:
    heard = _heard(
        _task("TASK_STATE_SUBMITTED"),
        _status("TASK_STATE_SUBMITTED"),
        _status("TASK_STATE_WORKING"),
        _status("TASK_STATE_WORKING", "the words"),
        _status("TASK_STATE_COMPLETED"),
    )
    assert _pieces(heard) == [("result", "the words", False, True)]
    assert _answer(heard) == "the words"


def test_what_was_said_in_the_history_is_the_answer_before_words_on_the_way() -> None:
    history = [{"messageId": "a", "role": "agent", "parts": [{"text": "the answer"}]}]
    heard = _heard(_status("TASK_STATE_WORKING", "thinking"), _task("TASK_STATE_COMPLETED", history=history))
    assert _answer(heard) == "the answer"


def test_q10_an_answer_in_the_last_status_is_found_there() -> None:
    heard = _heard(_status("TASK_STATE_WORKING", "thinking"), _status("TASK_STATE_COMPLETED", "the answer"))
    assert _pieces(heard) == []
    assert _answer(heard) == "the answer"


def test_progress_and_metadata_of_an_update_come_along() -> None:
    (moved,) = _events(
        _heard(
            _status("TASK_STATE_WORKING", metadata={"own": 1, "dragoman": {"progress": 0.5, "usage": {"tokens": 3}}})
        )
    )
    assert isinstance(moved, StatusChanged)
    assert (moved.progress, moved.metadata) == (0.5, {"own": 1})
    assert moved.usage is not None
    assert moved.usage.tokens == 3


# -- messages, names, ends


def test_one_message_is_the_answer_and_the_end() -> None:
    message = {"message": {"messageId": "m", "contextId": "C", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}
    (heard,) = _heard(_framed(message))
    assert heard.settled
    assert heard.remote == Remote(context_id="C")
    said, done = heard.events
    assert isinstance(said, MessageAdded)
    assert said.direct
    assert isinstance(done, StatusChanged)
    assert done.state is TaskState.COMPLETED


def test_a_message_within_a_task_is_talk_and_the_callers_own_is_nothing() -> None:
    own = {"message": {"messageId": "u", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    talk = {"message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "wait"}]}}
    heard = _heard(own, _task(), talk, talk)
    assert not any(each.settled for each in heard)
    assert [type(event) for event in _events(heard)] == [StatusChanged, MessageAdded]


def test_q25_the_first_event_names_the_task_where_no_task_comes() -> None:
    later = {"kind": "status-update", "status": {"state": "working"}, "final": False}
    named = {"kind": "status-update", "taskId": "T", "contextId": "C", "status": {"state": "submitted"}}
    heard = _heard(named, later)
    assert [each.remote for each in heard] == [Remote(task_id="T", context_id="C")] * 2
    apart = _heard(
        later, {"taskId": "T", "status": {"state": "working"}}, {"contextId": "C", **_made("x")["artifactUpdate"]}
    )
    assert [each.remote for each in apart] == [
        None,
        Remote(task_id="T"),
        Remote(task_id="T", context_id="C"),
    ]


def test_after_the_end_nothing_is_heard() -> None:
    heard = _heard(
        _made("all"), _status("TASK_STATE_COMPLETED"), _made("more", append=True), _status("TASK_STATE_FAILED")
    )
    assert heard[2].events == heard[3].events == ()
    assert heard[3].settled
    assert _answer(heard) == "all"


# -- errors


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"code": -32601, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "no"}, "result": None},
        {"error": {"code": 400, "message": "no", "details": [{"reason": "UNSUPPORTED_OPERATION"}]}},
        {"error": {"code": 501, "status": "UNIMPLEMENTED", "message": "no"}},
    ],
)
def test_a_first_event_may_say_that_there_are_no_streams(error: Any) -> None:
    for verb in (Verb.STREAM, Verb.SUBSCRIBE):
        with pytest.raises(NotSupported):
            _listener(verb).hear(_event(error), LATER)
    later = _heard(_task(), error)[-1]
    assert later.settled
    assert isinstance(later.events[0], StatusChanged)
    assert later.events[0].state is TaskState.FAILED


@pytest.mark.parametrize(
    ("body", "name", "words"),
    [
        ({"error": {"code": -32603, "message": "it broke"}}, "", "it broke"),
        ({"error": "it broke"}, "", "it broke"),
        ({"code": 500, "message": "it broke"}, "error", "it broke"),
        (b"it broke", "error", "it broke"),
    ],
)
def test_an_error_on_the_way_is_the_tasks_failure(body: Any, name: str, words: str) -> None:
    listener = _listener()
    listener.hear(_event(_task()), LATER)
    heard = listener.hear(_event(body, name), LATER)
    (ended,) = heard.events
    assert heard.settled
    assert isinstance(ended, StatusChanged)
    assert ended.failure is not None
    assert ended.failure.message == words


def test_what_is_refused_to_a_subscriber_says_nothing_of_the_task() -> None:
    not_found = {"error": {"code": -32001, "message": "Task not found"}}
    with pytest.raises(AgentError, match="Task not found"):
        _listener(Verb.SUBSCRIBE).hear(_event(not_found), LATER)
    assert _heard(not_found)[0].settled


def test_a_subscriber_that_saw_no_whole_task_is_sent_to_look_at_it() -> None:
    listener = _listener(Verb.SUBSCRIBE)
    assert _pieces(_heard(_made("rest", append=True), listener=listener)) == [("A", "rest", False, False)]
    with pytest.raises(AgentError, match="in the middle"):
        listener.hear(_event(_status("TASK_STATE_COMPLETED")), LATER)
