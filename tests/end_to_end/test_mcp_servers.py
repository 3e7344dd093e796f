"""An MCP server at a real hub: its tools are an agent's skills, called in a session or without, as it speaks."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.end_to_end.world import fresh
from tests.support.hub import HubProcess
from tests.support.mcp_server import ALONE, SESSIONS, McpServer, mcp_server
from tests.support.sse_client import sse
from tests.support.stub_server import StubHandler, on_free_port

KEY: Final = "shed-key"


@pytest.fixture(params=[SESSIONS, ALONE])
def server(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    with mcp_server(request.param) as server:
        yield server


def taken_in(hub: HubProcess, server: McpServer, **more: Any) -> str:
    """Register a server, and the agent's id."""
    answer = hub.register(None, url=server.url, dialect="mcp", **{"id": fresh("shed"), **more})
    assert answer["dialect"] == "mcp"
    agent: str = answer["id"]
    server.requests.clear()
    return agent


def asked(agent: str, skill: str, **more: Any) -> dict[str, Any]:
    """A call, in the platform's words."""
    return {"target_agent_id": agent, "skill": skill, "input": {}, **more}


def called(hub: HubProcess, agent: str, skill: str, **more: Any) -> Any:
    """What came of it."""
    return hub.post("/v1/a2a/call", asked(agent, skill, **more)).json


# -- taken in


def test_tools_are_the_skills_of_an_agent_with_their_schemas(hub: HubProcess, server: McpServer) -> None:
    agent = taken_in(hub, server)
    card = hub.get(f"/v1/a2a/agents/{agent}/card").json
    skills = {each["name"]: each for each in card["skills"]}
    assert list(skills) == [tool["name"] for tool in server.tools]
    assert skills["ask"]["input_schema"] == server.tools[-1]["inputSchema"]
    shown = hub.get(f"/v1/agents/{agent}").json
    assert (shown["name"], shown["version"]) == ("Tool Shed", "3.0")
    assert server.sessions == set()  # that in which it was asked is over


def test_a_server_that_wants_a_key_gets_the_one_that_was_stored_for_it(hub: HubProcess) -> None:
    with mcp_server(SESSIONS, key=KEY) as server:
        refused = hub.post("/v1/a2a/registry", {"url": server.url, "dialect": "mcp"})
        assert refused.status == 400
        agent = taken_in(hub, server, credentials={"type": "bearer", "token": KEY})
        assert called(hub, agent, "echo", input={"n": 1})["result"] == {"n": 1}
        assert all(headers["authorization"] == f"Bearer {KEY}" for headers, _ in server.requests)
        assert str(hub.token) not in json.dumps(server.requests)


