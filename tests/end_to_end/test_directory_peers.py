"""The directory's published clients, agents and examples, reproduced request by request against a real hub.

The Python and TypeScript clients send no credentials and post bare bodies to the directory; the Go client sends
a2a/register for everything. They are imitated here in words of our own.
"""

import contextlib
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.world import fresh, join, tracebacks
from tests.support.agents import directory
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent
from tests.support.speaking import StubAgent, json_answer, serving

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "directory"


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub that asks nobody who he is, as the published clients need it."""
    with running_hub(tmp_path_factory.mktemp("hub") / "data", auth="none") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with directory.agent(fresh("echo-agent")) as stub:
        yield stub


@contextlib.contextmanager
def _answering(said: object, status: int = 200) -> Generator[StubAgent]:
    """An agent that answers every task with the same body."""
    stub = StubAgent("directory")

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        return (status, {}, said) if isinstance(said, bytes) else json_answer(said, status)

    with serving(stub, handle):
        stub.card = {"agentId": fresh("dir"), "name": "Says", "capabilities": ["echo"], "endpoint": stub.url}
        yield stub


def _example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


class PythonClient:
    """As the Python SDK does it: bare bodies, a failure is an answer with the key `error`, only the first one found."""

    def __init__(self, directory_url: str, agent_id: str) -> None:
        self._directory = directory_url.rstrip("/")
        self._id = agent_id

    def register(self, name: str, capabilities: list[str], endpoint: str) -> dict[str, Any]:
        body = {"agentId": self._id, "name": name, "capabilities": capabilities, "endpoint": endpoint}
        result = self._sent(f"{self._directory}/a2a/register", body)
        assert "error" not in result, result
        return result

    def discover(self, capabilities: list[str]) -> dict[str, Any] | None:
        agents = self._sent(f"{self._directory}/a2a/discover", {"capabilities": capabilities}).get("agents", [])
        return agents[0] if agents else None

    def send_task(self, target: str, action: str, given: dict[str, Any]) -> dict[str, Any]:
        task_id = str(uuid.uuid4())
        record = self._sent(f"{self._directory}/a2a/agents/{target}")
        assert "error" not in record, record
        params = {"taskId": task_id, "action": action, "sender": self._id, "input": given}
        return self._sent(record["endpoint"], {"jsonrpc": "2.0", "id": task_id, "method": "a2a/task", "params": params})

    def _sent(self, url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                answer: dict[str, Any] = json.loads(response.read())
                return answer
        except urllib.error.HTTPError as error:
            return {"error": f"HTTP {error.code}", "message": error.read().decode()}


@pytest.mark.req("R-24", "R-09")
def test_the_python_client_registers_finds_and_sends(trusting: HubProcess, stub: StubAgent) -> None:
    capability = fresh("cap")
    client = PythonClient(trusting.url, stub.card["agentId"])
    registered = client.register("Echo", [capability], stub.url)
    assert registered == {"status": "registered", "agentId": stub.card["agentId"]}
    found = client.discover([capability])
    assert found is not None
    assert found["endpoint"] == stub.url
    answer = client.send_task(found["agentId"], capability, {"message": "Hello!"})
    assert answer["result"]["output"] == {"message": "Hello!"}
    assert client.discover([fresh("cap")]) is None


@pytest.mark.req("R-24", "R-03", "R-22")
def test_the_python_client_reaches_an_agent_of_another_dialect(trusting: HubProcess, agent: PlatformAgent) -> None:
    joined = join(trusting, agent)
    client = PythonClient(trusting.url, "my-agent")
    answer = client.send_task(joined["id"], "echo", {"message": "Hello!"})
    assert (answer["result"]["status"], answer["result"]["output"]) == ("completed", {"message": "Hello!"})
    assert "error" not in answer
    missing = client.send_task(joined["id"], "unknown", {})
    assert missing["error"]["data"]["reason"] == "no_agent"
    with pytest.raises(AssertionError, match="HTTP 404"):
        client.send_task("nobody", "echo", {})


@pytest.mark.req("R-24", "R-17")
def test_the_typescript_client_registers_lists_and_sends(trusting: HubProcess, agent: PlatformAgent) -> None:
    joined = join(trusting, agent)
    mine: dict[str, Any] = {
        "agentId": fresh("ts"),
        "name": "TypeScript",
        "capabilities": ["echo"],
        "endpoint": "http://localhost:3000",
    }
    assert trusting.post("/a2a/register", mine).json == {"status": "registered", "agentId": mine["agentId"]}
    # It sends a content type with every request, also without a body.
    typed = {"Content-Type": "application/json"}
    listed = trusting.get("/a2a/agents", typed).json["agents"]
    assert {mine["agentId"], joined["id"]} <= {each["agentId"] for each in listed}
    target = trusting.get(f"/a2a/agents/{joined['id']}", typed).json
    task_id = str(uuid.uuid4())
    params = {"taskId": task_id, "action": "echo", "sender": mine["agentId"], "input": {"message": "Hello!"}}
    path = "/" + target["endpoint"].split("/", 3)[3]
    reply = trusting.post(path, {"jsonrpc": "2.0", "id": task_id, "method": "a2a/task", "params": params})
    assert reply.status == 200
    assert "error" not in reply.json
    assert reply.json["result"]["result"] == {
        "taskId": task_id,
        "status": "completed",
        "output": {"message": "Hello!"},
    }


@pytest.mark.req("R-20")
def test_the_go_client_says_register_and_means_all_three(trusting: HubProcess, agent: PlatformAgent) -> None:
    joined = join(trusting, agent)
    record = trusting.get(f"/a2a/agents/{joined['id']}").json
    go = {"agentId": fresh("go"), "name": "Go", "capabilities": ["search"], "endpoint": "http://localhost:8081"}
    task = _example("register-as-go-task-request")
    task["params"] |= {"taskId": fresh("id"), "action": "echo"}
    for path, params, member in (
        ("/a2a/register", go, "status"),
        ("/a2a/discover", {"capabilities": ["search"]}, "agents"),
        ("/" + record["endpoint"].split("/", 3)[3], task["params"], "output"),
    ):
        body = {"jsonrpc": "2.0", "id": fresh("id"), "method": "a2a/register", "params": params}
        reply = trusting.post(path, body)
        assert reply.status == 200
        assert reply.json["id"] == body["id"]
        assert member in reply.json["result"]


@pytest.mark.req("R-23")
@pytest.mark.parametrize(
    "said",
    [
        {"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "x", "data": {"reason": "timeout"}}},
        {"jsonrpc": "2.0", "id": "1", "error": {"code": -32002, "message": "Task timeout"}},
        {"jsonrpc": "2.0", "id": "1", "result": {"taskId": "t", "status": "timeout"}},
    ],
)
def test_a_timeout_at_the_agent_is_a_timeout(trusting: HubProcess, said: Any) -> None:
    with _answering(said) as stub:
        assert trusting.post("/a2a/register", stub.card).status == 200
        call = trusting.call("echo", {}, stub.card["agentId"])
        assert (call.status, call.json["error"]["code"]) == (504, "AGENT_TIMEOUT")
        params = {"taskId": fresh("task"), "action": "echo"}
        body = {"jsonrpc": "2.0", "id": "1", "method": "a2a/task", "params": params}
        error = trusting.post(f"/agents/{stub.card['agentId']}/", body).json["error"]
        assert (error["code"], error["data"]["reason"]) == (-32002, "timeout")


@pytest.mark.req("R-23")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"id": "1", "result": {"error": {"code": -32001, "message": "No handler"}}}, "No handler"),
        ({"id": "1", "result": {"taskId": "t", "status": "failed", "output": {"error": "broken"}}}, "broken"),
        ({"id": "1", "error": {"code": -32001, "message": "No handler registered"}}, "No handler registered"),
        ({"code": -32700, "message": "Parse error"}, "Parse error"),
        ({"error": "Unknown endpoint"}, "Unknown endpoint"),
    ],
)
def test_a_failure_of_the_agent_is_a_failure_in_whatever_form(trusting: HubProcess, said: Any, words: str) -> None:
    with _answering(said) as stub:
        assert trusting.post("/a2a/register", stub.card).status == 200
        call = trusting.call("echo", {}, stub.card["agentId"])
        assert (call.status, call.json["error"]["code"]) == (502, "AGENT_ERROR")
        assert call.json["error"]["message"] == words
        params = {"taskId": fresh("task"), "action": "echo"}
        body = {"jsonrpc": "2.0", "id": "1", "method": "a2a/task", "params": params}
        error = trusting.post(f"/agents/{stub.card['agentId']}/", body).json["error"]
        assert (error["code"], error["message"]) == (-32001, words)


@pytest.mark.req("R-23")
@pytest.mark.parametrize("said", [b"<html>", b"{}", b'{"jsonrpc": "2.0", "id": "1"}'])
def test_what_an_agent_says_that_makes_no_sense_is_its_failure(trusting: HubProcess, said: bytes) -> None:
    with _answering(said) as stub:
        assert trusting.post("/a2a/register", stub.card).status == 200
        call = trusting.call("echo", {}, stub.card["agentId"])
        assert (call.status, call.json["error"]["details"]["reason"]) == (502, "invalid_response")


# -- the examples


@pytest.fixture
def researcher(trusting: HubProcess) -> Iterator[StubAgent]:
    """The document's agent, at an address of this machine, and with its answer."""
    with _answering(_example("task-response")) as stub:
        body = _example("register-request")
        body["params"]["endpoint"] = stub.url
        assert trusting.post("/a2a/register", body).json == _example("register-response")
        yield stub


