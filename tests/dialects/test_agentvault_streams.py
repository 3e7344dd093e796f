"""AgentVault's streams without a wire: what a subscriber is shown of a task, and what the hub hears of an agent's."""

import json
from datetime import datetime
from typing import Any, Final

import pytest

from dragoman.dialects.agentvault import DIALECT
from dragoman.dialects.agentvault.listen import AgentVaultListener
from dragoman.dialects.agentvault.outbound import ask
from dragoman.dialects.agentvault.streams import Shown, error_frame
from dragoman.dialects.agentvault.wire import STATES
from dragoman.dialects.dialect import Heard, StreamExchange, Verb
from dragoman.dialects.sse import SseEvent, SseParser
from dragoman.model.content import Artifact, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import AgentError, BadAgentReply, Failure, NotSupported
from dragoman.model.events import ArtifactChunk, Happened, MessageAdded, Remote, Sent, StatusChanged, TaskEvent
from dragoman.model.lifecycle import fold
from dragoman.model.operations import FollowTask
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from tests.dialects.agentvault_samples import (
    AT,
    LATER,
    agent_said,
    heard_from,
    outgoing,
    published,
    request_of,
    result_of,
    rpc,
    task_of,
)

Event = tuple[str, dict[str, Any]]

WORDS: Final = {"role": "assistant", "parts": [{"type": "text", "content": "hi"}]}
STEPS: Final[tuple[TaskEvent, ...]] = (
    StatusChanged(at=AT, state=TaskState.WORKING),
    Sent(at=AT, agent_id="echo", remote=Remote(task_id="t")),
    MessageAdded(at=LATER, message=agent_said("hi")),
    ArtifactChunk(
        at=LATER,
        artifact=Artifact(id="a1", kind="result", parts=(Data(value={"echo": "hi"}, media_type="application/json"),)),
    ),
    StatusChanged(at=LATER, state=TaskState.COMPLETED),
)


def events_of(raw: bytes) -> list[Event]:
    return [(event.name, json.loads(event.data)) for event in SseParser().feed(raw)]


def ids_of(raw: bytes) -> list[str]:
    return [line.removeprefix("id: ") for line in raw.decode().splitlines() if line.startswith("id:")]


def states_of(events: list[Event]) -> list[str]:
    return [data["state"] for name, data in events if name == "task_status"]


def items_of(task: Task, *steps: TaskEvent) -> list[StreamItem]:
    """What the hub tells of a task to which these happen; the last of them may end it."""
    items: list[StreamItem] = []
    for step in steps:
        task = fold(task, (step,))
        if isinstance(step, StatusChanged) and step.state in FINAL:
            items.append(Ended(seq=task.last_seq, event=step, task=task))
        else:
            items.append(Happened(seq=task.last_seq, event=step))
    return items


def shown(items: list[StreamItem], after: int | None = None) -> bytes:
    frames = Shown("av-1", after)
    return b"".join(frames(item) for item in items)


# -- to a subscriber


@pytest.mark.req("V-07", "V-23")
def test_a_task_is_shown_from_its_beginning_to_its_end() -> None:
    task = task_of(last_seq=1, updated_at=AT)
    raw = shown([Snapshot(task=task), *items_of(task, *STEPS)])
    first, opening, *rest = events_of(raw)
    assert opening == (
        "task_message",
        {
            "taskId": "av-1",
            "message": {"role": "user", "parts": [{"type": "text", "content": "echo:hi"}]},
            "timestamp": "2026-01-12T10:00:00.000Z",
        },
    )
    names = ("1-task-status", "2-task-status", "3-task-message", "4-task-artifact", "5-task-status")
    wanted = [published(f"stream-{name}") for name in names]
    for (name, data), want in zip([first, *rest], wanted, strict=True):
        assert name == want["event"]
        assert {**data, "taskId": "", "timestamp": ""} == {**want["data"], "taskId": "", "timestamp": ""}
    assert ids_of(raw) == ["1", "2", "4", "5", "6"]
    for line in raw.decode().splitlines():
        assert not line or line.startswith(("id: ", "event: ", "data: {"))


