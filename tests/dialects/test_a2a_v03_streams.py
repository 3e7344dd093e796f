"""Streams and push of A2A 0.3 in its own words, over JSON-RPC and over HTTP+JSON."""

import json
from typing import Any, Final

import msgspec
import pytest

from dragoman.dialects.a2a_v03 import DIALECT
from dragoman.dialects.a2a_v03.legacy import LEGACY
from dragoman.dialects.a2a_v03.rest_in import RestExchange, read_rest
from dragoman.dialects.dialect import Exchange, Heard, Outgoing, Verb
from dragoman.dialects.sse import SseEvent
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.answers import CallbackList, Done
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Blob
from dragoman.model.errors import CallbackNotFound, NotSupported, TaskNotFound
from dragoman.model.events import ArtifactChunk, Happened
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import (
    DeleteCallback,
    FollowTask,
    GetCallback,
    GetTask,
    ListCallbacks,
    SendTask,
    SetCallback,
    Wait,
)
from dragoman.model.states import TaskState
from tests.dialects.goldens import AT, HUB, LATER
from tests.dialects.kind_world import outgoing, posted, read, refusal, rpc_body, sent
from tests.dialects.stream_world import WHEN, framed, frames_of, items_of, moved, open_task, piece, said, told

MESSAGE: Final[dict[str, Any]] = {
    "kind": "message",
    "messageId": "m-1",
    "role": "user",
    "parts": [{"kind": "text", "text": "hi"}],
}
PUSH: Final = "tasks/pushNotificationConfig"
CONFIG: Final[dict[str, Any]] = {
    "id": "c-1",
    "url": "https://x.test/hook",
    "token": "tok",
    "authentication": {"schemes": ["Bearer"], "credentials": "s3cret"},
}
CALLBACK: Final = Callback(
    id="c-1",
    dialect="a2a-0.3",
    url="https://x.test/hook",
    token="tok",
    auth={"schemes": ["Bearer"], "credentials": "s3cret"},
    tells=Tells.EVENTS,
)
SHOWN: Final = {"id": "c-1", "url": "https://x.test/hook", "authentication": {"schemes": ["Bearer"]}}


def _read(method: str, params: Any, **headers: str) -> Exchange:
    return read(DIALECT, posted(rpc_body(method, params), **headers))


# -- streams over JSON-RPC


@pytest.mark.req("O-42")
def test_a_task_is_followed_from_now_or_from_where_one_was() -> None:
    assert _read("tasks/resubscribe", {"id": "task-1"}).operation == FollowTask(task_id="task-1", agent="agt_x")
    later = _read("tasks/resubscribe", {"id": "task-1"}, last_event_id="7").operation
    assert later == FollowTask(task_id="task-1", agent="agt_x", after=7)
    assert refusal(DIALECT, posted(rpc_body("tasks/resubscribe", {})))[1]["error"]["code"] == -32602


def test_who_asks_for_a_stream_and_wants_no_answer_has_the_call_made_all_the_same() -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "message/stream", "params": {"message": MESSAGE}}).encode()
    operation = read(DIALECT, posted(body)).operation
    assert isinstance(operation, SendTask)
    assert operation.wait is Wait.END
    body = json.dumps({"jsonrpc": "2.0", "method": "tasks/resubscribe", "params": {"id": "task-1"}}).encode()
    assert read(DIALECT, posted(body)).operation == GetTask(task_id="task-1", agent="agt_x")


@pytest.mark.req("O-43", "O-17")
def test_the_frames_are_answers_to_the_request_with_the_objects_of_0_3() -> None:
    words = said("looking")
    events = [moved(TaskState.WORKING, words), piece("High water"), moved(TaskState.COMPLETED)]
    data = framed(frames_of(_read("message/stream", {"message": MESSAGE})), *items_of(open_task(), list(events)))
    ids = {"taskId": "task-1", "contextId": "ctx-1"}
    said_there = {
        "kind": "message",
        "messageId": "m-2",
        "role": "agent",
        "parts": [{"kind": "text", "text": "looking"}],
    }
    artifact = {"artifactId": "a-1", "parts": [{"kind": "text", "text": "High water"}]}
    assert data[0]["result"]["kind"] == "task"
    assert data[0]["result"]["status"] == {"state": "submitted", "timestamp": "2026-01-12T10:00:00.000Z"}
    working = {"state": "working", "timestamp": WHEN, "message": {**said_there, **ids}}
    done = {"state": "completed", "timestamp": WHEN}
    assert [each["result"] for each in data[1:]] == [
        {"kind": "status-update", **ids, "status": working, "final": False},
        {"kind": "artifact-update", **ids, "artifact": artifact, "append": False, "lastChunk": True},
        {"kind": "status-update", **ids, "status": done, "final": True},
    ]
    assert all((each["jsonrpc"], each["id"]) == ("2.0", "req-1") for each in data)


