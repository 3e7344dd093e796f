"""Streams and pushes that A2A 0.3 (in both framings) and dotted have in common."""

import json
from base64 import b64encode
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.dialects import DIALECTS
from dragoman.dialects.a2a_v03.rest_wire import is_encoded_twice
from dragoman.dialects.dialect import RPC, Exchange, Notice, Outgoing, StreamExchange, Verb
from dragoman.dialects.sse import SseParser
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Artifact, Blob, Part, Role, Text
from dragoman.model.errors import AgentError, DragomanError, NotSupported
from dragoman.model.events import ArtifactChunk, Happened, TaskEvent
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.lifecycle import fold, legal, output_of
from dragoman.model.operations import SendTask, Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Snapshot, Task
from tests.dialects.goldens import AT, HUB, HUB_ID, LATER
from tests.dialects.kind_world import PARTS
from tests.dialects.stream_world import (
    added,
    framed,
    frames_of,
    holds,
    items_of,
    moved,
    open_task,
    parsed,
    piece,
    said,
    told,
)

V03, REST, DOTTED = "a2a-0.3", "a2a-0.3-http", "dotted"
EVERY_WIRE = pytest.mark.parametrize("wire", [V03, REST, DOTTED])
_METHODS: Final = {V03: "message/stream", DOTTED: "message.stream"}


def dialect_of(wire: str) -> Any:
    """The dialect of a wire."""
    return DIALECTS[wire.removesuffix("-http")]


def asking(wire: str, **configuration: Any) -> Exchange:
    """A request that asks for a stream."""
    parts = [{"kind": "text", "text": "hi"}]
    message: dict[str, Any] = {"kind": "message", "messageId": "m-1", "role": "user", "parts": parts}
    body: Any = {"message": message, "configuration": configuration}
    if wire == REST:
        body["message"] = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hi"}]}
    else:
        body = {"jsonrpc": "2.0", "id": "req-1", "method": _METHODS[wire], "params": body}
    request = HttpRequest(
        method="POST",
        url="/agents/agt_x/",
        headers={b"content-type": b"application/json"},
        body=json.dumps(body).encode(),
        id="1",
        at=AT,
        route="rest_stream" if wire == REST else RPC,
        params={"agent": "agt_x"},
        hub=HUB,
    )
    exchange: Exchange = dialect_of(wire).read(request)
    return exchange


def outgoing(wire: str, verb: Verb, task: Task, version: str | None = None) -> Outgoing:
    """A request to an agent."""
    binding = Binding.HTTP if wire == REST else Binding.JSONRPC
    dialect = dialect_of(wire)
    endpoint = Endpoint(
        dialect=dialect.slug, binding=binding, url="http://agent.test/", version=version, features=dialect.features
    )
    message = task.asked.message if verb is Verb.STREAM else None
    return Outgoing(verb=verb, task=task, asked=task.asked, endpoint=endpoint, at=AT, message=message)