@pytest.mark.req("R-01", "R-06")
@pytest.mark.parametrize("path", ["/a2a/register", "/a2a"])
def test_the_documents_registration_is_answered_as_shown(trusting: HubProcess, path: str) -> None:
    assert trusting.post(path, _example("register-request")).json == _example("register-response")
    bare = trusting.post("/a2a/register", _example("bare-register-request"))
    assert (bare.status, bare.json) == (200, _example("bare-register-response"))


@pytest.mark.req("R-02", "R-19", "R-20")
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a2a/discover", "discover-request"),
        ("/a2a", "discover-request"),
        ("/a2a", "message-format"),
        ("/a2a/discover", "register-as-go-discover-request"),
    ],
)
def test_the_documents_search_is_answered_as_shown(
    trusting: HubProcess, researcher: StubAgent, path: str, name: str
) -> None:
    asked = _example(name)
    answer = trusting.post(path, asked).json
    assert answer["id"] == asked["id"]
    shown = _example("discover-response")["result"]["agents"][0]
    (found,) = [each for each in answer["result"]["agents"] if each["agentId"] == "research-agent"]
    assert {field: type(value) for field, value in found.items()} == {
        field: type(value) for field, value in shown.items()
    }
    assert found["endpoint"] == researcher.url
    bare = trusting.post("/a2a/discover", _example("bare-discover-request")).json
    assert bare == answer["result"]
    assert bare.keys() == _example("bare-discover-response").keys()