@pytest.mark.req("V-07")
@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_finished_task_is_shown_whole_with_its_end_last(state: TaskState) -> None:
    done = fold(task_of(last_seq=1), [*STEPS[:-1], StatusChanged(at=LATER, state=state)])
    raw = shown([Snapshot(task=done)])
    events = events_of(raw)
    assert states_of(events) == ["WORKING", STATES[state]]
    assert (events[0][0], events[-1][0]) == ("task_status", "task_status")
    said = [data["message"]["role"] for name, data in events if name == "task_message"]
    assert said[:2] == ["user", "assistant"]
    assert [data["artifact"]["id"] for name, data in events if name == "task_artifact"] == ["a1"]
    assert ids_of(raw) == ["6"]
    assert raw.rindex(b"id: 6") > raw.index(b"task_artifact")


@pytest.mark.parametrize("state", [TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED])
def test_an_open_task_is_shown_as_it_is(state: TaskState) -> None:
    (status, *said) = events_of(shown([Snapshot(task=task_of(state, status_message=agent_said("Which?")))]))
    assert status[1]["state"] == STATES[state]
    asks = [data["message"]["parts"][0]["content"] for _, data in said]
    assert asks == (["echo:hi", "Which?"] if state is TaskState.INPUT_REQUIRED else ["echo:hi"])


@pytest.mark.req("V-20", "V-23")
@pytest.mark.parametrize(
    ("before", "after", "shows"),
    [
        (TaskState.SUBMITTED, TaskState.COMPLETED, ["WORKING", "COMPLETED"]),
        (TaskState.SUBMITTED, TaskState.FAILED, ["WORKING", "FAILED"]),
        (TaskState.SUBMITTED, TaskState.REJECTED, ["WORKING", "FAILED"]),
        (TaskState.SUBMITTED, TaskState.INPUT_REQUIRED, ["WORKING", "INPUT_REQUIRED"]),
        (TaskState.SUBMITTED, TaskState.CANCELED, ["CANCELED"]),
        (TaskState.WORKING, TaskState.COMPLETED, ["COMPLETED"]),
        (TaskState.WORKING, TaskState.AUTH_REQUIRED, ["INPUT_REQUIRED"]),
        (TaskState.INPUT_REQUIRED, TaskState.COMPLETED, ["WORKING", "COMPLETED"]),
        (TaskState.INPUT_REQUIRED, TaskState.CANCELED, ["CANCELED"]),
        (TaskState.AUTH_REQUIRED, TaskState.FAILED, ["WORKING", "FAILED"]),
    ],
)
def test_a_jump_is_shown_with_working_in_between(before: TaskState, after: TaskState, shows: list[str]) -> None:
    task = task_of(before, last_seq=3)
    items = items_of(task, StatusChanged(at=LATER, state=after))
    assert states_of(events_of(shown([Snapshot(task=task), *items])))[1:] == shows
    assert ids_of(shown(items)) == ["4"]


def test_a_state_that_is_told_again_is_shown_where_it_brings_words() -> None:
    task = task_of(TaskState.WORKING, last_seq=2)
    steps = (
        StatusChanged(at=LATER, state=TaskState.WORKING, progress=0.5),
        StatusChanged(at=LATER, state=TaskState.WORKING, message=agent_said("half way")),
    )
    silent, said = (shown([item], after=2) for item in items_of(task, *steps))
    assert silent == b""
    assert events_of(said)[0][1]["message"] == "half way"
    assert ids_of(said) == ["4"]


