"""The directory's streams without a wire: what a caller is told of its task and of changes, and what agents tell."""

import json
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from dragoman.dialects.dialect import ChangesExchange, Heard, StreamExchange, Verb
from dragoman.dialects.directory import DIALECT
from dragoman.dialects.directory.listen import DirectoryListener
from dragoman.dialects.directory.streams import last_change
from dragoman.dialects.sse import SseEvent, SseParser
from dragoman.model.changes import AgentChanged, Change, TaskChanged
from dragoman.model.content import Artifact, Data, Message, Part, Role, Text
from dragoman.model.errors import AgentError, AgentTimeout, BadAgentReply, NotSupported
from dragoman.model.events import ArtifactChunk, Happened, MessageAdded, Sent, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply
from dragoman.model.lifecycle import fold
from dragoman.model.operations import FollowTask, SendTask, Wait, WatchChanges
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem
from tests.dialects.directory_samples import (
    AT,
    CARD,
    QUESTION,
    TASK,
    agent_of,
    exchange_of,
    outgoing_of,
    refusal_of,
    rpc,
    task_of,
)

WORDS: Final = Message(id="m", role=Role.AGENT, parts=(Text(text="half way"),))


def told(raw: bytes) -> list[tuple[str, Any]]:
    """The number and the answer of each event."""
    return [(event.id, json.loads(event.data)) for event in SseParser().feed(raw)]


def streamed(*items: StreamItem, method: str = "a2a/stream", **params: Any) -> list[tuple[str, Any]]:
    exchange = exchange_of(rpc(method, params or TASK))
    assert isinstance(exchange, StreamExchange)
    frames = exchange.stream("task-1", "ctx-1").frames
    return told(b"".join(frames(item) for item in items))


def ended(state: TaskState, parts: tuple[Part, ...] = (), **more: Any) -> Ended:
    task = task_of(state, parts, last_seq=9, **more)
    return Ended(seq=9, event=StatusChanged(at=AT, state=state), task=task)


# -- what is asked


def test_a_stream_is_asked_for_like_a_task() -> None:
    plain, asked = exchange_of(rpc("a2a/task", TASK)).operation, exchange_of(rpc("a2a/stream", TASK)).operation
    assert isinstance(plain, SendTask)
    assert isinstance(asked, SendTask)
    assert (asked.wait, asked.timeout_s, asked.after) == (Wait.STREAM, 3600.0, None)
    # It is the same call: whoever sent it as a task may listen to it.
    assert (asked.alias, asked.idempotency_key, asked.skill) == (plain.alias, plain.idempotency_key, plain.skill)
    short = exchange_of(rpc("a2a/stream", {**TASK, "timeoutMs": 500}), last_event_id="7").operation
    assert isinstance(short, SendTask)
    assert (short.timeout_s, short.after) == (0.5, 7)


@pytest.mark.parametrize(
    ("params", "agents", "tasks"),
    [
        ({}, True, True),
        ({"topics": None}, True, True),
        ({"topics": ["agents"]}, True, False),
        ({"topics": ["tasks"]}, False, True),
        ({"topics": ["tasks", "agents"]}, True, True),
    ],
)
def test_the_topics_say_what_is_heard_of(params: dict[str, Any], agents: bool, tasks: bool) -> None:
    assert exchange_of(rpc("a2a/events", params)).operation == WatchChanges(agents=agents, tasks=tasks)


def test_one_task_can_be_watched() -> None:
    asked = exchange_of(rpc("a2a/events", {"taskId": "t", "topics": ["tasks"]}), last_event_id="3").operation
    assert asked == FollowTask(task_id="t", after=3, ended_ok=True, past_questions=True, alias=True)


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"topics": []}, "topics"),
        ({"topics": ["weather"]}, "topics[0]"),
        ({"topics": "agents"}, "topics"),
        ({"taskId": ""}, "taskId"),
        ({"taskId": 7}, "taskId"),
        ({"taskId": "t", "topics": ["agents", "tasks"]}, "topics"),
    ],
)
def test_other_topics_are_refused(params: dict[str, Any], path: str) -> None:
    refused = refusal_of(exchange_of(rpc("a2a/events", params)))
    assert refused["error"]["code"] == -32602
    assert refused["error"]["data"]["errors"][0]["path"] == path


