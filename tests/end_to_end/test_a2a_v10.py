"""A2A 1.0 through a real hub: callers in both framings, agents in both framings, and what the hub itself says."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from dragoman.model.json import is_array, is_object
from tests.end_to_end.world import RFC_3339, eventually, fresh
from tests.support.agents.a2a_v10 import agent
from tests.support.callers.a2a_v10 import A2AV10Caller
from tests.support.hub import HubProcess, Reply
from tests.support.speaking import FAILURE, QUESTION, Caller, Content, StubAgent

V10 = {"A2A-Version": "1.0"}
BINDINGS = ("JSONRPC", "HTTP+JSON")


@pytest.fixture(scope="module")
def stub() -> Generator[StubAgent]:
    with agent() as stub:
        yield stub


@pytest.fixture(scope="module")
def echo(hub: HubProcess, stub: StubAgent) -> str:
    """The id of an agent that repeats what it is told."""
    return _joined(hub, stub.card)


@pytest.fixture(params=BINDINGS)
def caller(hub: HubProcess, request: pytest.FixtureRequest) -> Caller:
    return A2AV10Caller(hub.url, hub.token or "", request.param)


def _joined(hub: HubProcess, card: dict[str, Any], **more: Any) -> str:
    agent_id: str = hub.register(card, id=fresh("agt_official"), **more)["id"]
    return agent_id


def _rpc(hub: HubProcess, path: str, method: str, params: Any = None, token: str = "", **headers: str) -> Reply:
    frame = {"jsonrpc": "2.0", "id": "r1", "method": method} | ({} if params is None else {"params": params})
    return hub.post(path, frame, {**V10, **headers}, token)


def _result(reply: Reply) -> Any:
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"jsonrpc", "id", "result"}, reply.body
    assert (reply.json["jsonrpc"], reply.json["id"]) == ("2.0", "r1")
    return reply.json["result"]


def _error(reply: Reply, code: int, status: int = 200) -> Any:
    assert (reply.status, set(reply.json)) == (status, {"jsonrpc", "id", "error"}), reply.body
    assert reply.json["error"]["code"] == code, reply.body
    return reply.json["error"]


def _http_error(reply: Reply, status: int, word: str, reason: str) -> Any:
    assert reply.headers["content-type"] == "application/json"
    error = reply.json["error"]
    assert (reply.status, error["code"], error["status"]) == (status, status, word), reply.body
    assert error["details"][0]["reason"] == reason
    return error


def _message(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"messageId": fresh("m"), "role": "ROLE_USER", "parts": list(parts) or [{"text": "hi"}], **more}


def _sent(hub: HubProcess, agent_id: str, *parts: Any, **more: Any) -> Any:
    how = more.pop("configuration", {})
    params = {"message": _message(*parts, **more), "configuration": how}
    return _result(_rpc(hub, f"/agents/{agent_id}/", "SendMessage", params))["task"]


@pytest.mark.req("O-08")
@pytest.mark.req("O-14")
def test_a_message_is_answered_with_exactly_one_task_in_a_context(hub: HubProcess, echo: str) -> None:
    result = _result(_rpc(hub, f"/agents/{echo}", "SendMessage", {"message": _message()}))
    assert set(result) == {"task"}
    task = result["task"]
    assert task["id"].startswith("task-")
    assert task["contextId"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert RFC_3339.fullmatch(task["status"]["timestamp"])
    assert [part for artifact in task["artifacts"] for part in artifact["parts"]] == [{"text": "hi"}]
    kept = _sent(hub, echo, contextId="my own context")
    assert kept["contextId"] == "my own context"
    assert [each["contextId"] for each in kept["history"]] == ["my own context"]


@pytest.mark.req("O-07")
@pytest.mark.parametrize("binding", BINDINGS)
def test_parts_of_every_kind_go_there_and_back(hub: HubProcess, binding: str) -> None:
    parts = [
        {"text": "héllo", "mediaType": "text/markdown", "metadata": {"n": 2**60}},
        {"raw": "AP8QIA==", "filename": "a b.bin", "mediaType": "application/x-thing"},
        {"url": "https://files.test/f?x=1", "filename": "f.pdf", "mediaType": "application/pdf"},
        {"data": {"big": 2**70, "null": None, "list": [1, 2.5]}, "mediaType": "application/json"},
        {"data": [1, "two"]},
        {"data": None},
    ]
    with agent("Parts", binding) as stub:
        joined = _joined(hub, stub.card)
        task = _sent(hub, joined, *parts, metadata={"own": {"some_key": 1}})
        assert task["artifacts"][0]["parts"] == parts
        body = stub.requests[-1][3]
        carried = body["params"]["message"] if binding == "JSONRPC" else body["message"]
        assert carried["parts"] == parts
        assert carried["metadata"]["own"] == {"some_key": 1}
        assert carried["metadata"]["dragoman"]["call_id"] == task["id"]


def test_every_field_of_a_request_arrives_at_an_agent_of_the_same_dialect(
    hub: HubProcess, stub: StubAgent, echo: str
) -> None:
    params = {
        "message": _message(
            contextId=fresh("ctx"),
            extensions=["https://x.test/m"],
            referenceTaskIds=["task-of-nobody"],
            metadata={"m": 1},
        ),
        "configuration": {"acceptedOutputModes": ["text/plain"]},
        "metadata": {"r": {"some_key": 2}},
    }
    _result(_rpc(hub, f"/agents/{echo}", "SendMessage", params, **{"A2A-Extensions": "https://x.test/e"}))
    _, _, headers, body = stub.requests[-1]
    got = body["params"]
    assert (got["metadata"], got["configuration"]) == (params["metadata"], params["configuration"])
    for name in ("messageId", "role", "parts", "extensions", "referenceTaskIds"):
        assert got["message"][name] == params["message"][name]
    assert set(got["message"]["metadata"]) == {"m", "dragoman"}
    assert (headers["a2a-version"], headers["a2a-extensions"]) == ("1.0", "https://x.test/e")


@pytest.mark.req("O-09")
def test_a_send_waits_for_the_end_and_returns_at_once_when_asked(hub: HubProcess, caller: Caller) -> None:
    with agent() as stub:
        joined = _joined(hub, stub.card)
        first = caller.call(joined, Content(text="slow"), wait=False)
        assert first.state in ("submitted", "working")
        assert stub.arrived.wait(10)
        stub.release.set()
        done = eventually(lambda: _ended(caller.get(joined, first)), "the slow task is done")
        assert (done.state, done.content) == ("completed", (Content(text="slow"),))
        waited = caller.call(joined, Content(text="now"))
        assert (waited.state, waited.content) == ("completed", (Content(text="now"),))
        asked = caller.call(joined, Content(text="ask"))
        assert (asked.state, asked.message) == ("input-required", QUESTION)


def _ended(seen: Any) -> Any:
    return seen if seen.state in ("completed", "failed", "canceled", "rejected") else None


@pytest.mark.parametrize(("wish", "state"), [("fail", "failed"), ("reject", "rejected")])
def test_an_agent_that_fails_is_a_state_and_not_an_error(caller: Caller, echo: str, wish: str, state: str) -> None:
    seen = caller.call(echo, Content(text=wish))
    assert (seen.state, seen.message, seen.error, seen.status) == (state, FAILURE, None, 200)


@pytest.mark.req("O-12")
def test_a_task_goes_on_in_its_context_without_being_told_it(hub: HubProcess, stub: StubAgent, echo: str) -> None:
    asked = _sent(hub, echo, {"text": "ask"})
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    done = _sent(hub, echo, {"text": "the blue one"}, taskId=asked["id"])
    assert (done["id"], done["contextId"]) == (asked["id"], asked["contextId"])
    assert done["artifacts"][0]["parts"] == [{"text": "the blue one"}]
    carried = stub.requests[-1][3]["params"]["message"]
    assert carried["taskId"].startswith("remote:")
    again = _sent(hub, echo, {"text": "ask"}, contextId=asked["contextId"])
    assert (again["contextId"], again["id"] == asked["id"]) == (asked["contextId"], False)


@pytest.mark.req("O-10")
@pytest.mark.req("O-11")
@pytest.mark.req("O-13")
def test_a_message_into_a_wrong_task_is_refused(hub: HubProcess, echo: str) -> None:
    path = f"/agents/{echo}"
    unknown = _rpc(hub, path, "SendMessage", {"message": _message(taskId="task-nobody")})
    assert _error(unknown, -32001)["data"][0]["reason"] == "TASK_NOT_FOUND"
    by_path = hub.post(f"{path}/message:send", {"message": _message(taskId="task-nobody")}, V10)
    _http_error(by_path, 404, "NOT_FOUND", "TASK_NOT_FOUND")
    done = _sent(hub, echo)
    finished = _rpc(hub, path, "SendMessage", {"message": _message(taskId=done["id"])})
    assert _error(finished, -32004)["data"][0]["reason"] == "UNSUPPORTED_OPERATION"
    open_one = _sent(hub, echo, {"text": "ask"})
    mixed = _message(taskId=open_one["id"], contextId="of another")
    _error(_rpc(hub, path, "SendMessage", {"message": mixed}), -32602)


@pytest.mark.req("O-15")
def test_history_is_as_long_as_asked_in_send_get_and_list(hub: HubProcess, echo: str) -> None:
    path, context = f"/agents/{echo}", fresh("ctx")
    task = _sent(hub, echo, {"text": "ask"}, contextId=context)
    _sent(hub, echo, {"text": "done"}, taskId=task["id"])
    whole = _result(_rpc(hub, path, "GetTask", {"id": task["id"]}))["history"]
    assert len(whole) >= 2
    for length in (0, 1, 2, 50):
        expected = whole[len(whole) - min(length, len(whole)) :]
        for shown in (
            _result(_rpc(hub, path, "GetTask", {"id": task["id"], "historyLength": length})),
            hub.get(f"{path}/tasks/{task['id']}?historyLength={length}", V10).json,
            _result(_rpc(hub, path, "ListTasks", {"contextId": context, "historyLength": length}))["tasks"][0],
        ):
            assert shown.get("history", []) == expected
            assert ("history" in shown) is (length > 0)
    assert "history" not in _sent(hub, echo, configuration={"historyLength": 0})
    _error(_rpc(hub, path, "GetTask", {"id": task["id"], "historyLength": -1}), -32602)
    _http_error(hub.get(f"{path}/tasks?historyLength=-1", V10), 400, "INVALID_ARGUMENT", "INVALID_PARAMS")


@pytest.mark.req("O-21")
def test_a_task_is_cancelled_once(hub: HubProcess, caller: Caller) -> None:
    with agent() as stub:
        joined = _joined(hub, stub.card)
        first = caller.call(joined, Content(text="ask"))
        gone = caller.cancel(joined, first)
        assert (gone.state, gone.task_id) == ("canceled", first.task_id)
        assert stub.cancelled.wait(10)
        again = caller.cancel(joined, first)
        assert (again.error, again.status) in {(-32002, 200), ("TASK_NOT_CANCELABLE", 400)}
        assert caller.get(joined, first).state == "canceled"


def test_an_id_with_a_colon_is_an_id_and_the_verb_is_what_follows_the_last(hub: HubProcess, echo: str) -> None:
    for task in ("a:b", "a%3Ab", "cancel", "a:cancel"):
        reply = hub.post(f"/agents/{echo}/tasks/{task}:cancel", b"", V10)
        error = _http_error(reply, 404, "NOT_FOUND", "TASK_NOT_FOUND")
        assert task.replace("%3A", ":") in error["message"]


@pytest.mark.req("O-28")
@pytest.mark.req("O-30")
def test_tasks_are_listed_by_context_state_and_time_newest_first(hub: HubProcess, echo: str) -> None:
    context, path = fresh("ctx"), f"/agents/{echo}"
    made = [_sent(hub, echo, {"text": word}, contextId=context) for word in ("one", "ask", "two")]
    listed = _result(_rpc(hub, path, "ListTasks", {"contextId": context}))
    assert set(listed) == {"tasks", "nextPageToken", "pageSize", "totalSize"}
    assert (listed["nextPageToken"], listed["pageSize"], listed["totalSize"]) == ("", 50, 3)
    assert [task["id"] for task in listed["tasks"]] == [task["id"] for task in reversed(made)]
    assert all("artifacts" not in task for task in listed["tasks"])
    whole = _result(_rpc(hub, path, "ListTasks", {"contextId": context, "includeArtifacts": True}))
    assert [len(task["artifacts"]) for task in whole["tasks"]] == [1, 0, 1]
    by_state = hub.get(f"{path}/tasks?contextId={context}&status=TASK_STATE_INPUT_REQUIRED", V10).json
    assert [task["id"] for task in by_state["tasks"]] == [made[1]["id"]]
    since = made[2]["status"]["timestamp"]
    later = _result(_rpc(hub, path, "ListTasks", {"contextId": context, "statusTimestampAfter": since}))
    assert made[2]["id"] in [task["id"] for task in later["tasks"]]
    never = _result(
        _rpc(hub, path, "ListTasks", {"contextId": context, "statusTimestampAfter": "2099-01-01T00:00:00Z"})
    )
    assert (never["tasks"], never["totalSize"]) == ([], 0)


@pytest.mark.req("O-29")
def test_pages_visit_every_task_once_and_a_wrong_one_is_refused(hub: HubProcess, echo: str) -> None:
    context, path = fresh("ctx"), f"/agents/{echo}"
    made = {_sent(hub, echo, contextId=context)["id"] for _ in range(5)}
    seen: list[str] = []
    token = ""
    while True:
        asked = {"contextId": context, "pageSize": 2, "pageToken": token}
        page = _result(_rpc(hub, path, "ListTasks", asked))
        assert (page["pageSize"], page["totalSize"]) == (2, 5)
        seen += [task["id"] for task in page["tasks"]]
        token = page["nextPageToken"] or ""
        if not token:
            break
        foreign = _rpc(hub, path, "ListTasks", {"contextId": "another", "pageToken": token})
        _error(foreign, -32602)
    assert (len(seen), set(seen)) == (5, made)
    for wrong in ({"pageSize": 0}, {"pageSize": 101}, {"pageToken": "rubbish"}, {"status": "TASK_STATE_NONE"}):
        error = _error(_rpc(hub, path, "ListTasks", wrong), -32602)
        assert error["data"][1]["fieldViolations"][0]["field"] in wrong


@pytest.mark.req("O-31")
def test_another_principals_tasks_look_as_if_they_were_not(hub: HubProcess, echo: str) -> None:
    task = _sent(hub, echo, {"text": "ask"}, contextId=fresh("ctx"))
    other, path = hub.new_key("a2a:call"), f"/agents/{echo}"
    for method in ("GetTask", "CancelTask"):
        theirs = _error(_rpc(hub, path, method, {"id": task["id"]}, other), -32001)
        nobodys = _error(_rpc(hub, path, method, {"id": "task-nobody"}, other), -32001)
        assert theirs["message"].replace(task["id"], "X") == nobodys["message"].replace("task-nobody", "X")
    listed = _result(_rpc(hub, path, "ListTasks", {"contextId": task["contextId"]}, other))
    assert (listed["tasks"], listed["totalSize"]) == ([], 0)
    into = {"message": _message(taskId=task["id"])}
    _error(_rpc(hub, path, "SendMessage", into, other), -32001)
    assert hub.get(f"{path}/tasks/{task['id']}", V10, other).status == 404


@pytest.mark.req("O-04")
def test_a_tenant_selects_the_agent_in_the_body_or_in_the_path(hub: HubProcess, stub: StubAgent, echo: str) -> None:
    task = _result(_rpc(hub, "/", "SendMessage", {"tenant": echo, "message": _message()}))["task"]
    assert _result(_rpc(hub, "/", "GetTask", {"tenant": echo, "id": task["id"]}))["id"] == task["id"]
    by_path = hub.post(f"/{echo}/message:send", {"message": _message()}, V10)
    assert by_path.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert hub.get(f"/{echo}/tasks/{task['id']}", V10).json["id"] == task["id"]
    assert hub.get(f"/{echo}/tasks", V10).status == 200
    _error(_rpc(hub, "/", "SendMessage", {"tenant": "nobody-here", "message": _message()}), -32000, 404)
    with agent("Tenants", "HTTP+JSON", tenant="acme co") as other:
        joined = _joined(hub, other.card)
        assert _sent(hub, joined)["status"]["state"] == "TASK_STATE_COMPLETED"
        assert other.requests[-1][1] == "/acme%20co/message:send"
    with agent("Tenants", "JSONRPC", tenant="acme co") as other:
        joined = _joined(hub, other.card)
        assert _sent(hub, joined)["status"]["state"] == "TASK_STATE_COMPLETED"
        assert other.requests[-1][3]["params"]["tenant"] == "acme co"


@pytest.mark.req("O-05")
def test_errors_are_http_200_save_those_of_the_hub_itself(hub: HubProcess, echo: str) -> None:
    path = f"/agents/{echo}"
    _error(_rpc(hub, path, "GetTask", {"id": "task-nobody"}), -32001)
    _error(_rpc(hub, path, "Nothing"), -32601)
    _error(hub.post(path, b"{", V10), -32700)
    batch = hub.post(path, [{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}], V10)
    assert (batch.status, batch.json["id"], batch.json["error"]["code"]) == (200, None, -32600)
    _error(_rpc(hub, "/agents/nobody-here", "GetTask", {"id": "x"}), -32000, 404)
    wrong = _rpc(hub, path, "GetTask", {"id": "x"}, "ap_wrong")
    assert (wrong.status, wrong.json["error"]["code"]) == (401, -32000)
    assert wrong.headers["www-authenticate"].startswith("Bearer resource_metadata=")
    no_scope = _rpc(hub, path, "SendMessage", {"message": _message()}, hub.new_key("a2a:register"))
    assert (no_scope.status, no_scope.json["error"]["code"]) == (403, -32000)


@pytest.mark.req("O-06")
def test_names_may_have_underscores_and_a_wrong_enum_is_named(hub: HubProcess, echo: str) -> None:
    snake = {"message": {"message_id": "m", "role": "ROLE_USER", "parts": [{"data": {"a_b": 1}}], "new": 1}, "x": {}}
    task = _result(_rpc(hub, f"/agents/{echo}", "SendMessage", snake))["task"]
    assert task["artifacts"][0]["parts"] == [{"data": {"a_b": 1}}]
    shown = json.dumps(task)
    assert '"kind"' not in shown
    assert _nulls_and_empties(task) == []
    for role in ("user", "ROLE_ROBOT", "ROLE_UNSPECIFIED", 9):
        error = _error(_rpc(hub, f"/agents/{echo}", "SendMessage", {"message": _message(role=role)}), -32602)
        assert error["data"][1]["fieldViolations"][0]["field"] == "message.role"


def _nulls_and_empties(value: Any, path: str = "") -> list[str]:
    if value is None or value in ("", [], {}):
        return [path]
    if is_object(value):
        return [found for name, each in value.items() for found in _nulls_and_empties(each, f"{path}.{name}")]
    return [found for each in value for found in _nulls_and_empties(each, path)] if is_array(value) else []


@pytest.mark.req("O-23")
def test_an_extended_card_is_refused_by_what_the_agent_declares(hub: HubProcess, stub: StubAgent, echo: str) -> None:
    undeclared = _error(_rpc(hub, f"/agents/{echo}", "GetExtendedAgentCard"), -32004)
    assert undeclared["data"][0]["reason"] == "UNSUPPORTED_OPERATION"
    _http_error(hub.get(f"/agents/{echo}/extendedAgentCard", V10), 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION")
    declared = _joined(hub, {**stub.card, "capabilities": {"extendedAgentCard": True}})
    assert hub.get(f"/agents/{declared}/.well-known/agent-card.json", V10).json["capabilities"]["extendedAgentCard"]
    none = _error(_rpc(hub, f"/agents/{declared}", "GetExtendedAgentCard"), -32007)
    assert none["data"][0]["reason"] == "EXTENDED_AGENT_CARD_NOT_CONFIGURED"


@pytest.mark.req("O-25")
def test_an_error_carries_its_name_and_the_fields_that_were_wrong(hub: HubProcess, echo: str) -> None:
    error = _error(_rpc(hub, f"/agents/{echo}", "SendMessage", {"message": {"messageId": "m", "role": 1}}), -32602)
    info, request = error["data"]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert (info["reason"], info["domain"]) == ("INVALID_PARAMS", "a2a-protocol.org")
    assert request["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert request["fieldViolations"] == [{"field": "message.parts", "description": "required"}]


@pytest.mark.req("O-26")
def test_over_http_each_error_has_its_status(hub: HubProcess, echo: str) -> None:
    base = f"/agents/{echo}"
    _http_error(hub.get(f"{base}/tasks/task-nobody", V10), 404, "NOT_FOUND", "TASK_NOT_FOUND")
    done = _sent(hub, echo)
    late = hub.post(f"{base}/tasks/{done['id']}:cancel", b"", V10)
    _http_error(late, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE")
    again = hub.post(f"{base}/message:send", {"message": _message(taskId=done["id"])}, V10)
    _http_error(again, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION")
    wrong = _http_error(hub.post(f"{base}/message:send", {}, V10), 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
    assert wrong["details"][1]["fieldViolations"] == [{"field": "message", "description": "required"}]
    _http_error(hub.post(f"{base}/message:send", b"{", V10), 400, "INVALID_ARGUMENT", "PARSE_ERROR")
    _http_error(hub.get("/agents/nobody-here/tasks", V10), 404, "NOT_FOUND", "AGENT_NOT_FOUND")
    _http_error(hub.get(f"{base}/tasks", V10, "ap_wrong"), 401, "UNAUTHENTICATED", "AUTHORIZATION_ERROR")


@pytest.mark.req("O-35")
def test_the_1_0_card_is_complete_and_pure_where_1_0_is_said(hub: HubProcess, echo: str) -> None:
    base = f"{hub.url.replace('127.0.0.1', 'localhost')}/agents/{echo}/"
    for path, headers in ((f"/agents/{echo}", V10), (f"/agents/{echo}/a2a-1.0", {})):
        for name in ("agent-card.json", "agent.json"):
            reply = hub.get(f"{path}/.well-known/{name}", {**headers, "Authorization": ""})
            card = reply.json
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            assert set(card) >= {"name", "description", "version", "capabilities", "skills", "supportedInterfaces"}
            assert card["defaultInputModes"] == card["defaultOutputModes"] == ["text/plain", "application/json"]
            assert not {"url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"} & set(card)
            found = [(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"]]
            assert found == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")]
            assert {each["url"] for each in card["supportedInterfaces"]} <= {base, f"{hub.url}/agents/{echo}/"}
            assert _nulls_and_empties(card) == []


@pytest.mark.req("O-36")
def test_otherwise_the_card_is_of_both_versions(hub: HubProcess, echo: str) -> None:
    for headers in ({}, {"A2A-Version": "0.3"}):
        card = hub.get(f"/agents/{echo}/.well-known/agent-card.json", headers).json
        assert (card["protocolVersion"], card["preferredTransport"]) == ("0.3.0", "JSONRPC")
        assert {"url": card["url"], "transport": "JSONRPC"} in card["additionalInterfaces"]
        assert [each["protocolVersion"] for each in card["supportedInterfaces"]] == ["1.0", "1.0", "0.3", "0.3"]
        for scheme in card["securitySchemes"].values():
            assert "type" in scheme
            assert any(name.endswith("SecurityScheme") for name in scheme)


def test_the_interfaces_of_the_card_are_where_the_agent_answers(hub: HubProcess, echo: str) -> None:
    card = hub.get(f"/agents/{echo}/.well-known/agent-card.json", V10).json
    by_binding = {each["protocolBinding"]: each["url"] for each in card["supportedInterfaces"]}
    path = "/" + by_binding["JSONRPC"].split("/", 3)[3]
    assert _result(_rpc(hub, path, "SendMessage", {"message": _message()}))["task"]
    path = "/" + by_binding["HTTP+JSON"].rstrip("/").split("/", 3)[3]
    assert hub.post(f"{path}/message:send", {"message": _message()}, V10).json["task"]


@pytest.mark.req("O-37")
def test_a_card_that_is_known_is_not_sent_again(hub: HubProcess, echo: str) -> None:
    path = f"/agents/{echo}/.well-known/agent-card.json"
    first = hub.get(path, V10)
    assert first.headers["cache-control"] == "public, max-age=60"
    assert first.headers["vary"] == "A2A-Version"
    assert first.headers["last-modified"].endswith(" GMT")
    tag = first.headers["etag"]
    again = hub.get(path, {**V10, "If-None-Match": tag})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    merged = hub.get(path, {"If-None-Match": tag})
    assert (merged.status, merged.headers["etag"] == tag) == (200, False)


@pytest.mark.req("O-39")
def test_the_version_is_said_by_header_or_query_and_none_means_0_3(hub: HubProcess, echo: str) -> None:
    path, params = f"/agents/{echo}", {"message": _message()}
    for said in ("", "0.3", "1.1", "2.0", "0.2", "x"):
        error = _error(_rpc(hub, path, "SendMessage", params, **{"A2A-Version": said}), -32009)
        assert "A2A-Version: 1.0" in error["message"]
        _http_error(
            hub.get(f"{path}/tasks", {"A2A-Version": said}), 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"
        )
    for said in ("1.0", "1.0.1"):
        assert _result(_rpc(hub, path, "SendMessage", params, **{"A2A-Version": said}))
    assert _result(_rpc(hub, f"{path}?A2A-Version=1.0", "SendMessage", params, **{"A2A-Version": ""}))
    assert hub.get(f"{path}/tasks?A2A-Version=1.0").status == 200


@pytest.mark.req("O-40")
def test_http_answers_in_the_media_type_it_was_asked_in(hub: HubProcess, echo: str) -> None:
    path, body = f"/agents/{echo}/message:send", {"message": _message()}
    for given, accept, expected in (
        ("application/json", "", "application/json"),
        ("application/a2a+json", "", "application/a2a+json"),
        ("application/json", "application/a2a+json", "application/a2a+json"),
        ("application/json", "application/json, application/a2a+json", "application/json"),
    ):
        reply = hub.post(path, body, {**V10, "Content-Type": given, "Accept": accept})
        assert (reply.status, reply.headers["content-type"]) == (200, expected)
    refused = hub.post(path, {}, {**V10, "Content-Type": "application/a2a+json"})
    assert (refused.status, refused.headers["content-type"]) == (400, "application/json")


@pytest.mark.req("O-41")
def test_a_wrong_media_type_is_refused_before_anything_is_parsed(hub: HubProcess, echo: str) -> None:
    path = f"/agents/{echo}"
    framed = b'{"jsonrpc":"2.0","id":"r1","method":"SendMessage"}'
    reply = hub.post(path, framed, {**V10, "Content-Type": "text/plain"})
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (200, -32005, None)
    for body in (b"{", framed):
        mount = hub.post(f"{path}/a2a-1.0", body, {"Content-Type": "text/plain"})
        assert (mount.status, mount.json["error"]["code"]) == (200, -32005)
        by_path = hub.post(f"{path}/message:send", body, {**V10, "Content-Type": "text/plain"})
        _http_error(by_path, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
    unsaid = hub.post(path, b"{", {"Content-Type": "text/plain"})
    assert (unsaid.status, unsaid.json["error"]["code"]) == (415, -32600)


@pytest.mark.req("X-09")
def test_the_mount_speaks_1_0_alone(hub: HubProcess, echo: str) -> None:
    mount = f"/agents/{echo}/a2a-1.0"
    for path in (mount, f"{mount}/"):
        assert _result(_rpc(hub, path, "SendMessage", {"message": _message()}))["task"]
    assert hub.post(f"{mount}/message:send", {"message": _message()}, V10).json["task"]
    for method in ("message/send", "message.send", "tasks/get", "a2a/task"):
        _error(_rpc(hub, mount, method, {}), -32601)


@pytest.mark.req("X-19")
def test_a_key_makes_a_send_repeatable_and_a_message_id_does_not(hub: HubProcess, echo: str) -> None:
    path, params = f"/agents/{echo}", {"message": _message()}
    fresh_ones = {_result(_rpc(hub, path, "SendMessage", params))["task"]["id"] for _ in range(2)}
    assert len(fresh_ones) == 2
    key = {"Idempotency-Key": fresh("key")}
    same = {_result(_rpc(hub, path, "SendMessage", params, **key))["task"]["id"] for _ in range(2)}
    assert len(same) == 1
    _error(_rpc(hub, path, "SendMessage", {"message": _message({"text": "other"})}, **key), -32602)


def test_a_request_without_an_id_is_carried_out_and_not_answered(hub: HubProcess) -> None:
    with agent() as stub:
        joined = _joined(hub, stub.card)
        frame = {"jsonrpc": "2.0", "method": "SendMessage", "params": {"message": _message()}}
        reply = hub.post(f"/agents/{joined}", frame, V10)
        assert (reply.status, reply.body) == (204, b"")
        assert stub.arrived.wait(10)


@pytest.mark.parametrize("binding", BINDINGS)
def test_an_agent_is_called_in_the_framing_its_card_prefers(hub: HubProcess, binding: str) -> None:
    other = next(each for each in BINDINGS if each != binding)
    with agent("Prefers", binding, other) as stub:
        joined = _joined(hub, stub.card)
        caller = A2AV10Caller(hub.url, hub.token or "", other)
        assert caller.call(joined, Content(text="hello")).content == (Content(text="hello"),)
        assert stub.requests[-1][1] == ("/" if binding == "JSONRPC" else "/message:send")
        asked = caller.call(joined, Content(text="ask"))
        done = caller.follow_up(joined, asked, Content(text="that"))
        assert (done.state, done.content) == ("completed", (Content(text="that"),))


def test_an_agent_that_speaks_http_alone_is_polled_and_cancelled(hub: HubProcess) -> None:
    with agent("Paths", "HTTP+JSON") as stub:
        joined = _joined(hub, stub.card)
        caller = A2AV10Caller(hub.url, hub.token or "")
        first = caller.call(joined, Content(text="slow"), wait=False)

        def polled() -> bool:
            return any(verb == "GET" and "/tasks/remote%3A1" in path for verb, path, _, _ in stub.requests)

        eventually(polled, "the hub asks after the task")
        assert caller.cancel(joined, first).state == "canceled"
        assert stub.cancelled.wait(10)
