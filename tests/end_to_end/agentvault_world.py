"""What the tests of AgentVault on a real hub share: requests in its words, and waiting for a task."""

import itertools
import json
from pathlib import Path
from typing import Any, Final

from tests.end_to_end.world import eventually
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.hub import HubProcess, Reply
from tests.support.speaking import StubAgent

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "agentvault"
OPEN: Final = ("SUBMITTED", "WORKING")

_numbers = itertools.count(1)


def example(name: str) -> Any:
    """One of the documented bodies."""
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def text(words: str, role: str = "user", **more: Any) -> dict[str, Any]:
    """A message of one text."""
    return {"role": role, "parts": [{"type": "text", "content": words}], **more}


def mount(agent: str) -> str:
    """Where an agent is spoken to in nothing but AgentVault."""
    return f"/agents/{agent}/agentvault/"


def rpc(hub: HubProcess, path: str, method: str, params: object, **how: Any) -> Reply:
    """One JSON-RPC request; the answer has its id, and either a result or an error."""
    request_id = f"req-{next(_numbers)}"
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    reply = hub.post(path, body, **how)
    assert reply.json["id"] == request_id
    assert reply.json["jsonrpc"] == "2.0"
    assert ("result" in reply.json) is not ("error" in reply.json)
    return reply


def result(hub: HubProcess, path: str, method: str, params: object, **how: Any) -> Any:
    """The result of a request."""
    reply = rpc(hub, path, method, params, **how)
    assert reply.status == 200, reply.body
    assert "result" in reply.json, reply.body
    return reply.json["result"]


def error(hub: HubProcess, path: str, method: str, params: object, status: int = 200, **how: Any) -> Any:
    """The error of a request."""
    reply = rpc(hub, path, method, params, **how)
    assert reply.status == status, reply.body
    return reply.json["error"]


def send(hub: HubProcess, agent: str, message: object, **params: Any) -> str:
    """A message as a new task (or into one, with `id`); the task's id."""
    answer = result(hub, mount(agent), "tasks/send", {"message": message, **params})
    assert set(answer) == {"id"}
    task_id: str = answer["id"]
    return task_id


def get(hub: HubProcess, agent: str, task_id: str) -> dict[str, Any]:
    """The task as it is now; nothing in it is null."""
    shown: dict[str, Any] = result(hub, mount(agent), "tasks/get", {"id": task_id})
    assert set(shown) - {"metadata"} == {"id", "state", "createdAt", "updatedAt", "messages", "artifacts"}
    assert "null" not in json.dumps({**shown, "messages": [], "artifacts": []})
    for message in shown["messages"]:
        assert message["role"] in ("user", "assistant", "system", "tool")
        assert message["parts"]
    for artifact in shown["artifacts"]:
        assert artifact["id"]
        assert artifact["type"]
    return shown


def settled(hub: HubProcess, agent: str, task_id: str) -> dict[str, Any]:
    """The task once it is done or asks."""

    def look() -> dict[str, Any] | None:
        shown = get(hub, agent, task_id)
        return None if shown["state"] in OPEN else shown

    return eventually(look, f"{task_id} is done or asks")


def called(hub: HubProcess, agent: str, message: object) -> dict[str, Any]:
    """A message as a new task, and that task once it is done or asks."""
    return settled(hub, agent, send(hub, agent, message))


def taken_in(hub: HubProcess, stub: StubAgent, **more: Any) -> str:
    """Register a stub by its card; its id at the hub."""
    answer = hub.register(stub.card, **more)
    if isinstance(stub, EnvelopeAgent):
        stub.token = answer["token"]  # it reports to the hub by itself
    agent_id: str = answer["id"]
    return agent_id


def last_words(task: dict[str, Any]) -> str:
    """What the agent said last."""
    assert task["messages"][-1]["role"] == "assistant"
    words: str = task["messages"][-1]["parts"][0]["content"]
    return words