@pytest.mark.parametrize(("said", "known"), [("1768212000000000", True), ("7", False), ("x" * 16, False), ("", False)])
def test_who_comes_back_names_the_time_of_the_last_change(said: str, known: bool) -> None:
    assert last_change({b"last-event-id": said.encode()}) == (AT if known else None)


# -- a2a/stream


@pytest.mark.req("R-25")
def test_a_task_is_told_step_by_step_and_answered_at_the_end() -> None:
    opening = task_of(TaskState.SUBMITTED, last_seq=1)
    steps: list[TaskEvent] = [
        StatusChanged(at=AT, state=TaskState.WORKING),
        Sent(at=AT, agent_id="a"),
        StatusChanged(at=AT, state=TaskState.WORKING, progress=0.5, message=WORDS),
        MessageAdded(at=AT, message=WORDS),
        MessageAdded(at=AT, message=Message(id="u", role=Role.USER, parts=(Text(text="mine"),))),
        ArtifactChunk(at=AT, artifact=Artifact(id="result", parts=(Text(text="Hel"),)), last=False),
        ArtifactChunk(at=AT, artifact=Artifact(id="result", parts=(Data(value={"n": 1}),)), append=True),
    ]
    items = [Happened(seq=index, event=step) for index, step in enumerate(steps, 2)]
    events = streamed(Snapshot(task=opening), *items, ended(TaskState.COMPLETED, (Data(value={"n": 1}),)))
    working = {"taskId": "task-123", "status": "working"}
    last = {"taskId": "task-123", "status": "completed", "output": {"n": 1}}
    assert [(number, answer["result"]) for number, answer in events] == [
        ("1", working),
        ("4", {**working, "progress": 0.5, "message": "half way"}),
        ("5", {**working, "message": "half way"}),
        ("7", {**working, "output": {"text": "Hel"}}),
        ("8", {**working, "output": {"n": 1}}),
        ("9", {**last, "result": last}),
    ]
    assert all((answer["jsonrpc"], answer["id"]) == ("2.0", "r-1") for _, answer in events)


@pytest.mark.req("R-25")
@pytest.mark.parametrize(
    ("state", "more", "code", "reason"),
    [
        (TaskState.FAILED, {"failure": AgentError("it broke", reason="own").failure()}, -32001, "own"),
        (TaskState.FAILED, {"failure": AgentTimeout("late").failure()}, -32002, "timeout"),
        (TaskState.REJECTED, {}, -32001, "rejected"),
        (TaskState.INPUT_REQUIRED, {"status_message": QUESTION}, -32001, "input_required"),
    ],
)
def test_a_stream_ends_as_the_task_would_be_answered(
    state: TaskState, more: dict[str, Any], code: int, reason: str
) -> None:
    ((number, answer),) = streamed(ended(state, **more))
    assert number == "9"
    assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (code, reason)
    plain = exchange_of(rpc("a2a/task", TASK)).reply(task_of(state, last_seq=9, **more))
    assert answer == json.loads(plain.body)


def test_a_task_that_is_over_is_answered_at_once_and_one_that_is_not_with_all_it_has() -> None:
    done = task_of(TaskState.COMPLETED, (Data(value={"n": 1}),), last_seq=4)
    ((number, answer),) = streamed(Snapshot(task=done))
    assert (number, answer["result"]["status"]) == ("4", "completed")
    half = task_of(TaskState.WORKING, (Text(text="Hel"), Text(text="lo")), last_seq=3, progress=0.5)
    ((_, answer),) = streamed(Snapshot(task=half))
    assert answer["result"] == {"taskId": "task-123", "status": "working", "progress": 0.5, "output": {"text": "Hello"}}


def test_a_stream_that_was_asked_for_without_an_id_has_none() -> None:
    body = rpc("a2a/stream", TASK)
    del body["id"]
    exchange = exchange_of(body)
    ((_, answer),) = told(exchange.stream("task-1", "ctx-1").frames(Snapshot(task=task_of(TaskState.WORKING))))
    assert answer["id"] is None