def test_what_is_no_mcp_server_is_told_so(hub: HubProcess) -> None:
    class Handler(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
            self.read_body()
            self.say(200, {}, b"{}")

    with on_free_port(Handler) as url:
        reply = hub.post("/v1/a2a/registry", {"url": url, "dialect": "mcp"})
    assert reply.status == 400
    assert "initialize" in json.dumps(reply.json)


def test_a_second_look_takes_the_tools_that_there_are_now(hub: HubProcess, server: McpServer) -> None:
    agent = taken_in(hub, server)
    server.tools = [{"name": "later", "inputSchema": {"type": "object"}}, server.tools[0]]
    assert hub.post(f"/v1/agents/{agent}/probe", {}).status == 200
    skills = hub.get(f"/v1/a2a/agents/{agent}/card").json["skills"]
    assert [each["name"] for each in skills] == ["later", "echo"]
    assert called(hub, agent, "echo", input={"n": 1})["result"] == {"n": 1}
    assert called(hub, agent, "tell")["error"]["code"] == "SKILL_NOT_FOUND"


def test_a_tool_whose_arguments_stand_in_headers_is_called_in_a_session(hub: HubProcess) -> None:
    """The hub knows no schema when it puts a call into words; in a session none is needed."""
    with mcp_server(SESSIONS) as server:
        wanted = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
        server.tools = [{"name": "echo", "inputSchema": wanted}]
        server.both = True
        agent = taken_in(hub, server)
        assert called(hub, agent, "echo", input={"n": 1})["result"] == {"n": 1}
        assert server.requests[0][1]["method"] == "initialize"


# -- called


def test_a_tool_is_called_with_the_input_and_in_the_trace(hub: HubProcess, server: McpServer) -> None:
    agent = taken_in(hub, server)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    body = {"target_agent_id": agent, "skill": "echo", "input": {"n": 2**53 + 1, "deep": [None, "✓"]}}
    assert hub.post("/v1/a2a/call", body, headers).json["result"] == body["input"]
    ((shown, said),) = server.of("tools/call")
    assert said["params"]["name"] == "echo"
    assert trace in shown["traceparent"]
    assert trace in said["params"]["_meta"]["traceparent"]
    assert ("mcp-session-id" in shown) is (server.version == SESSIONS)
    assert shown["mcp-protocol-version"] == server.version
    assert (shown.get("mcp-name") == "echo") is (server.version == ALONE)


def test_what_a_tool_says_when_it_fails_is_the_callers_to_know(hub: HubProcess, server: McpServer) -> None:
    agent = taken_in(hub, server)
    error = called(hub, agent, "fail")["error"]
    assert (error["code"], error["message"]) == ("AGENT_ERROR", "the saw is blunt")
    assert error["details"]["reason"] == "tool_error"
    assert "cannot answer" in called(hub, agent, "ask")["error"]["message"]
    assert called(hub, agent, "ask", input={"n": "one"})["error"]["code"] == "VALIDATION_ERROR"


def test_answers_come_as_json_as_well_as_in_events(hub: HubProcess, server: McpServer) -> None:
    server.as_events = False
    agent = taken_in(hub, server)
    assert called(hub, agent, "echo", input={"n": 1})["result"] == {"n": 1}
    server.go.set()
    assert called(hub, agent, "hold")["result"] == {"text": "held"}


def test_progress_is_told_to_who_listens(hub: HubProcess, server: McpServer) -> None:
    agent = taken_in(hub, server)
    body = asked(agent, "tell")
    with sse(f"{hub.url}/v1/a2a/call/stream", body, headers={"Authorization": f"Bearer {hub.token}"}) as stream:
        items = iter(stream)
        _, first = next(items), next(items)
        assert (first.name, first.data) == ("progress", {"progress": 0.5, "message": "step 1"})
        server.go.set()
        rest = [(item.name, item.data) for item in items]
    assert rest[0] == ("progress", {"progress": 1.0, "message": "step 2"})
    assert dict(rest)["complete"]["result"] == {"text": "told"}


def test_a_call_that_is_cancelled_is_cancelled_there(hub: HubProcess) -> None:
    with mcp_server(SESSIONS) as server:
        agent = taken_in(hub, server)
        call = hub.post("/v1/a2a/call/async", asked(agent, "hold")).json["call_id"]
        assert server.arrived.wait(10)
        assert hub.post(f"/v1/calls/{call}/cancel", {"reason": "enough"}).status == 200
        assert server.cancelled.wait(10)
        ((headers, said),) = server.of("notifications/cancelled")
        ((sent, call_),) = server.of("tools/call")
        assert said["params"] == {"requestId": call_["id"], "reason": "enough"}
        assert headers["mcp-session-id"] == sent["mcp-session-id"]


# -- sessions


def test_a_session_is_opened_once_and_again_when_the_server_forgot_it(hub: HubProcess) -> None:
    with mcp_server(SESSIONS) as server:
        agent = taken_in(hub, server)
        for _ in range(3):
            called(hub, agent, "echo")
        assert len(server.of("initialize")) == len(server.of("notifications/initialized")) == 1
        server.sessions.clear()
        assert called(hub, agent, "echo", input={"n": 1})["result"] == {"n": 1}
        assert len(server.of("initialize")) == 2
        assert len(server.of("tools/call")) == 5  # one of them was not taken


def test_two_callers_have_a_session_each(hub: HubProcess) -> None:
    with mcp_server(SESSIONS) as server:
        agent = taken_in(hub, server)
        body = asked(agent, "echo")
        for key in (hub.new_key("a2a:call"), hub.new_key("a2a:call")):
            for _ in range(2):
                assert hub.post("/v1/a2a/call", body, token=key).status == 200
        sessions = [headers["mcp-session-id"] for headers, _ in server.of("tools/call")]
        assert sessions[0] == sessions[1] != sessions[2] == sessions[3]


def test_a_server_that_keeps_silent_times_out_and_is_told_to_stop(hub: HubProcess) -> None:
    with mcp_server(SESSIONS) as server:
        agent = taken_in(hub, server)
        late = called(hub, agent, "hold", options={"timeout_ms": 200})
        assert late["error"]["code"] == "AGENT_TIMEOUT"
        assert server.cancelled.wait(10)