def test_a_question_is_said_as_a_message_too_but_once() -> None:
    task = task_of(TaskState.WORKING, last_seq=2)
    asks = StatusChanged(at=LATER, state=TaskState.INPUT_REQUIRED, message=agent_said("Which?"))
    message, status = events_of(shown(items_of(task, asks), after=2))
    assert message[1]["message"]["parts"] == [{"type": "text", "content": "Which?"}]
    assert (status[1]["state"], status[1]["message"]) == ("INPUT_REQUIRED", "Which?")
    said = MessageAdded(at=LATER, message=agent_said("Which?"))
    names = [name for name, _ in events_of(shown(items_of(task, said, asks), after=2))]
    assert names == ["task_message", "task_status"]


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED])
def test_an_answer_that_came_with_the_end_is_a_message_before_it(state: TaskState) -> None:
    ends = StatusChanged(at=LATER, state=state, message=agent_said("so be it"))
    *_, message, status = events_of(shown(items_of(task_of(TaskState.WORKING, last_seq=2), ends), after=2))
    assert message[1]["message"]["parts"] == [{"type": "text", "content": "so be it"}]
    assert (status[0], status[1]["state"], status[1]["message"]) == ("task_status", STATES[state], "so be it")


def test_a_failure_has_its_reason() -> None:
    ends = StatusChanged(at=LATER, state=TaskState.FAILED, failure=Failure(code="AGENT_ERROR", message="it broke"))
    message, status = events_of(shown(items_of(task_of(TaskState.WORKING, last_seq=2), ends), after=2))
    assert message[1]["message"]["parts"] == [{"type": "text", "content": "it broke"}]
    assert status[1]["message"] == "it broke"


def test_an_artifact_in_pieces_is_told_piece_by_piece_and_whole_at_the_end() -> None:
    def piece(text: str, *, append: bool) -> ArtifactChunk:
        return ArtifactChunk(at=LATER, artifact=Artifact(id="a", parts=(Text(text=text),)), append=append, last=False)

    task = task_of(TaskState.WORKING, last_seq=2)
    ends = StatusChanged(at=LATER, state=TaskState.COMPLETED)
    items = items_of(task, piece("Hel", append=False), piece("lo", append=True), ends)
    frames = Shown("av-1", None)
    frames(Snapshot(task=task))
    first, second, *last = [events_of(frames(item)) for item in items]
    assert first[0][1]["artifact"] == {"id": "a", "type": "result", "content": "Hel"}
    further = {"id": "a", "type": "result", "content": "lo", "metadata": {"dragoman": {"append": True}}}
    assert second[0][1]["artifact"] == further
    ((answer, whole, end),) = last
    assert answer[1]["message"]["parts"] == [{"type": "text", "content": "Hello"}]
    assert [part["content"] for part in whole[1]["artifact"]["content"]] == ["Hel", "lo"]
    assert end[1]["state"] == "COMPLETED"


@pytest.mark.req("V-25")
@pytest.mark.parametrize("seen", range(1, 6))
def test_who_comes_back_is_shown_the_rest_and_nothing_twice(seen: int) -> None:
    task = task_of(last_seq=1)
    items = items_of(task, *STEPS)
    whole = events_of(shown([Snapshot(task=task), *items]))
    before = events_of(shown([Snapshot(task=task), *items[: seen - 1]]))
    after = events_of(shown(items[seen - 1 :], after=seen))
    assert before + after == whole


def test_a_caller_that_never_saw_a_number_of_ours_begins_anew() -> None:
    for said, after in ((b"3", 3), (b"x", None), (b"", None), (b"-1", None)):
        asked = rpc(request_of("tasks/sendSubscribe", {"id": "av-1"}), {b"last-event-id": said}).operation
        assert isinstance(asked, FollowTask)
        assert asked.after == after


@pytest.mark.req("V-06")
def test_the_headers_say_that_it_is_a_stream() -> None:
    exchange = rpc(published("tasks-send-subscribe-request"))
    assert isinstance(exchange, StreamExchange)
    headers = exchange.stream("task-1", "ctx-1").headers
    assert headers[b"content-type"] == b"text/event-stream"
    assert headers[b"cache-control"] == b"no-cache"
    assert headers[b"connection"] == b"keep-alive"