# -- a2a/events


@pytest.mark.req("R-26")
def test_one_task_is_told_until_its_end() -> None:
    progress = Happened(seq=3, event=StatusChanged(at=AT, state=TaskState.WORKING, message=WORDS))
    silent = Happened(seq=4, event=Sent(at=AT, agent_id="a"))
    done = ended(TaskState.COMPLETED, (Data(value={"n": 1}),))
    events = streamed(
        Snapshot(task=task_of(TaskState.WORKING, last_seq=2)),
        progress,
        silent,
        done,
        method="a2a/events",
        taskId="task-123",
    )
    assert [number for number, _ in events] == ["2", "3", "9"]
    about = {"agentId": "research-agent", "action": "search"}
    assert [answer["result"] for _, answer in events] == [
        {"event": "task.updated", "task": {"taskId": "task-123", "status": "working", **about}},
        {"event": "task.updated", "task": {"taskId": "task-123", "status": "working", "message": "half way"}},
        {"event": "task.updated", "task": {"taskId": "task-123", "status": "completed", "output": {"n": 1}, **about}},
    ]


def changed(change: Change) -> tuple[str, Any]:
    exchange = exchange_of(rpc("a2a/events", {}))
    assert isinstance(exchange, ChangesExchange)
    ((number, answer),) = told(exchange.changes()(change))
    assert (answer["id"], "error" in answer) == ("r-1", False)
    return number, answer["result"]


@pytest.mark.req("R-26")
def test_agents_come_and_go() -> None:
    agent = agent_of(CARD)
    number, shown = changed(AgentChanged(at=AT + timedelta(microseconds=7), agent_id=agent.id, agent=agent))
    assert number == "1768212000000007"
    assert shown == {
        "event": "agent.registered",
        "agent": {**CARD, "registeredAt": "2026-01-12T10:00:00.000Z"},
    }
    _, shown = changed(AgentChanged(at=AT, agent_id="research-agent", agent=None))
    assert shown == {"event": "agent.removed", "agent": {"agentId": "research-agent"}}


@pytest.mark.req("R-26", "R-21")
@pytest.mark.parametrize(
    ("state", "more", "shown"),
    [
        (TaskState.SUBMITTED, {}, {"status": "working"}),
        (TaskState.WORKING, {"progress": 0.5}, {"status": "working", "progress": 0.5}),
        (TaskState.INPUT_REQUIRED, {"status_message": QUESTION}, {"status": "working", "message": "Which one?"}),
        (TaskState.COMPLETED, {"parts": (Text(text="x"),)}, {"status": "completed", "output": {"text": "x"}}),
        (TaskState.CANCELED, {}, {"status": "cancelled"}),
        (TaskState.REJECTED, {"status_message": QUESTION}, {"status": "failed", "message": "Which one?"}),
        (TaskState.FAILED, {"failure": AgentError("no").failure()}, {"status": "failed", "message": "no"}),
        (TaskState.FAILED, {"failure": AgentTimeout("late").failure()}, {"status": "timeout", "message": "late"}),
    ],
)
def test_a_task_is_shown_as_it_stands(state: TaskState, more: dict[str, Any], shown: dict[str, Any]) -> None:
    _, told_of = changed(TaskChanged(at=AT, task=task_of(state, **more)))
    about = {"taskId": "task-123", "agentId": "research-agent", "action": "search"}
    assert told_of == {"event": "task.updated", "task": {**about, **shown}}


def test_the_frames_of_a_stream_hold_no_more_than_a_few_words() -> None:
    for held in (
        exchange_of(rpc("a2a/stream", TASK)).stream("task-1", "ctx-1").frames,
        exchange_of(rpc("a2a/events", {})).changes(),
    ):
        assert isinstance(held, partial)
        assert all(isinstance(each, str) for each in held.args)


# -- from an agent


def heard(*results: object) -> list[Heard]:
    listener = DirectoryListener(outgoing_of(Verb.STREAM))
    return [listener.hear(SseEvent("", _frame(result)), AT) for result in results]