def test_who_comes_back_is_told_of_the_task_it_named() -> None:
    frames = frames_of(_read("tasks/resubscribe", {"id": "task-1"}, last_event_id="3"))
    (shown,) = framed(frames, Happened(seq=4, event=moved(TaskState.WORKING)))
    assert shown["result"]["taskId"] == "task-1"


@pytest.mark.req("O-43")
def test_a_client_between_the_versions_gets_every_frame_in_both_shapes() -> None:
    hybrid = {"message": {"messageId": "m-1", "role": "user", "parts": [{"text": "hi"}]}}
    events = [moved(TaskState.WORKING), piece("High water"), moved(TaskState.COMPLETED)]
    data = framed(frames_of(_read("message/stream", hybrid)), *items_of(open_task(), list(events)))
    for each, name in zip(data, ("task", "statusUpdate", "artifactUpdate", "statusUpdate"), strict=True):
        inner = each["result"].pop(name)
        assert each["result"] == inner


def test_the_first_task_of_a_stream_has_the_turns_that_were_asked_for() -> None:
    turns: list[dict[str, Any]] = [{"id": f"m-{n}", "role": "agent", "parts": []} for n in range(5)]
    params = {"message": MESSAGE, "configuration": {"historyLength": 2}}
    (first,) = framed(frames_of(_read("message/stream", params)), *items_of(open_task(messages=turns), []))
    assert [turn["messageId"] for turn in first["result"]["history"]] == ["m-3", "m-4"]


# -- streams over HTTP


def _request(route: str, body: Any = None, *, method: str = "POST", **headers: str) -> HttpRequest:
    given = {"content_type": "application/json", **headers}
    return HttpRequest(
        method=method,
        url="/agents/agt_x/v1/x",
        headers={name.replace("_", "-").encode(): value.encode() for name, value in given.items()},
        body=b"" if body is None else json.dumps(body).encode(),
        id="1",
        at=AT,
        route=route,
        params={"task": "task-1", "agent": "agt_x", "config": "c-1"},
        hub=HUB,
    )


def _rest(route: str, body: Any = None, *, method: str = "POST", **headers: str) -> RestExchange:
    return read_rest(_request(route, body, method=method, **headers))


@pytest.mark.req("O-45")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_task_is_followed_over_http_by_either_method(method: str) -> None:
    operation = _rest("rest_subscribe", method=method, last_event_id="7").operation
    assert operation == FollowTask(task_id="task-1", after=7, agent="agt_x")