@pytest.mark.req("V-24")
def test_a_stream_that_cannot_go_on_says_why() -> None:
    error = AgentError("Failed to process intermediate step X.", step="X")
    ((name, data),) = events_of(error_frame(error))
    wanted = published("stream-error")
    assert name == wanted["event"]
    assert {**data, "code": ""} == {**wanted["data"], "code": ""}


# -- from an agent


def event(name: str, data: object) -> SseEvent:
    return SseEvent(name, data if isinstance(data, bytes) else json.dumps(data).encode())


def status(state: str, message: str | None = None) -> SseEvent:
    return event("task_status", {"taskId": "t", "state": state, "timestamp": "2026-01-12T10:00:00", "message": message})


def message(role: str, text: str, name: str = "task_message", **more: Any) -> SseEvent:
    said = {"role": role, "parts": [{"type": "text", "content": text}], "metadata": None, **more}
    return event(name, {"taskId": "t", "message": said, "timestamp": "2026-01-12T10:00:00"})


def artifact(content: object, **more: Any) -> SseEvent:
    made = {"id": "a1", "type": "result", "content": content, "url": None, "mediaType": None, "metadata": None, **more}
    return event("task_artifact", {"taskId": "t", "artifact": made, "timestamp": "2026-01-12T10:00:00"})


def followed(**more: Any) -> Task:
    return task_of(TaskState.WORKING, remote=Remote(task_id="t"), last_seq=3, **more)


def heard(task: Task, *events: SseEvent, at: datetime = LATER) -> list[TaskEvent]:
    listener = AgentVaultListener(outgoing(Verb.SUBSCRIBE, task))
    found: list[TaskEvent] = []
    for each in events:
        told: Heard = listener.hear(each, at)
        assert not told.settled
        found += told.events
    return found


def test_a_task_is_subscribed_to_by_the_agents_own_id() -> None:
    request = ask(outgoing(Verb.SUBSCRIBE, followed()))
    assert request is not None
    body = json.loads(request.body)
    assert (body["method"], body["params"]) == ("tasks/sendSubscribe", {"id": "t"})
    assert b"text/event-stream" in request.headers[b"accept"]
    assert ask(outgoing(Verb.SUBSCRIBE, task_of())) is None
    assert ask(outgoing(Verb.STREAM, followed())) is None
    assert DIALECT.listen is not None


@pytest.mark.req("V-38")
def test_what_happens_is_heard_and_nothing_twice() -> None:
    found = heard(
        followed(),
        status("WORKING"),
        message("user", "echo:hi"),
        message("assistant", "hi"),
        status("WORKING", "half way"),
        status("WORKING", "half way"),
        artifact("Hel"),
        artifact("Hello"),
        artifact("Hello"),
        event("something", {}),
    )
    said, progress, first, rest = found
    assert isinstance(said, MessageAdded)
    assert (said.message.role, said.message.parts) == (Role.AGENT, (Text(text="hi"),))
    assert isinstance(progress, StatusChanged)
    assert progress.message is not None
    assert isinstance(first, ArtifactChunk)
    assert isinstance(rest, ArtifactChunk)
    assert (rest.append, rest.artifact.parts) == (True, (Text(text="lo"),))


@pytest.mark.parametrize("name", ["", "message", "task_message"])
def test_an_event_without_a_name_is_a_message(name: str) -> None:
    (said,) = heard(followed(), message("agent", "hi", name))
    assert isinstance(said, MessageAdded)


def test_a_piece_of_an_artifact_is_added_to_it() -> None:
    further = artifact("lo", metadata={"dragoman": {"append": True}})
    whole = artifact([{"type": "text", "content": "Hel"}, {"type": "text", "content": "lo"}])
    first, rest = heard(followed(), artifact("Hel"), further, whole)
    assert isinstance(first, ArtifactChunk)
    assert isinstance(rest, ArtifactChunk)
    assert (rest.append, rest.artifact.parts) == (True, (Text(text="lo"),))


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELED", "INPUT_REQUIRED", "completed"])
def test_at_its_end_or_question_the_task_is_asked_for(state: str) -> None:
    with pytest.raises(NotSupported):
        heard(followed(), status(state))