def _frame(result: object) -> bytes:
    return result if isinstance(result, bytes) else json.dumps({"jsonrpc": "2.0", "id": "x", "result": result}).encode()


def test_an_agent_that_says_so_is_asked_for_a_stream() -> None:
    assert Feature.STREAM in DIALECT.read_card({**CARD, "methods": ["a2a/stream"]}).endpoints[0].features
    assert Feature.STREAM not in DIALECT.read_card(CARD).endpoints[0].features
    request, plain = (DIALECT.ask(outgoing_of(verb, (Data(value={"q": 1}),))) for verb in (Verb.STREAM, Verb.SEND))
    assert request is not None
    assert plain is not None
    asked, sent = json.loads(request.body), json.loads(plain.body)
    assert (asked["method"], asked["params"]) == ("a2a/stream", sent["params"])
    assert request.headers[b"accept"].startswith(b"text/event-stream")
    assert DIALECT.ask(outgoing_of(Verb.SUBSCRIBE)) is None


@pytest.mark.req("R-25")
def test_what_an_agent_tells_is_heard_as_it_comes() -> None:
    task = task_of(TaskState.WORKING)
    first, again, one, two, last = heard(
        {"taskId": "t", "status": "working", "progress": 0.5, "message": "half way"},
        {"taskId": "t", "status": "working", "progress": 0.5, "message": "half way"},
        {"taskId": "t", "status": "working", "output": {"text": "Hel"}},
        {"taskId": "t", "status": "working", "output": {"text": "lo"}},
        {"taskId": "t", "status": "completed", "output": {"text": "Hello"}},
    )
    (progress,) = first.events
    assert isinstance(progress, StatusChanged)
    assert (progress.state, progress.progress) == (TaskState.WORKING, 0.5)
    assert again.events == ()
    task = fold(task, [*first.events, *one.events, *two.events])
    assert task.artifacts[0].parts == (Text(text="Hel"), Text(text="lo"))
    assert [each.settled for each in (first, again, one, two, last)] == [False, False, False, False, True]
    # The pieces were all of it: only the end is news.
    (end,) = last.events
    assert isinstance(end, StatusChanged)
    done = fold(task, last.events)
    assert (done.state, done.result) == (TaskState.COMPLETED, {"text": "Hello"})


@pytest.mark.parametrize(
    ("frame", "state"),
    [
        (b'{"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"no"}}', TaskState.FAILED),
        (b'{"jsonrpc":"2.0","id":"x","result":{"error":"no"}}', TaskState.FAILED),
        (b'{"status":"completed","output":{}}', TaskState.COMPLETED),
        (b'{"jsonrpc":"2.0","id":"x","result":{"status":"cancelled"}}', TaskState.CANCELED),
        (b'{"jsonrpc":"2.0","id":"x","result":"text"}', TaskState.COMPLETED),
    ],
)
def test_the_last_is_heard_like_any_answer(frame: bytes, state: TaskState) -> None:
    (last,) = heard(frame)
    end = last.events[-1]
    assert isinstance(end, StatusChanged)
    assert (last.settled, end.state) == (True, state)


@pytest.mark.parametrize("frame", [b"{", b"[]", b"\xff", b"{}", b"7"])
def test_rubbish_in_a_stream_is_the_agents_fault(frame: bytes) -> None:
    with pytest.raises(BadAgentReply):
        heard(frame)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b'{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}'),
        (200, b'{"jsonrpc":"2.0","id":"x","error":{"code":-32004,"message":"no"}}'),
        (404, b'{"error":"Unknown endpoint"}'),
        (405, b""),
        (501, b"<html>"),
    ],
)
def test_an_agent_without_streams_says_so(status: int, body: bytes) -> None:
    with pytest.raises(NotSupported):
        DIALECT.hear(outgoing_of(Verb.STREAM), HttpReply(status=status, body=body), AT)


def test_a_plain_answer_in_place_of_a_stream_is_taken() -> None:
    body = b'{"jsonrpc":"2.0","id":"x","result":{"taskId":"t","status":"completed","output":{"n":1}}}'
    assert DIALECT.hear(outgoing_of(Verb.STREAM), HttpReply(status=200, body=body), AT).settled