def shapes(wire: str, data: list[Any]) -> list[tuple[str, Any]]:
    """What each frame is, and the object in it."""
    if wire == REST:
        assert all(len(each) == 1 for each in data)
        names = {"task": "task", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
        return [(names[name], shown) for each in data for name, shown in each.items()]
    assert all(set(each) == {"jsonrpc", "id", "result"} and each["id"] == "req-1" for each in data)
    return [(each["result"]["kind"], each["result"]) for each in data]


def kinds(wire: str, data: list[Any]) -> list[str]:
    """What each frame is."""
    return [kind for kind, _ in shapes(wire, data)]


# -- coming in


@pytest.mark.req("O-42", "O-45", "D-14")
@EVERY_WIRE
def test_a_request_for_a_stream_is_a_task_whose_every_event_is_wanted(wire: str) -> None:
    operation = asking(wire, blocking=False).operation
    assert isinstance(operation, SendTask)
    assert (operation.wait, operation.timeout_s, operation.agent) == (Wait.STREAM, 3600.0, "agt_x")


@pytest.mark.req("O-43", "O-45", "D-14")
@EVERY_WIRE
def test_a_stream_shows_the_task_then_what_happens_then_the_end(wire: str) -> None:
    events: list[TaskEvent] = [
        moved(TaskState.WORKING, said("looking")),
        piece("High ", last=False),
        piece("water", append=True),
        moved(TaskState.COMPLETED),
    ]
    data = framed(frames_of(asking(wire)), *items_of(open_task(), events))
    assert kinds(wire, data) == ["task", "status-update", "artifact-update", "artifact-update", "status-update"]
    (_, first), (_, working), (_, begun), (_, goes_on), (_, done) = shapes(wire, data)
    assert (first["id"], first["contextId"]) == ("task-1", "ctx-1")
    for each in (working, begun, goes_on, done):
        assert (each["taskId"], each["contextId"]) == ("task-1", "ctx-1")
    assert (working["final"], done["final"]) == (False, True)
    assert [(each["append"], each["lastChunk"]) for each in (begun, goes_on)] == [(False, False), (True, True)]


@EVERY_WIRE
def test_the_number_of_an_item_stands_on_its_last_frame(wire: str) -> None:
    frames = frames_of(asking(wire))
    first, work, end = items_of(open_task(), [moved(TaskState.WORKING), moved(TaskState.COMPLETED, said("42"))])
    assert [event.id for event in parsed(frames(first))] == ["0"]
    assert [event.id for event in parsed(frames(work))] == ["1"]
    ended = parsed(frames(end))
    assert [b"artifact" in event.data for event in ended] == [True, False]
    assert [event.id for event in ended] == ["", "2"]


@pytest.mark.req("O-43", "D-14")
@EVERY_WIRE
@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
def test_a_question_ends_a_stream_with_final(wire: str, state: TaskState) -> None:
    (last,) = told(open_task(), frames_of(asking(wire)), moved(state, said("Which one?")))
    kind, shown = shapes(wire, [last])[0]
    assert (kind, shown["final"]) == ("status-update", True)
    assert "Which one?" in json.dumps(shown["status"]["message"])


@EVERY_WIRE
@pytest.mark.parametrize("direct", [True, False])
def test_an_answer_that_is_only_said_is_an_artifact_before_the_end(wire: str, direct: bool) -> None:
    data = told(
        open_task(), frames_of(asking(wire)), added(said("the answer"), direct=direct), moved(TaskState.COMPLETED)
    )
    talk = [] if direct else ["status-update"]
    assert kinds(wire, data) == [*talk, "artifact-update", "status-update"]
    assert "the answer" in json.dumps(data[-2])


@EVERY_WIRE
def test_what_an_agent_says_beside_its_work_is_words_of_its_status(wire: str) -> None:
    working = moved(TaskState.WORKING)
    talk, mine = added(said("half way", name="m-3")), added(said("hurry", Role.USER))
    data = told(open_task(), frames_of(asking(wire)), working, talk, mine)
    assert kinds(wire, data) == ["status-update", "status-update"]
    status = shapes(wire, data)[1][1]["status"]
    assert "half way" in json.dumps(status["message"])
    assert status["state"].lower().endswith("working")


@EVERY_WIRE
def test_a_task_that_has_ended_is_shown_with_its_end(wire: str) -> None:
    task = open_task(state="completed", last_seq=4, status_message={"id": "m", "role": "agent", "parts": []})
    raw = frames_of(asking(wire))(Snapshot(task=task))
    data = [json.loads(event.data) for event in parsed(raw)]
    assert kinds(wire, data) == ["task", "status-update"]
    assert shapes(wire, data)[1][1]["final"] is True
    assert [event.id for event in parsed(raw)] == ["", "4"]


@EVERY_WIRE
def test_a_failure_ends_a_stream_with_its_reason(wire: str) -> None:
    failed = moved(TaskState.FAILED, failure=AgentError("it broke").failure())
    (last,) = told(open_task(), frames_of(asking(wire)), failed)
    shown = shapes(wire, [last])[0][1]
    assert "it broke" in json.dumps(shown["status"]["message"])
    assert shown["final"] is True


@EVERY_WIRE
def test_progress_stands_beside_a_status(wire: str) -> None:
    (shown,) = told(open_task(), frames_of(asking(wire)), moved(TaskState.WORKING, progress=0.5))
    assert shapes(wire, [shown])[0][1]["metadata"] == {"dragoman": {"progress": 0.5}}


@EVERY_WIRE
def test_a_stream_that_cannot_go_on_says_so_in_its_own_words(wire: str) -> None:
    exchange = asking(wire)
    assert isinstance(exchange, StreamExchange)
    broken = exchange.stream("task-1", "ctx-1").broken
    assert broken is not None
    (event,) = SseParser().feed(broken(DragomanError("The hub failed.")))
    body = json.loads(event.data)
    assert event.name == ("error" if wire == REST else "")
    assert (body if wire == REST else body["error"])["code"] == -32603
    assert ("id" not in body) if wire == REST else (body["id"] == "req-1")


@EVERY_WIRE
def test_a_stream_keeps_nothing_of_the_request(wire: str) -> None:
    frames = frames_of(asking(wire, historyLength=2))
    frames(Snapshot(task=open_task()))
    assert not holds(frames, HttpRequest)
    assert not holds(frames, SendTask)
    assert not holds(frames, Task)


# -- going out


@EVERY_WIRE
def test_what_one_hub_streams_another_hears(wire: str) -> None:
    events: list[TaskEvent] = [
        moved(TaskState.WORKING, said("looking")),
        piece("High ", last=False, name="tides"),
        piece("water", append=True),
        moved(TaskState.COMPLETED),
    ]
    heard = _heard(wire, events)
    assert heard.state is TaskState.COMPLETED
    assert [part for part in output_of(heard) if isinstance(part, Text)] == [Text(text="High "), Text(text="water")]
    assert heard.artifacts[0].name == "tides"


@EVERY_WIRE
@given(parts=st.lists(PARTS, min_size=1, max_size=4))
def test_every_part_of_an_artifact_comes_through_a_stream(wire: str, parts: list[Part]) -> None:
    # Bytes that are base64 themselves can be read in two ways over HTTP, and are left to a look at the task.
    assume(wire != REST or not any(isinstance(part, Blob) and _is_base64(part.raw) for part in parts))
    chunk = ArtifactChunk(at=LATER, artifact=Artifact(id="a-1", parts=tuple(parts)))
    (artifact,) = _heard(wire, [chunk, moved(TaskState.COMPLETED, said("done"))]).artifacts[:1]
    assert artifact.parts == tuple(parts)


@EVERY_WIRE
@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED])
def test_every_end_comes_through_a_stream_with_its_words(wire: str, state: TaskState) -> None:
    heard = _heard(wire, [moved(TaskState.WORKING), moved(state, said("because"))])
    assert heard.state is state
    assert heard.status_message is not None
    assert heard.status_message.parts == said("because").parts


