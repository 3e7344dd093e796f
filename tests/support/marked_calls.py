"""Calls to an agent that leaves marks, while processes are killed and started again.

Two agents have the same skills: that of `connected_agent.py`, and in Node that of `tests/typescript/running.py`.
"""

from pathlib import Path
from typing import Any, Final

from tests.end_to_end.world import eventually
from tests.support.hub import HubProcess

PATIENCE_S: Final = 20.0
SHORT_LEASE: Final = {"DRAGOMAN_CONNECT_LEASE_S": "1"}
WORDS: Final = "0 1 2 3 "  # what comes of a call that was `held`


def accepted(hub: HubProcess, agent: str, skill: str, **input: Any) -> str:
    """A call that nobody waits for."""
    body = {"target_agent_id": agent, "skill": skill, "input": input}
    return hub.post("/v1/a2a/call/async", body).json["call_id"]


def held(hub: HubProcess, agent: str, release: Path) -> str:
    """A call that holds in its midst, until that file is there."""
    call_id = accepted(hub, agent, "count", to=4, hold_at=2, release=str(release))
    eventually(lambda: told(hub, call_id).get("message") == "holds", "it holds", PATIENCE_S)
    return call_id


def asking(hub: HubProcess, agent: str) -> str:
    """A call whose agent asks something."""
    call_id = accepted(hub, agent, "question")
    eventually(lambda: told(hub, call_id).get("awaiting") == "input", "it asks", PATIENCE_S)
    return call_id


def answer(hub: HubProcess, agent: str, call_id: str, text: str) -> str | None:
    """Answer what the agent asked; what it asks next."""
    body = {
        "target_agent_id": agent,
        "skill": "question",
        "input": {"text": text},
        "context": {"continue_call_id": call_id},
    }
    said = hub.post("/v1/a2a/call", body).json
    return said["error"]["message"] if said["status"] != "completed" else None


def answered(hub: HubProcess, call_id: str) -> dict[str, Any]:
    """The result of a call, once it has ended well."""
    eventually(lambda: told(hub, call_id)["status"] in ("completed", "failed"), "the call ended", PATIENCE_S)
    said = told(hub, call_id)
    assert said["status"] == "completed", said
    return said["result"]


def told(hub: HubProcess, call_id: str) -> dict[str, Any]:
    """What the hub says of a call."""
    return hub.get(f"/v1/a2a/call/{call_id}/status").json
