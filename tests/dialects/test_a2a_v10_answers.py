"""A2A 1.0 as the hub answers it: tasks, lists, errors and cards, in both framings."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects.a2a_v10 import DIALECT
from dragoman.dialects.a2a_v10.errors import HTTP
from dragoman.dialects.dialect import wire_error
from dragoman.model import errors
from dragoman.model.answers import Accepted, Card, Pong, TaskPage
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.states import TaskState
from tests.dialects.a2a_v10_samples import agent_of, message, read, rest, rpc, shown_error
from tests.dialects.goldens import AT, HUB, task_of

PARTS = [{"type": "text", "text": "hello"}, {"type": "blob", "raw": "AP8=", "filename": "a.bin"}]
ANSWERED: dict[str, Any] = {
    "id": "task-1",
    "dialect": "a2a-1.0",
    "state": "completed",
    "artifacts": [{"id": "a", "name": "A", "parts": PARTS, "kind": "report", "metadata": {"x": 1}}],
    "messages": [{"id": "m2", "role": "agent", "parts": [{"type": "text", "text": "thinking"}]}],
    "updated_at": "2026-01-12T10:00:01.5Z",
    "ended_at": "2026-01-12T10:00:01.5Z",
    "asked": {"message": {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}},
}
SEND = rpc("SendMessage", {"message": message()})
GET = rpc("GetTask", {"id": "task-1"})


def _result(request: HttpRequest, answer: Any) -> Any:
    reply = read(request).reply(answer)
    assert reply.status == 200
    body = json.loads(reply.body)
    assert set(body) == {"jsonrpc", "id", "result"}
    return body["result"]


def test_a_task_is_shown_strictly_and_without_empty_members() -> None:
    assert _result(GET, task_of(dict(ANSWERED))) == {
        "id": "task-1",
        "contextId": "conv_1",
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-12T10:00:01.500Z"},
        "artifacts": [
            {
                "artifactId": "a",
                "name": "A",
                "parts": [{"text": "hello"}, {"raw": "AP8=", "filename": "a.bin"}],
                "metadata": {"x": 1, "dragoman": {"kind": "report"}},
            }
        ],
        "history": [
            {
                "messageId": "m1",
                "contextId": "conv_1",
                "taskId": "task-1",
                "role": "ROLE_USER",
                "parts": [{"text": "hi"}],
            },
            {
                "messageId": "m2",
                "contextId": "conv_1",
                "taskId": "task-1",
                "role": "ROLE_AGENT",
                "parts": [{"text": "thinking"}],
            },
        ],
    }


def test_the_answer_to_a_send_says_what_it_is() -> None:
    assert set(_result(SEND, task_of(dict(ANSWERED)))) == {"task"}
    waiting = task_of({"id": "task-1", "state": "submitted"})
    assert _result(SEND, Accepted(task=waiting))["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"


def test_an_agent_that_answered_with_a_message_is_answered_with_one() -> None:
    direct = task_of({**ANSWERED, "artifacts": [], "direct": True})
    assert _result(SEND, direct) == {
        "message": {
            "messageId": "m2",
            "contextId": "conv_1",
            "role": "ROLE_AGENT",
            "parts": [{"text": "thinking"}],
        }
    }
    shown = _result(GET, direct)
    assert shown["artifacts"] == [{"artifactId": "result", "name": "result", "parts": [{"text": "thinking"}]}]


@pytest.mark.parametrize("state", list(TaskState))
def test_every_state_has_its_name(state: TaskState) -> None:
    shown = _result(GET, task_of({"state": state.value}))
    assert shown["status"]["state"] == "TASK_STATE_" + state.value.upper().replace("-", "_")


def test_a_failure_is_a_state_with_words() -> None:
    failed = task_of(
        {"state": "failed", "failure": {"code": "AGENT_TIMEOUT", "message": "too late", "retryable": True}}
    )
    shown = _result(SEND, failed)["task"]
    assert shown["status"]["message"]["parts"] == [{"text": "too late"}]
    assert shown["status"]["message"]["role"] == "ROLE_AGENT"
    assert shown["metadata"] == {"dragoman": {"failure": {"code": "AGENT_TIMEOUT", "retryable": True}}}


def test_a_question_stands_in_the_status() -> None:
    asked = {"id": "q", "role": "agent", "parts": [{"type": "text", "text": "Which?"}]}
    shown = _result(SEND, task_of({"state": "input-required", "status_message": asked}))["task"]
    assert shown["status"]["message"]["parts"] == [{"text": "Which?"}]
    assert "artifacts" not in shown


@pytest.mark.parametrize(
    ("length", "kept"), [(None, ["m1", "m2"]), (0, None), (1, ["m2"]), (2, ["m1", "m2"]), (9, ["m1", "m2"])]
)
def test_history_is_as_long_as_asked(length: int | None, kept: list[str] | None) -> None:
    given = {} if length is None else {"historyLength": length}
    task = task_of(dict(ANSWERED))
    query = "" if length is None else f"?historyLength={length}"
    listed = _result(rpc("ListTasks", given), TaskPage(tasks=(task,), total=1))
    by_path = json.loads(read(rest("GET", f"/tasks/task-1{query}", "get", task="task-1")).reply(task).body)
    for shown in (
        _result(rpc("GetTask", {"id": "task-1", **given}), task),
        _result(rpc("SendMessage", {"message": message(), "configuration": given}), task)["task"],
        listed["tasks"][0],
        by_path,
    ):
        assert ([each["messageId"] for each in shown["history"]] if "history" in shown else None) == kept


def test_a_list_has_all_four_members_and_artifacts_only_when_asked() -> None:
    task, bare = task_of(dict(ANSWERED)), task_of({"id": "task-2", "state": "working"})
    shown = _result(rpc("ListTasks", {}), TaskPage(tasks=(task, bare), total=2))
    assert {name: shown[name] for name in ("nextPageToken", "pageSize", "totalSize")} == {
        "nextPageToken": "",
        "pageSize": 50,
        "totalSize": 2,
    }
    assert all("artifacts" not in each for each in shown["tasks"])
    with_artifacts = _result(rpc("ListTasks", {"includeArtifacts": True}), TaskPage(tasks=(task, bare), total=2))
    assert [len(each["artifacts"]) for each in with_artifacts["tasks"]] == [1, 0]
    empty = _result(rpc("ListTasks", {"pageSize": 3}), TaskPage(tasks=(), total=0))
    assert empty == {"tasks": [], "nextPageToken": "", "pageSize": 3, "totalSize": 0}


def test_a_page_token_is_good_for_its_own_list_alone() -> None:
    filters = {"contextId": "ctx-1", "status": "TASK_STATE_WORKING"}
    token = _result(rpc("ListTasks", filters), TaskPage(tasks=(), total=9, cursor="next.page"))["nextPageToken"]
    again = read(rpc("ListTasks", {**filters, "pageToken": token, "pageSize": 3})).operation
    assert getattr(again, "cursor", None) == "next.page"
    for other in ({"contextId": "ctx-2", "status": "TASK_STATE_WORKING"}, {"contextId": "ctx-1"}, {}):
        exchange = read(rpc("ListTasks", {**other, "pageToken": token}))
        assert type(getattr(exchange.operation, "error", None)) is errors.BadParams
    elsewhere = read(rpc("ListTasks", {**filters, "pageToken": token}, url="/agents/agt_other"))
    assert type(getattr(elsewhere.operation, "error", None)) is errors.BadParams


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, "application/json"),
        ({"content_type": "application/a2a+json"}, "application/a2a+json"),
        ({"content_type": "", "accept": "application/a2a+json"}, "application/a2a+json"),
        ({"accept": "application/a2a+json, application/json;q=0.9"}, "application/json"),
        ({"accept": "*/*"}, "application/json"),
    ],
)
def test_http_answers_in_the_media_type_that_was_used(headers: dict[str, str], kind: str) -> None:
    exchange = read(rest("POST", "/message:send", "send", {"message": message()}, **headers))
    reply = exchange.reply(task_of(dict(ANSWERED)))
    assert (reply.status, reply.headers[b"content-type"].decode()) == (200, kind)
    assert set(json.loads(reply.body)) == {"task"}
    refused = exchange.refuse(errors.TaskNotFound())
    assert refused.headers[b"content-type"] == b"application/json"


# The specification's own errors: code, HTTP status, gRPC status, reason.
SPECIFIED = {
    "TaskNotFound": (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    "CallbackNotFound": (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    "TaskNotCancelable": (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    "NotSupported": (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    "TaskFinished": (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    "ContentRefused": (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    "BadAgentReply": (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
    "NoExtendedCard": (-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    "ExtensionRequired": (-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
    "VersionNotSupported": (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
    "NotJson": (-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"),
    "BadFrame": (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    "UnknownMethod": (-32601, 404, "UNIMPLEMENTED", "METHOD_NOT_FOUND"),
    "BadParams": (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    "InputRefused": (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    "SkillNotFound": (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    "CallLoop": (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    "IdempotencyConflict": (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    "NotAuthenticated": (-32000, 401, "UNAUTHENTICATED", "AUTHORIZATION_ERROR"),
    "NotAuthorized": (-32000, 403, "PERMISSION_DENIED", "AUTHORIZATION_ERROR"),
    "AgentNotFound": (-32000, 404, "NOT_FOUND", "AGENT_NOT_FOUND"),
    "RateLimited": (-32000, 429, "RESOURCE_EXHAUSTED", "RATE_LIMITED"),
    "AgentUnavailable": (-32603, 503, "UNAVAILABLE", "AGENT_UNAVAILABLE"),
    "CircuitOpen": (-32603, 503, "UNAVAILABLE", "CIRCUIT_OPEN"),
    "Overloaded": (-32603, 503, "UNAVAILABLE", "OVERLOADED"),
    "DragomanError": (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
}
OWN_STATUS = {401, 403, 413, 415, 421, 429}


@pytest.mark.parametrize("name", SPECIFIED)
def test_an_error_has_the_words_of_the_specification(name: str) -> None:
    code, status, word, reason = SPECIFIED[name]
    error: DragomanError = getattr(errors, name)("It broke", fact=1, errors=[{"path": "a.b", "message": "wrong"}])
    reply, shown = shown_error(read(GET), error)
    assert (shown["code"], shown["message"]) == (code, "It broke")
    hub_itself = status in OWN_STATUS or name in ("AgentNotFound", "Overloaded")
    assert reply.status == (status if hub_itself else 200)
    by_path, rest_shown = shown_error(read(rest("GET", "/tasks/t", "get", task="t")), error)
    assert by_path.status == status
    assert {key: rest_shown[key] for key in ("code", "status", "message")} == {
        "code": status,
        "status": word,
        "message": "It broke",
    }
    assert shown["data"] == rest_shown["details"]
    info, violations = shown["data"]
    assert (info["reason"], info["domain"]) == (reason, "a2a-protocol.org")
    assert info["metadata"]["fact"] == "1"
    assert all(isinstance(value, str) for value in info["metadata"].values())
    assert violations["fieldViolations"] == [{"field": "a.b", "description": "wrong"}]
    assert (b"retry-after" in reply.headers) is (status in (429, 503))
    assert (b"www-authenticate" in by_path.headers) is (status == 401)


def test_every_error_has_a_word_over_http() -> None:
    every = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DragomanError)]
    words = {wire_error(HTTP, each())[0] for each in every if not each.__name__.startswith("_")}
    assert len(words) >= 10
    assert DIALECT.errors[DragomanError] == (-32603, 200)


def test_an_answer_that_no_request_has_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        read(GET).reply(Pong())


CARD = {
    "name": "Echo",
    "version": "2.0.0",
    "supportedInterfaces": [{"url": "http://agent.test/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "skills": [],
}


def _card(request: HttpRequest, *, extended: bool = False, **more: Any) -> HttpReply:
    card = msgspec.structs.replace(DIALECT.read_card(CARD), extended=extended)
    return read(request).reply(Card(agent=agent_of(card), **more))


def test_the_card_is_merged_unless_1_0_is_said_or_the_mount_is_asked() -> None:
    path = "/.well-known/agent-card.json"
    merged = json.loads(_card(rest("GET", path, "card", a2a_version="")).body)
    older = json.loads(_card(rest("GET", path, "card", a2a_version="0.3")).body)
    assert older == merged
    assert (merged["protocolVersion"], merged["url"]) == ("0.3.0", f"{HUB}/agents/agt_echo/")
    pure = json.loads(_card(rest("GET", path, "card")).body)
    assert "protocolVersion" not in pure
    mount = HttpRequest(method="GET", url=f"/agents/agt_echo/a2a-1.0{path}", route="card", hub=HUB, at=AT)
    assert json.loads(_card(mount).body) == pure


def test_the_card_can_be_kept_and_its_name_is_enough_later() -> None:
    asked = rest("GET", "/.well-known/agent-card.json", "card")
    reply = _card(asked)
    tag = reply.headers[b"etag"].decode()
    assert tag.startswith('W/"')
    assert reply.headers[b"cache-control"] == b"public, max-age=60"
    assert reply.headers[b"vary"] == b"A2A-Version"
    assert reply.headers[b"last-modified"] == b"Mon, 12 Jan 2026 10:00:00 GMT"
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = _card(rest("GET", "/.well-known/agent-card.json", "card", if_none_match=known))
        assert (again.status, again.body, again.headers[b"etag"].decode()) == (304, b"", tag)
    merged = _card(rest("GET", "/.well-known/agent-card.json", "card", if_none_match=tag, a2a_version=""))
    assert merged.status == 200
    assert merged.headers[b"etag"].decode() != tag


def test_an_extended_card_is_the_hubs_own_and_for_its_caller_alone() -> None:
    by_rpc, by_path = rpc("GetExtendedAgentCard"), rest("GET", "/extendedAgentCard", "extended")
    for request in (by_rpc, by_path):
        undeclared = json.loads(_card(request).body)["error"]
        assert (undeclared.get("data") or undeclared["details"])[0]["reason"] == "UNSUPPORTED_OPERATION"
        none = json.loads(_card(request, extended=True).body)["error"]
        assert (none.get("data") or none["details"])[0]["reason"] == "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
        hubs = _card(request, extended=True, is_hub=True)
        assert (hubs.status, hubs.headers[b"cache-control"]) == (200, b"private")
        body = json.loads(hubs.body)
        shown = body["result"] if request is by_rpc else body
        assert shown["capabilities"]["extendedAgentCard"] is True
        assert shown["supportedInterfaces"][0]["url"] == f"{HUB}/"