@EVERY_WIRE
@pytest.mark.parametrize(("code", "status"), [(-32601, 404), (-32004, 400), (-32004, 501)])
def test_an_agent_that_has_no_streams_is_told_apart_from_one_that_failed(wire: str, code: int, status: int) -> None:
    version = "slash" if wire == DOTTED else None
    error = {"code": code, "message": "no such thing"}
    body = {**error, "type": ""} if wire == REST else {"jsonrpc": "2.0", "id": "1", "error": error}
    reply = HttpReply(status=status if wire == REST else 200, body=json.dumps(body).encode())
    with pytest.raises(NotSupported):
        dialect_of(wire).hear(outgoing(wire, Verb.STREAM, open_task(), version), reply, LATER)


@EVERY_WIRE
def test_a_plain_answer_to_a_request_for_a_stream_is_taken(wire: str) -> None:
    task: Any = {"id": "T", "contextId": "C", "status": {"state": "completed"}, "artifacts": []}
    body = {"task": task} if wire == REST else {"jsonrpc": "2.0", "id": "1", "result": {**task, "kind": "task"}}
    reply = HttpReply(status=200, body=json.dumps(body).encode())
    assert dialect_of(wire).hear(outgoing(wire, Verb.STREAM, open_task()), reply, LATER).settled