@pytest.mark.req("O-45")
def test_over_http_the_frames_are_the_protobufs_json_and_have_no_other_member() -> None:
    body = {"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hi"}]}}
    events = [
        moved(TaskState.WORKING, said("looking")),
        piece("High water", name="tides"),
        moved(TaskState.CANCELED),
    ]
    data = framed(frames_of(_rest("rest_stream", body)), *items_of(open_task(), list(events)))
    task, working, artifact, ended = data
    assert set(task["task"]) == {"id", "contextId", "status", "history"}
    assert task["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert set(working["statusUpdate"]) == {"taskId", "contextId", "status", "final"}
    message = working["statusUpdate"]["status"]["message"]
    assert set(message) == {"messageId", "contextId", "taskId", "role", "content"}
    assert message["content"] == [{"text": "looking"}]
    assert artifact == {
        "artifactUpdate": {
            "taskId": "task-1",
            "contextId": "ctx-1",
            "artifact": {"artifactId": "a-1", "name": "tides", "parts": [{"text": "High water"}]},
            "append": False,
            "lastChunk": True,
        }
    }
    assert ended["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELLED"
    assert ended["statusUpdate"]["final"] is True


@pytest.mark.parametrize(("agent", "encoded"), [("python-httpx/0.28", "QVA5aQ=="), ("node", "AP9i")])
def test_a_caller_that_decodes_files_twice_gets_them_so_in_streams_too(agent: str, encoded: str) -> None:
    frames = frames_of(_rest("rest_subscribe", user_agent=agent))
    chunk = piece("")
    artifact = type(chunk.artifact)(id="a-1", parts=(Blob(raw=b"\x00\xffb"),))
    (shown,) = told(open_task(), frames, type(chunk)(at=LATER, artifact=artifact))
    assert shown["artifactUpdate"]["artifact"]["parts"] == [{"file": {"fileWithBytes": encoded}}]


def test_a_refusal_before_the_stream_is_no_stream() -> None:
    reply = _rest("rest_subscribe").refuse(TaskNotFound(call_id="task-1"))
    assert (reply.status, json.loads(reply.body)["code"]) == (404, -32001)


# -- push over JSON-RPC


@pytest.mark.req("O-42", "O-44")
def test_push_configs_are_set_shown_listed_and_taken_away() -> None:
    kept = _read(f"{PUSH}/set", {"taskId": "task-1", "pushNotificationConfig": CONFIG})
    assert kept.operation == SetCallback(task_id="task-1", callback=CALLBACK, agent="agt_x")
    one = _read(f"{PUSH}/get", {"id": "task-1", "pushNotificationConfigId": "c-1"})
    assert one.operation == GetCallback(task_id="task-1", dialect="a2a-0.3", callback_id="c-1", agent="agt_x")
    first = _read(f"{PUSH}/get", {"id": "task-1"})
    assert first.operation == GetCallback(task_id="task-1", dialect="a2a-0.3", agent="agt_x")
    every = _read(f"{PUSH}/list", {"id": "task-1"})
    assert every.operation == ListCallbacks(task_id="task-1", dialect="a2a-0.3", agent="agt_x")
    gone = _read(f"{PUSH}/delete", {"id": "task-1", "pushNotificationConfigId": "c-1"})
    assert gone.operation == DeleteCallback(task_id="task-1", dialect="a2a-0.3", callback_id="c-1", agent="agt_x")
    shown = {"taskId": "task-1", "pushNotificationConfig": SHOWN}
    for exchange in (kept, one, first):
        assert json.loads(exchange.reply(CALLBACK).body)["result"] == shown
    assert json.loads(every.reply(CallbackList(callbacks=(CALLBACK,))).body)["result"] == [shown]


@pytest.mark.req("O-42", "X-16")
def test_taking_a_config_away_is_answered_with_null_written_out() -> None:
    gone = _read(f"{PUSH}/delete", {"id": "task-1", "pushNotificationConfigId": "c-1"})
    assert gone.reply(Done()).body == b'{"jsonrpc":"2.0","id":"req-1","result":null}'


@pytest.mark.req("O-44")
def test_a_config_beside_a_message_is_the_tasks_callback() -> None:
    params = {"message": MESSAGE, "configuration": {"pushNotificationConfig": CONFIG}}
    assert sent(DIALECT, "message/send", params).callback == CALLBACK
    params["configuration"] = {"pushNotificationConfig": {"url": "https://x.test/", "authentication": {}}}
    nameless = sent(DIALECT, "message/stream", params).callback
    assert nameless == Callback(id="default", dialect="a2a-0.3", url="https://x.test/", tells=Tells.EVENTS)


@pytest.mark.req("O-47")
@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("set", {"taskId": "task-1"}, "pushNotificationConfig"),
        ("set", {"pushNotificationConfig": CONFIG}, "taskId"),
        ("set", {"taskId": "task-1", "pushNotificationConfig": {}}, "pushNotificationConfig.url"),
        (
            "set",
            {"taskId": "t", "pushNotificationConfig": {**CONFIG, "token": "a\r\nb: c"}},
            "pushNotificationConfig.token",
        ),
        (
            "set",
            {"taskId": "t", "pushNotificationConfig": {**CONFIG, "authentication": {"schemes": ["a b"]}}},
            "pushNotificationConfig.authentication.schemes[",
        ),
        (
            "set",
            {"taskId": "t", "pushNotificationConfig": {**CONFIG, "authentication": {"credentials": "a\nb"}}},
            "pushNotificationConfig.authentication.credentials",
        ),
        ("get", {}, "id"),
        ("list", {"id": 1}, "id"),
        ("delete", {"id": "task-1"}, "pushNotificationConfigId"),
    ],
)
def test_a_push_request_that_makes_no_sense_is_refused_by_the_field(method: str, params: Any, field: str) -> None:
    status, body = refusal(DIALECT, posted(rpc_body(f"{PUSH}/{method}", params)))
    assert (status, body["error"]["code"]) == (200, -32602)
    assert body["error"]["data"]["path"].startswith(field)


def test_an_unknown_config_is_not_found() -> None:
    reply = _read(f"{PUSH}/get", {"id": "task-1"}).refuse(CallbackNotFound(call_id="task-1"))
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (200, -32001)


# -- push over HTTP


