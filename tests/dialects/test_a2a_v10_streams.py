"""Streams of A2A 1.0 in both framings: what is asked for, what each frame holds, what agents are asked and answer."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects.a2a_v10 import DIALECT
from dragoman.dialects.a2a_v10.outbound import BY_GET
from dragoman.dialects.dialect import Heard, Verb
from dragoman.dialects.listening import TaskListener
from dragoman.model.agent import Binding
from dragoman.model.content import Artifact, Data, Role
from dragoman.model.errors import (
    AgentError,
    AgentUnavailable,
    BadAgentReply,
    BadFrame,
    DragomanError,
    Failure,
    NotSupported,
    TaskFinished,
)
from dragoman.model.events import ArtifactChunk, Happened, Sent, StatusChanged, Usage, Watched
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import FollowTask, SendTask, Unreadable, Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot
from tests.dialects.a2a_v10_samples import message, outgoing, raw_rpc, read, refusal, rest, rpc, sent
from tests.dialects.goldens import LATER, task_of
from tests.dialects.stream_world import (
    CONTEXT,
    TASK,
    WHEN,
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

SEND = {"message": message()}
BY_RPC = rpc("SendStreamingMessage", SEND)
BY_HTTP = rest("POST", "/message:stream", "stream", SEND)
ABOUT = {"taskId": TASK, "contextId": CONTEXT}
NAMED = task_of({"id": TASK, "remote": {"task_id": "remote:1", "context_id": "remote-ctx"}})


def _shown(*events: Any, task: Any = None) -> list[Any]:
    """The objects of a stream in which these things happened, after the first."""
    return told(task or open_task(), frames_of(read(BY_HTTP)), *events)


# -- what is asked


def test_a_stream_is_a_send_that_shows_every_event() -> None:
    by_rpc, by_http = sent(BY_RPC), sent(BY_HTTP)
    assert by_rpc == by_http
    assert (by_rpc.wait, by_rpc.timeout_s, by_rpc.agent) == (Wait.STREAM, 3600.0, "agt_target")
    hinted = {**SEND, "metadata": {"dragoman": {"timeout_ms": 5000}}}
    assert sent(rpc("SendStreamingMessage", hinted)).timeout_s == 5.0
    at_once = {**SEND, "configuration": {"returnImmediately": True}}
    assert sent(rpc("SendStreamingMessage", at_once)).wait is Wait.STREAM


def test_a_task_is_followed_by_its_id_in_either_verb() -> None:
    asked = FollowTask(task_id="a:b", agent="agt_target")
    assert read(rpc("SubscribeToTask", {"id": "a:b"})).operation == asked
    for verb in ("POST", "GET"):
        assert read(rest(verb, "/tasks/a%3Ab:subscribe", "subscribe", task="a:b")).operation == asked


@pytest.mark.parametrize(("given", "after"), [("7", 7), ("0", 0), ("", None), ("x", None), ("-1", None)])
def test_a_follower_says_what_it_saw_last(given: str, after: int | None) -> None:
    for request in (
        rpc("SubscribeToTask", {"id": TASK}, last_event_id=given),
        rest("GET", f"/tasks/{TASK}:subscribe", "subscribe", task=TASK, last_event_id=given),
    ):
        operation = read(request).operation
        assert isinstance(operation, FollowTask)
        assert operation.after == after


def test_a_stream_that_makes_no_sense_is_refused_and_begins_none() -> None:
    reply, error = refusal(rpc("SendStreamingMessage", {"message": message(parts=[])}))
    assert (reply.status, error["code"]) == (200, -32602)
    assert reply.headers[b"content-type"] == b"application/json"
    reply, _ = refusal(rest("POST", "/message:stream", "stream", {}))
    assert reply.status == 400
    assert refusal(rpc("SubscribeToTask", {}))[1]["code"] == -32602


def test_a_notification_has_no_stream() -> None:
    frame = {"jsonrpc": "2.0", "method": "SendStreamingMessage", "params": SEND}
    operation = read(raw_rpc(json.dumps(frame).encode())).operation
    assert isinstance(operation, SendTask)
    assert operation.wait is Wait.NONE
    frame = {"jsonrpc": "2.0", "method": "SubscribeToTask", "params": {"id": TASK}}
    exchange = read(raw_rpc(json.dumps(frame).encode()))
    assert isinstance(exchange.operation, Unreadable)
    assert isinstance(exchange.operation.error, BadFrame)
    assert exchange.refuse(exchange.operation.error).status == 204


def test_an_ended_task_has_no_stream_in_the_specifications_words() -> None:
    for error in (NotSupported("over"), TaskFinished("over")):
        body = json.loads(read(rpc("SubscribeToTask", {"id": TASK})).refuse(error).body)
        assert (body["error"]["code"], body["error"]["data"][0]["reason"]) == (-32004, "UNSUPPORTED_OPERATION")
    reply = read(rest("GET", f"/tasks/{TASK}:subscribe", "subscribe", task=TASK)).refuse(NotSupported("over"))
    assert reply.status == 400


# -- frames


@pytest.mark.req("O-17")
def test_the_framing_stands_around_each_object() -> None:
    items = items_of(open_task(), [moved(TaskState.WORKING), piece("hi"), moved(TaskState.COMPLETED)])
    bare = framed(frames_of(read(BY_HTTP)), *items)
    assert framed(frames_of(read(BY_RPC)), *items) == [{"jsonrpc": "2.0", "id": "r1", "result": each} for each in bare]
    assert [list(each) for each in bare] == [["task"], ["statusUpdate"], ["artifactUpdate"], ["statusUpdate"]]


@pytest.mark.req("O-16")
def test_a_stream_is_the_task_then_its_updates_in_order() -> None:
    status = {"state": "TASK_STATE_WORKING", "timestamp": WHEN}
    assert _shown(
        moved(TaskState.WORKING),
        piece("one ", last=False),
        piece("two", append=True),
        moved(TaskState.COMPLETED),
    ) == [
        {"statusUpdate": {**ABOUT, "status": status}},
        {"artifactUpdate": {**ABOUT, "artifact": {"artifactId": "a-1", "parts": [{"text": "one "}]}}},
        {
            "artifactUpdate": {
                **ABOUT,
                "artifact": {"artifactId": "a-1", "parts": [{"text": "two"}]},
                "append": True,
                "lastChunk": True,
            }
        },
        {"statusUpdate": {**ABOUT, "status": {"state": "TASK_STATE_COMPLETED", "timestamp": WHEN}}},
    ]


def test_the_first_frame_is_the_whole_task_with_as_much_history_as_was_asked_for() -> None:
    (first,) = framed(frames_of(read(BY_RPC)), Snapshot(task=open_task()))
    assert first["result"]["task"]["id"] == TASK
    assert len(first["result"]["task"]["history"]) == 1
    short = rpc("SendStreamingMessage", {**SEND, "configuration": {"historyLength": 0}})
    (first,) = framed(frames_of(read(short)), Snapshot(task=open_task()))
    assert "history" not in first["result"]["task"]


@pytest.mark.req("O-20")
def test_every_item_has_its_number_once_on_its_last_frame() -> None:
    frames = frames_of(read(BY_RPC))
    direct = items_of(open_task(), [added(said("only words"), direct=True), moved(TaskState.COMPLETED)])
    first, words, ended = (parsed(frames(item)) for item in direct)
    assert [event.id for event in first] == ["0"]
    assert words == []
    assert [event.id for event in ended] == ["", "2"]


def test_an_answer_that_stands_in_words_alone_is_shown_as_an_artifact_before_the_end() -> None:
    for events in (
        (moved(TaskState.COMPLETED, said("the answer")),),
        (added(said("the answer"), direct=True), moved(TaskState.COMPLETED)),
    ):
        made, ended = _shown(*events)
        assert made["artifactUpdate"] == {
            **ABOUT,
            "artifact": {"artifactId": "result", "name": "result", "parts": [{"text": "the answer"}]},
            "lastChunk": True,
        }
        assert ended["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_question_and_a_failure_end_the_stream_with_their_words() -> None:
    (asked,) = _shown(moved(TaskState.INPUT_REQUIRED, said("Which?")))
    status = asked["statusUpdate"]["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert status["message"]["parts"] == [{"text": "Which?"}]
    assert (status["message"]["taskId"], status["message"]["contextId"]) == (TASK, CONTEXT)
    failure = Failure(code="AGENT_ERROR", message="it broke")
    (failed,) = _shown(moved(TaskState.FAILED, failure=failure))
    assert failed["statusUpdate"]["status"]["message"]["parts"] == [{"text": "it broke"}]
    assert failed["statusUpdate"]["metadata"]["dragoman"]["failure"]["code"] == "AGENT_ERROR"


def test_talk_is_a_status_with_the_words_and_what_nobody_sees_is_no_frame() -> None:
    sent_on = Sent(at=LATER, agent_id="agt_target")
    watched = Watched(at=LATER, callbacks=())
    talk = _shown(sent_on, watched, moved(TaskState.WORKING), added(said("wait")), added(said("me", Role.USER)))
    assert [each["statusUpdate"]["status"]["state"] for each in talk] == ["TASK_STATE_WORKING"] * 2
    assert talk[1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "wait"}]


def test_progress_usage_and_metadata_of_an_event_stand_beside_it() -> None:
    (first, made, ended) = _shown(
        moved(TaskState.WORKING, progress=0.5, metadata={"own": 1}),
        ArtifactChunk(at=LATER, artifact=Artifact(id="d", parts=(Data(value={"n": 1}),)), metadata={"own": 2}),
        moved(TaskState.COMPLETED, usage=Usage(tokens=7)),
    )
    assert first["statusUpdate"]["metadata"] == {"own": 1, "dragoman": {"progress": 0.5}}
    assert made["artifactUpdate"]["metadata"] == {"own": 2}
    assert ended["statusUpdate"]["metadata"]["dragoman"] == {"progress": 0.5, "usage": {"tokens": 7}}


def test_a_stream_that_is_resumed_names_its_task_from_the_first_frame() -> None:
    frames = frames_of(read(rpc("SubscribeToTask", {"id": TASK}, last_event_id="3")))
    (first,) = framed(frames, Happened(seq=4, event=moved(TaskState.WORKING)))
    assert first["result"]["statusUpdate"]["taskId"] == TASK
    task = open_task(state="completed")
    (last,) = framed(frames, Ended(seq=5, event=moved(TaskState.COMPLETED), task=task))
    assert last["result"]["statusUpdate"]["contextId"] == CONTEXT


def test_what_a_stream_holds_is_not_the_request() -> None:
    for request in (BY_RPC, BY_HTTP):
        exchange = read(request)
        assert not holds(frames_of(exchange), HttpRequest)
        assert not holds(frames_of(exchange), SendTask)


def test_the_hub_hears_its_own_stream_as_it_was() -> None:
    events = [
        moved(TaskState.WORKING, said("begun"), progress=0.25),
        piece("one ", last=False),
        piece("two", append=True),
        moved(TaskState.COMPLETED, usage=Usage(tokens=3)),
    ]
    frames = frames_of(read(BY_RPC))
    raw = b"".join(frames(item) for item in items_of(open_task(), list(events)))
    listener = TaskListener(outgoing(Verb.STREAM, task_of({})))
    heard = [listener.hear(event, LATER) for event in parsed(raw)]
    told_again = [event for each in heard for event in each.events]
    assert [type(event) for event in told_again] == [type(event) for event in events]
    assert told_again[1:3] == events[1:3]
    begun, ended = told_again[0], told_again[3]
    assert isinstance(begun, StatusChanged)
    assert isinstance(ended, StatusChanged)
    assert (begun.progress, ended.usage) == (0.25, Usage(tokens=3))
    assert heard[-1].settled


# -- towards agents


def _request(verb: Verb, **more: Any) -> HttpRequest:
    request = DIALECT.ask(outgoing(verb, more.pop("task", NAMED), **more))
    assert request is not None
    return request


def test_a_stream_is_asked_for_with_what_a_send_says() -> None:
    send, stream = _request(Verb.SEND), _request(Verb.STREAM)
    assert json.loads(stream.body) == {**json.loads(send.body), "method": "SendStreamingMessage"}
    assert stream.headers[b"idempotency-key"] == send.headers[b"idempotency-key"]
    by_path = _request(Verb.STREAM, binding=Binding.HTTP)
    assert (by_path.method, by_path.url) == ("POST", "http://agent.test/a2a/message:stream")
    assert json.loads(by_path.body) == json.loads(stream.body)["params"]


def test_a_call_that_nobody_waits_for_is_streamed_without_asking_for_an_answer_at_once() -> None:
    nobody = msgspec.structs.replace(NAMED.asked, wait=Wait.NONE)
    assert "configuration" in json.loads(_request(Verb.SEND, asked=nobody).body)["params"]
    assert "configuration" not in json.loads(_request(Verb.STREAM, asked=nobody).body)["params"]


def test_a_task_is_subscribed_to_by_the_agents_own_name_for_it() -> None:
    frame = json.loads(_request(Verb.SUBSCRIBE).body)
    assert (frame["method"], frame["params"]) == ("SubscribeToTask", {"id": "remote:1"})
    by_post = _request(Verb.SUBSCRIBE, binding=Binding.HTTP)
    by_get = _request(Verb.SUBSCRIBE, binding=Binding.HTTP, version=BY_GET)
    assert by_post.url == by_get.url == "http://agent.test/a2a/tasks/remote%3A1:subscribe"
    assert (by_post.method, by_post.body) == ("POST", b"{}")
    assert (by_get.method, by_get.body, b"content-type" in by_get.headers) == ("GET", b"", False)
    assert DIALECT.ask(outgoing(Verb.SUBSCRIBE, task_of({}))) is None


def _heard(verb: Verb, body: Any, status: int = 200, **more: Any) -> Heard:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return DIALECT.hear(outgoing(verb, NAMED, **more), HttpReply(status=status, body=raw), LATER)


@pytest.mark.parametrize("verb", [Verb.STREAM, Verb.SUBSCRIBE])
@pytest.mark.parametrize(
    ("body", "status", "binding"),
    [
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}, 200, Binding.JSONRPC),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "no"}}, 200, Binding.JSONRPC),
        (
            {"error": {"code": 400, "message": "no", "details": [{"reason": "UNSUPPORTED_OPERATION"}]}},
            400,
            Binding.HTTP,
        ),
        ({"error": {"code": 501, "message": "no"}}, 501, Binding.HTTP),
        ({"detail": "Not Found"}, 404, Binding.HTTP),
        (b"<html>", 404, Binding.HTTP),
        (b"", 501, Binding.HTTP),
    ],
)
def test_an_agent_without_streams_says_so_in_many_ways(verb: Verb, body: Any, status: int, binding: Binding) -> None:
    with pytest.raises(NotSupported):
        _heard(verb, body, status, binding=binding)


def test_a_subscriber_that_may_not_post_asks_again_by_get() -> None:
    with pytest.raises(BadAgentReply) as caught:
        _heard(Verb.SUBSCRIBE, b"", 405, binding=Binding.HTTP)
    assert caught.value.details["try_version"] == BY_GET
    with pytest.raises(NotSupported):
        _heard(Verb.SUBSCRIBE, b"", 405, binding=Binding.HTTP, version=BY_GET)
    with pytest.raises(NotSupported):
        _heard(Verb.STREAM, b"", 405, binding=Binding.HTTP)


@pytest.mark.parametrize(
    ("body", "status", "error_class"),
    [
        ({"error": {"code": -32001, "message": "no task"}}, 200, AgentError),
        ({"error": {"code": 404, "message": "no task", "details": [{"reason": "TASK_NOT_FOUND"}]}}, 404, AgentError),
        (b"busy", 503, AgentUnavailable),
        (b"rubbish", 200, BadAgentReply),
        (b"rubbish", 500, BadAgentReply),
    ],
)
def test_what_is_refused_to_a_subscriber_is_raised_and_ends_no_task(
    body: Any, status: int, error_class: type[DragomanError]
) -> None:
    with pytest.raises(error_class):
        _heard(Verb.SUBSCRIBE, body, status, binding=Binding.HTTP)
    if error_class is not BadAgentReply:
        (ended,) = _heard(Verb.STREAM, body, status, binding=Binding.HTTP).events
        assert isinstance(ended, StatusChanged)
        assert ended.state is TaskState.FAILED


def test_a_plain_answer_where_a_stream_was_asked_for_counts() -> None:
    artifacts = [{"artifactId": "A", "parts": [{"text": "all"}]}]
    done = {"result": {"task": {"id": "T", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": artifacts}}}
    assert _heard(Verb.STREAM, done).settled
    subscribed = _heard(Verb.SUBSCRIBE, done)
    assert subscribed.settled
    known = msgspec.structs.replace(NAMED, artifacts=(Artifact(id="A", parts=piece("all").artifact.parts),))
    reply = HttpReply(status=200, body=json.dumps(done).encode())
    again = DIALECT.hear(outgoing(Verb.SUBSCRIBE, known), reply, LATER)
    assert [type(event) for event in again.events] == [StatusChanged]
    working = {"result": {"task": {"id": "T", "status": {"state": "TASK_STATE_WORKING"}}}}
    assert not _heard(Verb.STREAM, working).settled
    with pytest.raises(NotSupported):
        _heard(Verb.SUBSCRIBE, working)