def _is_base64(raw: bytes) -> bool:
    return is_encoded_twice(b64encode(raw).decode())


def _heard(wire: str, events: list[TaskEvent]) -> Task:
    """The task as a hub has it that hears another's stream."""
    task = open_task(id="task-here")
    listener = dialect_of(wire).listen(outgoing(wire, Verb.STREAM, task))
    frames = frames_of(asking(wire))
    settled = False
    for item in items_of(open_task(), events):
        for event in parsed(frames(item)):
            heard = listener.hear(event, LATER)
            settled = heard.settled
            found = legal(task.state, heard.events)
            task = fold(task, found) if found else task
            assert heard.remote is not None
            assert heard.remote.task_id == "task-1"
    assert settled
    return task


# -- push


def notice(wire: str, task: Task, event: TaskEvent, seq: int, **callback: Any) -> Notice:
    """Word of an event that is owed to an address."""
    slug = dialect_of(wire).slug
    return Notice(
        callback=Callback(id="c-1", dialect=slug, url="https://x.test/", tells=Tells.EVENTS, **callback),
        task=task,
        happened=Happened(seq=seq, event=event),
        url="https://x.test/",
        recipient="",
        hub_url=HUB,
        hub_id=HUB_ID,
        at=LATER,
    )


@pytest.mark.req("O-44", "D-25")
@pytest.mark.parametrize("wire", [V03, DOTTED])
def test_what_is_pushed_is_the_whole_task_with_what_its_address_wants_to_see(wire: str) -> None:
    done = moved(TaskState.COMPLETED)
    task = fold(open_task(), [piece("High water"), done])
    auth = {"schemes": ["Bearer", "Basic"], "credentials": "s3cret"}
    request = dialect_of(wire).notify(notice(wire, task, done, 2, token="tok-1", auth=auth))
    body = json.loads(request.body)
    assert (request.method, request.url) == ("POST", "https://x.test/")
    assert request.headers == {
        b"content-type": b"application/json",
        b"authorization": b"Bearer s3cret",
        b"x-a2a-notification-token": b"tok-1",
    }
    assert (body["kind"], body["id"], body["status"]["state"]) == ("task", "task-1", "completed")
    assert body["artifacts"][0]["parts"] == [{"kind": "text", "text": "High water"}]
    assert ("createdAt" in body) is (wire == DOTTED)


@pytest.mark.parametrize("wire", [V03, DOTTED])
@pytest.mark.parametrize("auth", [None, {"schemes": ["Bearer"]}, {"credentials": "c"}])
def test_who_gave_no_scheme_or_no_credentials_sees_none(wire: str, auth: Any) -> None:
    working = moved(TaskState.WORKING)
    task = fold(open_task(), [working])
    request = dialect_of(wire).notify(notice(wire, task, working, 1, auth=auth))
    assert set(request.headers) == {b"content-type"}


@pytest.mark.req("O-44")
@pytest.mark.parametrize("wire", [V03, DOTTED])
def test_late_word_of_a_status_tells_it_as_it_was_and_that_of_a_piece_is_in_the_next(wire: str) -> None:
    asked, chunk = moved(TaskState.INPUT_REQUIRED, said("Which one?")), piece("one")
    task = fold(open_task(), [asked, moved(TaskState.WORKING), chunk, moved(TaskState.COMPLETED)])
    notify = dialect_of(wire).notify
    then = json.loads(notify(notice(wire, task, asked, 1)).body)["status"]
    assert (then["state"], then["timestamp"]) == ("input-required", "2026-01-12T10:00:02.500Z")
    assert "Which one?" in json.dumps(then)
    assert notify(notice(wire, task, chunk, 3)) is None
    unfinished = fold(open_task(), [asked, moved(TaskState.WORKING), chunk])
    now = json.loads(notify(notice(wire, unfinished, chunk, 3)).body)
    assert now["status"]["state"] == "working"
    assert now["artifacts"][0]["parts"] == [{"kind": "text", "text": "one"}]
