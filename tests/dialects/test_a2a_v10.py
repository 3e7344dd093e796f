"""A2A 1.0 as its callers speak it: what each request asks, and which requests make no sense."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman.dialects.a2a_v10 import DIALECT
from dragoman.dialects.dialect import Level
from dragoman.model.content import Blob, Data, Link, Role, Text
from dragoman.model.http import HttpRequest
from dragoman.model.operations import CancelTask, GetCard, GetTask, ListTasks, Priority, Unreadable, Wait
from dragoman.model.states import TaskState
from tests.dialects.a2a_v10_samples import fields_of, message, raw_rpc, read, refusal, rest, rpc, sent

FULL: dict[str, Any] = {
    "message": message(
        {"text": "hi", "mediaType": "text/markdown"},
        {"raw": base64.b64encode(b"\x00\xff").decode(), "filename": "a.bin"},
        {"url": "https://files.test/x", "mediaType": "image/png"},
        {"data": {"n": 2**60}, "metadata": {"some_key": 1}},
        contextId="ctx-1",
        taskId="task-1",
        referenceTaskIds=["task-0"],
        extensions=["https://x.test/ext"],
        metadata={"mine": 1, "dragoman": {"skill": "echo", "priority": "high", "timeout_ms": 5000}},
    ),
    "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 2, "returnImmediately": True},
    "metadata": {"trace_words": {"some_key": 1}},
}


@pytest.mark.parametrize("framing", ["JSONRPC", "HTTP+JSON"])
def test_a_message_is_read_with_every_field_it_has(framing: str) -> None:
    headers = {"idempotency_key": "k1", "x_request_id": "q1", "a2a_extensions": "https://a.test, https://b.test"}
    if framing == "JSONRPC":
        asked = sent(rpc("SendMessage", FULL, **headers))
    else:
        asked = sent(rest("POST", "/message:send", "send", FULL, **headers))
    assert asked.message.parts == (
        Text(text="hi", media_type="text/markdown"),
        Blob(raw=b"\x00\xff", filename="a.bin"),
        Link(url="https://files.test/x", media_type="image/png"),
        Data(value={"n": 2**60}, metadata={"some_key": 1}),
    )
    assert (asked.message.id, asked.message.role) == ("m1", Role.USER)
    assert (asked.message.references, asked.message.extensions) == (("task-0",), ("https://x.test/ext",))
    assert asked.message.metadata == {"mine": 1}
    assert asked.metadata == {"trace_words": {"some_key": 1}}
    assert (asked.agent, asked.skill, asked.continues, asked.context_id) == ("agt_target", "echo", "task-1", "ctx-1")
    assert (asked.wait, asked.priority, asked.timeout_s) == (Wait.NONE, Priority.HIGH, 5.0)
    assert (asked.idempotency_key, asked.request_id) == ("k1", "q1")
    assert (asked.accepts, asked.extensions) == (("text/plain",), ("https://a.test", "https://b.test"))


def test_names_with_underscores_are_the_same_names_save_in_what_is_the_callers_own() -> None:
    snake = {
        "message": {
            "message_id": "m1",
            "role": 1,
            "context_id": "ctx-1",
            "reference_task_ids": ["task-0"],
            "parts": [{"data": {"media_type": "kept"}, "media_type": "application/json"}],
            "metadata": {"message_id": "kept"},
        },
        "configuration": {"accepted_output_modes": ["text/plain"], "return_immediately": True},
    }
    asked = sent(rpc("SendMessage", snake))
    assert asked.message.parts == (Data(value={"media_type": "kept"}, media_type="application/json"),)
    assert (asked.message.id, asked.message.role, asked.context_id) == ("m1", Role.USER, "ctx-1")
    assert (asked.message.references, asked.message.metadata) == (("task-0",), {"message_id": "kept"})
    assert (asked.accepts, asked.wait) == (("text/plain",), Wait.NONE)


def test_who_waits_has_an_hour_and_who_does_not_a_day() -> None:
    waiting, later = {"message": message()}, {"message": message(), "configuration": {"returnImmediately": True}}
    assert (sent(rpc("SendMessage", waiting)).wait, sent(rpc("SendMessage", waiting)).timeout_s) == (Wait.END, 3600.0)
    assert (sent(rpc("SendMessage", later)).wait, sent(rpc("SendMessage", later)).timeout_s) == (Wait.NONE, 86_400.0)


def test_unknown_members_are_ignored_and_null_means_absent() -> None:
    params = {
        "message": message({"text": "hi", "raw": None, "data": None, "new": 1}, contextId=None, metadata=None, new={}),
        "configuration": None,
        "metadata": None,
        "kind": "message",
    }
    asked = sent(rpc("SendMessage", params))
    assert asked.message.parts == (Text(text="hi"),)
    assert asked.context_id is None
    assert asked.metadata is None


def test_a_null_alone_is_the_value_null() -> None:
    assert sent(rpc("SendMessage", {"message": message({"data": None})})).message.parts == (Data(value=None),)


def test_bytes_may_be_url_safe_and_unpadded() -> None:
    raw = b"\xfb\xef\xff"
    coded = base64.urlsafe_b64encode(raw + b"x").decode().rstrip("=")
    assert sent(rpc("SendMessage", {"message": message({"raw": coded})})).message.parts == (Blob(raw=raw + b"x"),)


def test_at_the_root_the_tenant_is_the_agent_and_at_its_base_it_is_kept() -> None:
    params = {"tenant": "agt_other", "message": message()}
    assert sent(rpc("SendMessage", params, url="/")).agent == "agt_other"
    kept = sent(rpc("SendMessage", params))
    assert (kept.agent, kept.metadata) == ("agt_target", {"tenant": "agt_other"})
    hinted = {"message": message(metadata={"agentId": "agt_hinted"})}
    assert sent(rpc("SendMessage", hinted, url="/")).agent == "agt_hinted"
    asked = read(rpc("GetTask", {"id": "task-1", "tenant": "agt_other"}, url="/")).operation
    assert asked == GetTask(task_id="task-1", agent="agt_other")


WRONG_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({}, "message"),
    ({"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}}, "message.messageId"),
    ({"message": message(messageId="")}, "message.messageId"),
    ({"message": {"messageId": "m", "parts": [{"text": "x"}]}}, "message.role"),
    ({"message": message(role="user")}, "message.role"),
    ({"message": message(role="ROLE_UNSPECIFIED")}, "message.role"),
    ({"message": message(role=7)}, "message.role"),
    ({"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}, "message.parts"),
    ({"message": {"messageId": "m", "role": "ROLE_USER"}}, "message.parts"),
    ({"message": message({"text": 1})}, "message.parts[0].text"),
    ({"message": message({"text": "x"}, {"text": "x", "url": "y"})}, "message.parts[1]"),
    ({"message": message({"filename": "x"})}, "message.parts[0]"),
    ({"message": message({"raw": "no base64!"})}, "message.parts[0].raw"),
    ({"message": message({"url": ""})}, "message.parts[0].url"),
    ({"message": message(metadata=[])}, "message.metadata"),
    ({"message": message(extensions=[1])}, "message.extensions[0]"),
    ({"message": message(), "configuration": {"historyLength": -1}}, "configuration.historyLength"),
    ({"message": message(), "configuration": {"returnImmediately": "yes"}}, "configuration.returnImmediately"),
    ({"message": message(), "metadata": "x"}, "metadata"),
]


@pytest.mark.parametrize("framing", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize(("params", "field"), WRONG_MESSAGES, ids=lambda each: str(each)[:60])
def test_a_wrong_field_is_named(params: dict[str, Any], field: str, framing: str) -> None:
    if framing == "JSONRPC":
        reply, error = refusal(rpc("SendMessage", params))
        assert (reply.status, error["code"]) == (200, -32602)
    else:
        reply, error = refusal(rest("POST", "/message:send", "send", params))
        assert (reply.status, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert fields_of(error) == {field}


def test_params_that_are_no_object_are_invalid_params() -> None:
    assert refusal(rpc("SendMessage", [1]))[1]["code"] == -32602
    assert refusal(rpc("GetTask", "x"))[1]["code"] == -32602


def test_a_task_is_asked_for_by_its_id() -> None:
    asked = GetTask(task_id="task-1", agent="agt_target")
    assert read(rpc("GetTask", {"id": "task-1", "historyLength": 0})).operation == asked
    assert read(rest("GET", "/tasks/task-1?historyLength=0", "get", task="task-1")).operation == asked
    assert read(rest("GET", "/tasks/task-1?history_length=0", "get", task="task-1")).operation == asked
    assert fields_of(refusal(rpc("GetTask", {}))[1]) == {"id"}
    assert fields_of(refusal(rpc("GetTask", {"id": ""}))[1]) == {"id"}
    negative = rest("GET", "/tasks/task-1?historyLength=-1", "get", task="task-1")
    assert fields_of(refusal(negative)[1]) == {"historyLength"}


def test_a_task_is_cancelled_by_its_id_whatever_the_body_says() -> None:
    asked = CancelTask(task_id="a:b", agent="agt_target")
    assert read(rpc("CancelTask", {"id": "a:b"})).operation == asked
    assert read(rest("POST", "/tasks/a%3Ab:cancel", "cancel", task="a:b")).operation == asked
    assert read(rest("POST", "/tasks/a:b:cancel", "cancel", {}, task="a:b")).operation == asked
    body = {"id": "another", "metadata": {"reason": "enough"}}
    said = CancelTask(task_id="a:b", agent="agt_target", reason="enough")
    assert read(rest("POST", "/tasks/a:b:cancel", "cancel", body, task="a:b")).operation == said
    for rubbish in (b"{", b"[]", b"\xff"):
        reply, error = refusal(rest("POST", "/tasks/a:cancel", "cancel", rubbish, task="a"))
        assert (reply.status, error["details"][0]["reason"]) == (400, "PARSE_ERROR")


def test_tasks_are_listed_by_context_state_and_time() -> None:
    asked = ListTasks(
        agent="agt_target",
        context_id="ctx-1",
        state=TaskState.INPUT_REQUIRED,
        after=datetime(2026, 1, 12, 10, tzinfo=UTC),
        limit=7,
    )
    params = {
        "contextId": "ctx-1",
        "status": "TASK_STATE_INPUT_REQUIRED",
        "statusTimestampAfter": "2026-01-12T10:00:00Z",
        "pageSize": 7,
    }
    query = "&".join(f"{name}={value}" for name, value in params.items())
    assert read(rpc("ListTasks", params)).operation == asked
    assert read(rpc("ListTasks", {**params, "status": 6})).operation == asked
    assert read(rest("GET", f"/tasks?{query}&includeArtifacts=true", "list")).operation == asked
    assert read(rpc("ListTasks", {})).operation == ListTasks(agent="agt_target", limit=50)
    assert read(rpc("ListTasks")).operation == ListTasks(agent="agt_target", limit=50)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pageSize", 0),
        ("pageSize", 101),
        ("pageSize", "x"),
        ("historyLength", -1),
        ("status", "TASK_STATE_DONE"),
        ("status", "TASK_STATE_UNSPECIFIED"),
        ("status", "completed"),
        ("statusTimestampAfter", "yesterday"),
        ("statusTimestampAfter", "2026-01-12T10:00:00"),
        ("includeArtifacts", "maybe"),
        ("pageToken", "foreign"),
        ("pageToken", "0123456789ab.cursor"),
    ],
)
def test_a_wrong_filter_is_an_error_and_not_everything(name: str, value: str | int) -> None:
    _, error = refusal(rpc("ListTasks", {name: value}))
    assert (error["code"], fields_of(error)) == (-32602, {name})
    reply, error = refusal(rest("GET", f"/tasks?{name}={value}", "list"))
    assert (reply.status, fields_of(error)) == (400, {name})


def test_an_extended_card_is_asked_for_without_params() -> None:
    asked = GetCard(agent="agt_target")
    assert read(rpc("GetExtendedAgentCard")).operation == asked
    assert read(rpc("GetExtendedAgentCard", {})).operation == asked
    assert read(rest("GET", "/extendedAgentCard", "extended")).operation == asked
    assert read(rpc("GetExtendedAgentCard", {"tenant": "x"}, url="/")).operation == GetCard(agent="x")
    assert read(rpc("GetExtendedAgentCard", url="/")).operation == GetCard(agent=None)


def test_the_public_card_is_asked_for_without_any_header() -> None:
    asked = rest("GET", "/.well-known/agent-card.json", "card", a2a_version="", content_type="")
    assert read(asked).operation == GetCard(agent="agt_target", public=True)


def test_every_operation_has_a_method_and_a_path() -> None:
    assert len(DIALECT.methods) == 11
    paths = {(route.method, route.path) for route in DIALECT.routes if route.tenant}
    assert len(paths) == 12  # one of the eleven has two verbs
    assert all(route.level is Level.BASE for route in DIALECT.routes)
    assert {route.path for route in DIALECT.routes if not route.tenant} == set(DIALECT.card_paths)


@pytest.mark.parametrize("said", ["", "0.3", "2.0", "1.1", "0.2", "one"])
def test_another_version_than_1_0_is_refused_with_the_way_out(said: str) -> None:
    for request in (
        rpc("SendMessage", {"message": message()}, a2a_version=said),
        rest("GET", "/tasks", "list", a2a_version=said),
    ):
        reply, error = refusal(request)
        assert "A2A-Version: 1.0" in error["message"]
        assert (reply.status, error["code"]) in {(200, -32009), (400, 400)}
        details = error.get("data") or error["details"]
        assert (details[0]["reason"], details[0]["metadata"]["requested"]) == ("VERSION_NOT_SUPPORTED", said or "0.3")


@pytest.mark.parametrize("said", ["1.0", "1.0.0", "1.0.17", " 1.0 "])
def test_only_major_and_minor_count(said: str) -> None:
    assert sent(rpc("SendMessage", {"message": message()}, a2a_version=said)).agent == "agt_target"


def test_the_version_may_stand_in_the_query_and_the_header_decides() -> None:
    params = {"message": message()}
    assert sent(rpc("SendMessage", params, url="/agents/agt_target?A2A-Version=1.0", a2a_version=""))
    assert read(rest("GET", "/tasks?A2A-Version=1.0", "list", a2a_version="")).operation == ListTasks(
        agent="agt_target", limit=50
    )
    reply, error = refusal(rpc("SendMessage", params, url="/agents/agt_target?A2A-Version=1.0", a2a_version="0.3"))
    assert (reply.status, error["code"]) == (200, -32009)


def test_a_wrong_media_type_is_refused_before_the_body_is_read() -> None:
    reply, error = refusal(raw_rpc(b"\xff not json", content_type="text/plain"))
    assert (reply.status, error["code"], error["data"][0]["reason"]) == (200, -32005, "CONTENT_TYPE_NOT_SUPPORTED")
    mount = raw_rpc(b"{", url="/agents/agt_target/a2a-1.0", content_type="text/plain", a2a_version="")
    assert refusal(mount)[1]["code"] == -32005
    unsaid = raw_rpc(b"{", content_type="text/plain", a2a_version="")
    reply, error = refusal(unsaid)
    assert (reply.status, error["code"]) == (415, -32600)
    reply, error = refusal(rest("POST", "/message:send", "send", b"{", content_type="text/plain"))
    assert (reply.status, error["code"]) == (415, 415)
    assert error["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


@pytest.mark.parametrize("kind", ["", "application/json; charset=utf-8", "application/a2a+json", "Application/JSON"])
def test_http_takes_both_of_its_media_types_and_none(kind: str) -> None:
    assert sent(rest("POST", "/message:send", "send", {"message": message()}, content_type=kind))


def test_http_without_a_body_says_what_is_missing_and_rubbish_is_no_json() -> None:
    assert fields_of(refusal(rest("POST", "/message:send", "send"))[1]) == {"message"}
    assert refusal(rest("POST", "/message:send", "send", b"{"))[1]["details"][0]["reason"] == "PARSE_ERROR"
    assert refusal(rest("POST", "/message:send", "send", b"[]"))[0].status == 400


@pytest.mark.parametrize(
    ("body", "code", "echoed"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc":"1.0","id":4,"method":"GetTask"}', -32600, 4),
        (b'{"id":"x","method":"GetTask"}', -32600, "x"),
        (b'{"jsonrpc":"2.0","id":"x"}', -32600, "x"),
        (b'{"jsonrpc":"2.0","id":{},"method":"GetTask"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"message/send"}', -32601, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"sendMessage"}', -32601, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{}}', -32602, 7),
    ],
)
def test_a_broken_frame_is_refused_with_the_id_it_has(body: bytes, code: int, echoed: Any) -> None:
    reply, error = refusal(raw_rpc(body))
    whole = json.loads(reply.body)
    assert (reply.status, error["code"], whole["id"], whole["jsonrpc"]) == (200, code, echoed, "2.0")
    assert set(whole) == {"jsonrpc", "id", "error"}


def test_a_request_without_an_id_is_not_answered() -> None:
    exchange = read(raw_rpc(b'{"jsonrpc":"2.0","method":"GetTask","params":{}}'))
    assert isinstance(exchange.operation, Unreadable)
    reply = exchange.refuse(exchange.operation.error)
    assert (reply.status, reply.body) == (204, b"")


def test_a_header_that_is_no_id_is_refused() -> None:
    _, error = refusal(rpc("SendMessage", {"message": message()}, idempotency_key="x" * 257))
    assert (error["code"], fields_of(error)) == (-32602, {"Idempotency-Key"})


def test_a_path_that_is_not_known_is_refused_in_the_same_words() -> None:
    request = HttpRequest(method="GET", url="/agents/x/nothing", route="nothing")
    reply, error = refusal(request)
    assert (reply.status, error["status"], error["details"][0]["reason"]) == (404, "UNIMPLEMENTED", "METHOD_NOT_FOUND")