def test_a_stream_that_breaks_is_left() -> None:
    for data in ({"message": "it broke"}, {"error": "stream_error"}):
        with pytest.raises(NotSupported):
            heard(followed(), event("error", data))


@pytest.mark.parametrize("data", [b"{", b"[]", b"7", b"\xff"])
def test_rubbish_in_a_stream_is_the_agents_fault(data: bytes) -> None:
    with pytest.raises(BadAgentReply):
        heard(followed(), event("task_status", data))


def test_what_is_said_before_is_known_again_in_the_stream_and_in_the_task() -> None:
    task = followed()
    (said,) = heard(task, message("assistant", "ok"))
    task = fold(task, [said])
    assert heard(task, message("user", "echo:hi"), message("assistant", "ok")) == []
    turns = [HI_TURN, _turn("ok"), _turn("ok")]
    got = heard_from(Verb.GET, result_of({"id": "t", "state": "COMPLETED", "messages": turns}), task=task)
    whole = fold(task, got.events)
    assert [turn.parts for turn in whole.messages] == [(Text(text="ok"),), (Text(text="ok"),)]
    assert len({turn.id for turn in whole.messages}) == 2


HI_TURN: Final = {"role": "user", "parts": [{"type": "text", "content": "echo:hi"}]}


def _turn(text: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def test_what_another_hub_adds_to_be_read_is_no_turn() -> None:
    marked = message("assistant", "hi", metadata={"dragoman": {"as": "answer"}})
    assert heard(followed(), marked) == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}, 200),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}}, 404),
        ({"detail": "Not Found"}, 404),
        ({"detail": "Method Not Allowed"}, 405),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, 200),
        (b"<html>", 501),
        (b"", 503),
    ],
)
def test_an_answer_that_is_no_stream_says_nothing_of_the_task(body: object, code: int) -> None:
    with pytest.raises(NotSupported):
        heard_from(Verb.SUBSCRIBE, body, code, task=followed())


def test_a_task_in_place_of_a_stream_is_taken() -> None:
    got = heard_from(Verb.SUBSCRIBE, published("tasks-get-response"), task=followed())
    assert got.settled
    assert isinstance(got.events[-1], StatusChanged)


# -- hub to hub


PIECES: Final[list[tuple[Part, ...]]] = [
    (Text(text="x"),),
    (Data(value={"n": 2**60}),),
    (Data(value=[1]),),
    (Link(url="https://example.com/a", media_type="image/png", filename="a"),),
    (Text(text="a"), Data(value={"b": 1})),
]


@pytest.mark.parametrize("parts", PIECES)
def test_what_one_hub_shows_another_hears(parts: tuple[Part, ...]) -> None:
    """As long as it is told in a stream; the end is asked for."""
    told: list[TaskEvent] = [
        StatusChanged(at=LATER, state=TaskState.WORKING, message=agent_said("going")),
        MessageAdded(at=LATER, message=Message(id="m", role=Role.AGENT, parts=parts)),
        ArtifactChunk(at=LATER, artifact=Artifact(id="a", kind="thing", parts=parts)),
        ArtifactChunk(at=LATER, artifact=Artifact(id="a", kind="thing", parts=parts), append=True),
    ]
    task = task_of(last_seq=1)
    raw = shown([Snapshot(task=task), *items_of(task, *told)])
    again = fold(followed(), heard(followed(asked=task.asked), *SseParser().feed(raw)))
    there = fold(followed(), told)
    assert again.artifacts == there.artifacts
    assert [turn.parts for turn in again.messages] == [turn.parts for turn in there.messages]
    assert again.status_message is not None
    assert again.status_message.parts == agent_said("going").parts