@pytest.mark.req("O-45")
@pytest.mark.parametrize(
    "body",
    [
        {
            "parent": "tasks/other",
            "configId": "c-1",
            "config": {"name": "tasks/other/pushNotificationConfigs/c-9", "pushNotificationConfig": CONFIG},
        },
        {
            "parent": "tasks/task-1",
            "config_id": "c-1",
            "config": {
                "push_notification_config": {k: v for k, v in CONFIG.items() if k != "id"},
            },
        },
        {"name": "tasks/task-1/pushNotificationConfigs/c-1", "pushNotificationConfig": {**CONFIG, "id": ""}},
        {"name": "tasks/task-1", "pushNotificationConfig": CONFIG},
        CONFIG,
    ],
    ids=["python", "tck", "javascript", "javascript with its id", "bare"],
)
def test_every_client_of_0_3_may_set_a_config_its_own_way(body: Any) -> None:
    exchange = _rest("rest_push_set", body)
    assert exchange.operation == SetCallback(task_id="task-1", callback=CALLBACK, agent="agt_x")
    shown = {"name": "tasks/task-1/pushNotificationConfigs/c-1", "pushNotificationConfig": SHOWN}
    assert json.loads(exchange.reply(CALLBACK).body) == shown
    every = _rest("rest_push_list", method="GET")
    assert every.operation == ListCallbacks(task_id="task-1", dialect="a2a-0.3", agent="agt_x")
    assert json.loads(every.reply(CallbackList(callbacks=(CALLBACK,))).body) == {"configs": [shown]}


def test_an_empty_authentication_over_http_is_none() -> None:
    operation = _rest("rest_push_set", {"url": "https://x.test/", "authentication": {}}).operation
    assert isinstance(operation, SetCallback)
    assert (operation.callback.id, operation.callback.auth) == ("default", None)


@pytest.mark.req("O-45")
def test_a_config_is_shown_and_taken_away_over_http() -> None:
    one = _rest("rest_push_get", method="GET")
    assert one.operation == GetCallback(task_id="task-1", dialect="a2a-0.3", callback_id="c-1", agent="agt_x")
    gone = _rest("rest_push_delete", method="DELETE")
    assert gone.operation == DeleteCallback(task_id="task-1", dialect="a2a-0.3", callback_id="c-1", agent="agt_x")
    reply = gone.reply(Done())
    assert (reply.status, reply.body) == (200, b"{}")


# -- calling agents


def test_an_agent_is_asked_for_a_stream_and_never_subscribed_to() -> None:
    task = open_task(remote={"task_id": "T"})
    assert DIALECT.ask(outgoing(DIALECT, Verb.SUBSCRIBE, task)) is None
    assert DIALECT.ask(_rest_outgoing(Verb.SUBSCRIBE)) is None
    assert DIALECT.ask(outgoing(DIALECT, Verb.STREAM, task, version=LEGACY)) is None
    assert Feature.SUBSCRIBE not in DIALECT.features
    assert Feature.STREAM in DIALECT.features


def _rest_outgoing(verb: Verb, version: str | None = None) -> Outgoing:
    call = outgoing(DIALECT, verb, open_task(remote={"task_id": "a:b/c"}), version=version)
    endpoint = Endpoint(dialect="a2a-0.3", binding=Binding.HTTP, url="http://agent.test/base/", version=version)
    return msgspec.structs.replace(call, endpoint=endpoint)


def test_an_agent_over_http_without_the_path_of_streams_has_none() -> None:
    for status in (404, 405, 501):
        with pytest.raises(NotSupported):
            DIALECT.hear(_rest_outgoing(Verb.STREAM), HttpReply(status=status, body=b'{"detail":"Not Found"}'), LATER)


def _rest_heard(*objects: Any) -> list[Heard]:
    assert DIALECT.listen is not None
    listener = DIALECT.listen(_rest_outgoing(Verb.STREAM))
    return [listener.hear(SseEvent("", json.dumps(each).encode()), LATER) for each in objects]


def _file_event(encoded: str) -> dict[str, Any]:
    parts = [{"file": {"fileWithBytes": encoded, "name": "f"}}]
    ids = {"taskId": "T", "contextId": "C"}
    return {"artifactUpdate": {**ids, "artifact": {"artifactId": "a", "parts": parts}, "lastChunk": True}}


def test_bytes_that_a_stream_over_http_leaves_in_doubt_are_left_to_a_look_at_the_task() -> None:
    done = {
        "statusUpdate": {"taskId": "T", "contextId": "C", "status": {"state": "TASK_STATE_COMPLETED"}, "final": True}
    }
    began = {"task": {"id": "T", "contextId": "C", "status": {"state": "TASK_STATE_WORKING"}}}
    _, chunk, end = _rest_heard(began, _file_event("AP9i"), done)
    (made,) = chunk.events
    assert isinstance(made, ArtifactChunk)
    assert made.artifact.parts == (Blob(raw=b"\x00\xffb", filename="f"),)
    assert end.settled
    _, chunk, end, after = _rest_heard(began, _file_event("QVA5aQ=="), done, done)
    for each in (chunk, end, after):
        assert (each.events, each.settled) == ((), False)
        assert each.remote is not None
        assert each.remote.task_id == "T"