@pytest.mark.req("R-03", "R-06", "R-17", "R-20")
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/agents/research-agent/", "task-request"),
        ("/a2a/task", "task-request"),
        ("/a2a", "task-request"),
        ("/a2a/task", "transport-task-request"),
        ("/agents/research-agent/", "register-as-go-task-request"),
    ],
)
def test_the_documents_task_is_answered_as_shown(
    trusting: HubProcess, researcher: StubAgent, path: str, name: str
) -> None:
    asked = _example(name)
    asked["params"] |= {"taskId": fresh("task"), "action": "analysis"}  # nobody else in these tests has that one
    answer = trusting.post(path, asked).json
    shown = _example("task-response-emitted")
    same = {**shown["result"]["result"], "taskId": asked["params"]["taskId"]}
    assert answer == {**shown, "id": asked["id"], "result": {**same, "result": same}}
    sent = researcher.requests[-1][3]["params"]
    assert sent["input"] == asked["params"]["input"]


@pytest.mark.req("R-05", "R-13", "R-19")
def test_the_documents_refusals_are_as_shown(trusting: HubProcess) -> None:
    shown = _example("error-invalid-params")
    body = {"jsonrpc": "2.0", "id": "reg-2", "method": "a2a/register", "params": {"agentId": "x"}}
    refused = trusting.post("/a2a/register", body)
    assert (refused.status, refused.json["id"], refused.json["error"]["code"]) == (200, "reg-2", -32602)
    assert refused.json["error"]["data"]["missing"] == shown["error"]["data"]["missing"]
    bare = trusting.post("/a2a/register", {"agentId": "x"})
    assert (bare.status, bare.json) == (400, _example("bare-error-response"))
    unknown = trusting.post("/a2a", {"jsonrpc": "2.0", "id": "u-1", "method": "a2a/nothing", "params": {}})
    assert (unknown.status, unknown.json["id"]) == (200, "u-1")
    assert unknown.json["error"]["code"] == _example("error-method-not-found")["error"]["code"]


@pytest.mark.req("R-07", "R-21")
def test_the_documents_lists_are_as_shown(trusting: HubProcess, researcher: StubAgent) -> None:
    record = trusting.get("/a2a/agents/research-agent").json
    assert record.keys() == _example("agent-response").keys()
    listed = trusting.get("/a2a/agents").json
    assert listed.keys() == _example("agents-response").keys()
    assert record in listed["agents"]
