"""The hub as an MCP server: every skill as a tool, over streamable HTTP, for clients of both kinds of revisions."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import eventually, fresh, holds, join, skill, tracebacks
from tests.support.hub import HubProcess, running_hub
from tests.support.mcp_client import ALONE, BOTH, SESSIONS, McpClient, last_message, words
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.speaking import FAILURE, QUESTION
from tests.support.sse_client import sse
from tests.support.streaming_agent import streaming_agent

THREE: Final = ("platform", "a2a-1.0", "agentvault")
BOTH_KINDS: Final = pytest.mark.parametrize("version", [SESSIONS, ALONE])
PAIR: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


# -- tools


@BOTH_KINDS
@pytest.mark.parametrize("slug", THREE)
def test_a_skill_of_any_dialect_is_a_tool_that_answers(everyone: Everyone, version: str, slug: str) -> None:
    client, agent = McpClient(everyone.hub, version), everyone.agent(slug)
    tool = client.tool_of(agent.id)
    assert tool["inputSchema"]["type"] == "object"
    assert agent.id in tool["description"]
    told = {"text": "hello"} if slug == "platform" else {"message": "hello"}
    result = client.call(tool["name"], told)
    assert (result["isError"], words(result)) == (False, '{"text":"hello"}' if slug == "platform" else "hello")
    assert result["_meta"]["dragoman/call"]["state"] == "completed"
    call = everyone.hub.get(f"/v1/calls/{result['_meta']['dragoman/call']['id']}").json
    assert (call["dialect"], call["agent"], call["status"]) == ("mcp", agent.id, "completed")


@BOTH_KINDS
def test_schemas_and_structured_answers_are_the_skills_own(hub: HubProcess, agent: PlatformAgent, version: str) -> None:
    skills = [skill("pair", input_schema=PAIR, output_schema=PAIR, idempotent=True)]
    name = f"{join(hub, agent, skills=skills)['id']}__pair"
    client = McpClient(hub, version)
    tool = client.tools()[name]
    assert (tool["inputSchema"], tool["outputSchema"]) == (PAIR, PAIR)
    assert tool["annotations"]["idempotentHint"] is True
    assert "It says: " in tool["description"]
    result = client.call(name, {"n": 2})
    assert result["structuredContent"] == {"n": 2}
    assert json.loads(words(result)) == {"n": 2}


@BOTH_KINDS
def test_what_goes_wrong_in_a_tool_is_its_result(everyone: Everyone, version: str) -> None:
    hub, client = everyone.hub, McpClient(everyone.hub, version)
    broken = client.call(client.tool_of(everyone.agent("a2a-1.0").id)["name"], {"message": "fail"})
    assert broken["isError"] is True
    assert broken["_meta"]["dragoman/error"]["code"] == "AGENT_ERROR"
    assert FAILURE in words(broken)
    with platform_agent() as agent:
        name = f"{join(hub, agent, skills=[skill('pair', input_schema=PAIR)])['id']}__pair"
    refused = client.call(name, {"n": "two"})
    assert refused["_meta"]["dragoman/error"]["code"] == "VALIDATION_ERROR"
    assert "n: " in words(refused)
    gone = client.call(name, {"n": 2})
    assert gone["_meta"]["dragoman/error"]["code"] == "AGENT_UNAVAILABLE"
    assert gone["_meta"]["dragoman/error"]["retryable"] is True


def test_a_client_answers_what_an_agent_asks(everyone: Everyone) -> None:
    client = McpClient(everyone.hub)
    asked = client.call(client.tool_of(everyone.agent("a2a-1.0").id)["name"], {"message": "ask"})
    assert asked["isError"] is True
    assert QUESTION in words(asked)
    call = asked["_meta"]["dragoman/call"]
    assert call["state"] == "input-required"
    answered = client.call("dragoman__answer", {"call_id": call["id"], "message": "the red one"})
    assert (answered["isError"], words(answered)) == (False, "the red one")
    unknown = client.call("dragoman__answer", {"call_id": "mcp-nothing", "message": "x"})
    assert unknown["_meta"]["dragoman/error"]["code"] == "TASK_NOT_FOUND"


def test_names_that_do_not_fit_are_changed_and_found_again(hub: HubProcess, agent: PlatformAgent) -> None:
    long = f"agt.{fresh()}.{'x' * 90}"
    skills = [skill("text.say"), skill("text say"), skill("z" * 100)]
    join(hub, agent, id=long, skills=skills)
    short = join(hub, agent, skills=[skill("text.say")])["id"]
    tools = [name for name in McpClient(hub).tools() if "text" in name or "zzz" in name]
    assert len(tools) == 4
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in tools)
    for name in tools:
        assert words(McpClient(hub).call(name, {"a": 1})) == '{"a":1}'
    assert sorted({call["target_agent_id"] for _, _, call in agent.requests}) == sorted((long, short))
    assert {call["skill"] for _, _, call in agent.requests} == {"text.say", "text say", "z" * 100}


def test_a_long_list_comes_in_pages(hub: HubProcess, agent: PlatformAgent) -> None:
    mine = {f"{join(hub, agent)['id']}__echo" for _ in range(51)}
    client = McpClient(hub)
    assert "nextCursor" in client.result("tools/list")
    assert mine <= client.tools().keys()
    assert client.error("tools/list", {"cursor": "rubbish"})["code"] == -32602


# -- progress and cancelling


@BOTH_KINDS
def test_progress_is_told_as_it_comes_and_the_result_last(hub: HubProcess, version: str) -> None:
    with streaming_agent() as teller:
        agent = hub.register(teller.card(fresh()))["id"]
        client = McpClient(hub, version)
        with client.calling(f"{agent}__tell", token="mine") as stream:
            work, items = teller.next_call(), iter(stream)
            if version == SESSIONS:
                next(items)  # a place to come back to
            work.say("progress", {"progress": 0.25, "message": "a quarter"})
            first = next(items).data
            work.say("progress", {"message": "still at it"})
            second = next(items).data
            work.complete({"done": True})
            last = next(items).data
            assert list(items) == []
    assert first["method"] == second["method"] == "notifications/progress"
    assert first["params"] == {"progressToken": "mine", "progress": 0.25, "total": 1, "message": "a quarter"}
    assert second["params"]["message"] == "still at it"
    assert 0.25 < second["params"]["progress"] < 1
    assert (last["id"], last["result"]["structuredContent"]) == (7, {"done": True})


def test_who_wants_no_progress_is_told_none(hub: HubProcess) -> None:
    with streaming_agent() as teller:
        agent = hub.register(teller.card(fresh()))["id"]
        with McpClient(hub, "2025-03-26").calling(f"{agent}__tell") as stream:
            work = teller.next_call()
            work.say("progress", {"progress": 0.25, "message": "a quarter"})
            work.complete({"done": True})
            (only,) = stream
    assert only.data["result"]["isError"] is False


def test_a_call_is_cancelled_by_a_notification_of_its_own_session_alone(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = f"{join(hub, agent)['id']}__echo"
    client, other = McpClient(hub), McpClient(hub)
    with client.calling(name, {"a": 1}, request_id=41) as stream:
        assert agent.arrived.wait(10)
        assert other.notify("notifications/cancelled", {"requestId": 41}).status == 202
        assert client.notify("notifications/cancelled", {"requestId": 40}).status == 202
        assert not agent.cancelled.wait(0.1)
        assert client.notify("notifications/cancelled", {"requestId": 41, "reason": "enough"}).status == 202
        *_, last = stream
    assert agent.cancelled.wait(10)
    assert last.data["result"]["_meta"]["dragoman/call"]["state"] == "canceled"
    assert client.notify("notifications/cancelled", {"requestId": 41}).status == 202


def test_who_leaves_a_stream_cancels_only_where_no_session_could_tell(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = f"{join(hub, agent)['id']}__echo"
    with McpClient(hub).calling(name, {"a": 1}):
        assert agent.arrived.wait(10)
    assert not agent.cancelled.wait(0.1)
    agent.arrived.clear()
    with McpClient(hub, ALONE).calling(name, {"a": 2}):
        assert agent.arrived.wait(10)
    assert agent.cancelled.wait(10)


def test_a_client_that_lost_its_stream_comes_back_for_the_rest(hub: HubProcess) -> None:
    with streaming_agent() as teller:
        agent = hub.register(teller.card(fresh()))["id"]
        client = McpClient(hub)
        with client.calling(f"{agent}__tell", token=5, request_id=12) as stream:
            place = stream.take(1)[0].id
            work = teller.next_call()
        work.say("progress", {"progress": 0.5})
        work.complete({"done": True})
        with client.listening(after=place) as stream:
            *told, last = [item.data for item in stream]
    assert [each["params"]["progressToken"] for each in told] == [5]
    assert (last["id"], last["result"]["structuredContent"]) == (12, {"done": True})


@pytest.mark.full
def test_the_next_hub_knows_sessions_places_and_tools_of_the_one_before(tmp_path: Path, agent: PlatformAgent) -> None:
    """Nobody has to list its tools anew, or to open a session: neither was kept by the first hub either."""
    with running_hub(tmp_path / "data", auth="none") as hub:
        join(hub, agent, id=f"agt.{'y' * 90}")
        client = McpClient(hub)
        name = next(name for name in client.tools() if name.startswith("agt_"))
        with client.calling(name, {"a": 1}) as stream:
            *_, place, last = list(stream)
        hub.stop()
        hub.start()
        assert words(client.call(name, {"a": 1})) == '{"a":1}'
        assert client.error("tools/call", {"name": f"{name[:-1]}x"})["code"] == -32602
        with client.listening(after=place.id) as stream:
            assert [item.data for item in stream][-1] == last.data
        assert tracebacks(hub) == []


# -- changes


def test_a_session_hears_of_agents_that_come(hub: HubProcess, agent: PlatformAgent) -> None:
    with McpClient(hub).listening() as stream:
        join(hub, agent)
        assert next(iter(stream)).data == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def test_a_subscription_is_acknowledged_and_hears_under_its_id(hub: HubProcess, agent: PlatformAgent) -> None:
    client = McpClient(hub, ALONE)
    body = client.body("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 9)
    headers = {**client.headers("subscriptions/listen"), "Authorization": f"Bearer {hub.token}"}
    with sse(f"{hub.url}/mcp", body, headers=headers) as stream:
        items = iter(stream)
        first = next(items).data
        join(hub, agent)
        second = next(items).data
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert second["method"] == "notifications/tools/list_changed"
    assert second["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 9}


# -- sessions and revisions


def test_a_session_that_was_ended_or_never_began_is_refused(hub: HubProcess) -> None:
    client = McpClient(hub)
    assert client.result("ping") == {}
    assert hub.request("DELETE", "/mcp", headers=client.headers()).status == 204
    assert client.post("ping").status == 404
    client.session = "somebody-elses"
    assert client.post("ping").status == 404
    assert hub.request("DELETE", "/mcp").status == 400


@pytest.mark.parametrize("asked", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_revision_that_a_client_asks_for_is_spoken(hub: HubProcess, asked: str) -> None:
    said = McpClient(hub, greets=False).result("initialize", {"protocolVersion": asked})
    assert said["protocolVersion"] == asked
    assert said["capabilities"] == {"tools": {"listChanged": True}}


def test_a_revision_that_nobody_speaks_is_met_with_those_that_are(hub: HubProcess) -> None:
    said = McpClient(hub, greets=False).result("initialize", {"protocolVersion": "1999-01-01"})
    assert said["protocolVersion"] == SESSIONS
    error = McpClient(hub, "1999-01-01", greets=False).error("ping", status=400)
    assert (error["code"], error["data"]["requested"]) == (-32022, "1999-01-01")
    assert ALONE in error["data"]["supported"]


# -- who calls


def test_who_has_no_key_sees_and_uses_open_agents_alone(tmp_path: Path, agent: PlatformAgent) -> None:
    with running_hub(tmp_path / "data") as hub:
        closed = join(hub, agent, skills=[{"name": "echo", "description": "Takes words"}])["id"]
        nobody = {"Authorization": ""}
        for method in ("initialize", "ping", "tools/list", "tools/call"):
            params = {"protocolVersion": SESSIONS, "name": f"{closed}__echo"}
            reply = McpClient(hub, greets=False).post(method, params, **nobody)
            assert reply.status == 401, method
            assert "resource_metadata=" in reply.headers["www-authenticate"]
        opened = join(hub, agent, id="agt_open", authentication={"type": "none"})["id"]
        hub.request("PATCH", f"/v1/agents/{opened}", {"open": True})
        listed = McpClient(hub, greets=False).post("tools/list", {}, **nobody).json["result"]["tools"]
        assert [tool["name"] for tool in listed] == [f"{opened}__echo", "dragoman__answer"]
        used = McpClient(hub, greets=False).post("tools/call", {"name": f"{opened}__echo"}, **nobody)
        assert last_message(used)["result"]["isError"] is False
        for name in (f"{closed}__echo", "agt_nothing__echo"):
            reply = McpClient(hub, greets=False).post("tools/call", {"name": name}, **nobody)
            assert (reply.status, b"nothing" in reply.body) == (401, False)
        assert tracebacks(hub) == []


def test_a_key_lists_and_calls_what_it_may_use_in_its_own_tenant(hub: HubProcess, agent: PlatformAgent) -> None:
    anybodys: dict[str, Any] = {"type": "bearer", "scopes_required": []}
    mine = join(hub, agent, skills=[skill("a"), skill("b")], authentication=anybodys)["id"]
    narrow = McpClient(hub, token=hub.new_key("a2a:call", allow=[f"{mine}:a"]))
    assert [name for name in narrow.tools() if name.startswith(mine)] == [f"{mine}__a"]
    assert narrow.call(f"{mine}__a", {})["isError"] is False
    assert narrow.post("tools/call", {"name": f"{mine}__b"}).status == 403
    looker = McpClient(hub, token=hub.new_key("weather"))
    assert set(looker.tools()) == {"dragoman__answer"}
    assert looker.post("tools/call", {"name": f"{mine}__a"}).status == 403
    stranger = McpClient(hub, token=hub.new_key("a2a:call", tenant="elsewhere"))
    assert set(stranger.tools()) == {"dragoman__answer"}
    assert stranger.error("tools/call", {"name": f"{mine}__a"})["code"] == -32602


def test_a_call_belongs_to_the_trace_that_it_names(everyone: Everyone) -> None:
    hub, agent = everyone.hub, everyone.agent("platform")
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    meta = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    params = {"name": f"{agent.id}__echo", "arguments": {"message": "x"}, "_meta": meta}
    reply = McpClient(hub).post("tools/call", params)
    assert reply.headers["x-trace-id"] == f"trace_{trace}"
    headers, body = agent.came
    assert trace in headers["traceparent"]
    assert "traceparent" not in json.dumps(body)


# -- rubbish


RUBBISH: Final[list[tuple[Any, int, int]]] = [
    (b"{", 400, -32700),
    (b"[]", 400, -32600),
    (b"\xff", 400, -32700),
    ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], 400, -32600),
    ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, -32600),
    ({"jsonrpc": "2.0", "id": None, "method": "ping"}, 400, -32600),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, 400, -32600),
    ({"jsonrpc": "2.0", "id": "x" * 300, "method": "ping"}, 400, -32600),
    ({"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, 200, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "nothing/such"}, 200, -32601),
    ({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}, 200, -32601),
    ({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, 200, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": 3}}, 200, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, 200, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 300}}, 200, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a__b", "arguments": [1]}}, 200, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\u0000 ✓"}}, 200, -32602),
]


@pytest.mark.parametrize(("body", "status", "code"), RUBBISH)
def test_rubbish_is_told_what_is_wrong_with_it(hub: HubProcess, body: Any, status: int, code: int) -> None:
    reply = hub.post("/mcp", body, {"Accept": BOTH})
    assert (reply.status, reply.json["error"]["code"]) == (status, code), reply.body


def test_headers_that_say_something_else_than_the_body_are_refused(hub: HubProcess) -> None:
    client = McpClient(hub, ALONE)
    assert client.result("server/discover")["supportedVersions"] == [ALONE]
    assert client.post("ping", Mcp_Method="tools/list").json["error"]["code"] == -32020
    assert client.post("tools/call", {"name": "a__b"}, Mcp_Name="c__d").json["error"]["code"] == -32020
    bare = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    reply = hub.post("/mcp", bare, client.headers("ping"))
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)
    unknown = client.post("nothing/such")
    assert (unknown.status, unknown.json["error"]["code"]) == (404, -32601)
    assert hub.get("/mcp", client.headers()).status == 404


def test_other_bodies_and_methods_are_refused(hub: HubProcess) -> None:
    assert hub.post("/mcp", b"x=1", {"Content-Type": "text/plain"}).status in (400, 415)
    assert hub.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"Content-Type": "text/plain"}).status == 415
    assert hub.request("PUT", "/mcp", {}).status == 404
    assert hub.get("/mcp").status == 400
    assert hub.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/anything"}).status == 202
    eventually(lambda: hub.get("/readyz").status == 200, "the hub is still there")
