"""What the tests of a real hub share: fresh ids, the shape of refusals, and looks into the hub's log and memory."""

import itertools
import json
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import Answer, PlatformAgent, Respond

Seen = TypeVar("Seen")

LOG: Final = logging.getLogger(__name__)
PATIENCE_S: Final = 10.0
RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ALL_OPEN: Final[dict[str, Any]] = {"type": "object"}

_numbers = itertools.count(1)


def fresh(prefix: str = "agt_test") -> str:
    """An id that no other test of this process has."""
    return f"{prefix}_{next(_numbers)}"


def skill(name: str, **more: Any) -> dict[str, Any]:
    """A skill of a platform card."""
    return {"name": name, "description": f"Does {name}", "input_schema": ALL_OPEN, **more}


def join(hub: HubProcess, agent: PlatformAgent, *, token: str = "", **card: Any) -> dict[str, Any]:
    """Register the agent under a fresh id; the hub's answer. What is no field of a card stands beside it."""
    beside = {name: card.pop(name) for name in ("open", "private", "credentials", "tags") if name in card}
    body = {"agent_card": agent.card(**{"id": fresh(), **card}), **beside}
    reply = hub.post("/v1/a2a/registry", body, token=token)
    assert reply.status == 201, reply.body
    answer: dict[str, Any] = reply.json
    return answer


def says(said: Answer | dict[str, Any]) -> Respond:
    """An agent that always answers the same."""

    def respond(_: dict[str, Any]) -> Answer | dict[str, Any]:
        return said

    return respond


def repeats(body: dict[str, Any]) -> dict[str, Any]:
    """An agent's answer: its input again."""
    return {"result": body["input"]}


def holds(agent: PlatformAgent) -> Respond:
    """An agent that repeats its input once it is released."""

    def respond(body: dict[str, Any]) -> dict[str, Any]:
        agent.release.wait(20)
        return repeats(body)

    return respond


def refused(reply: Reply, status: int, code: str) -> dict[str, Any]:
    """The error of a refusal, after a look at its whole form."""
    assert reply.status == status, reply.body
    body = reply.json
    assert reply.headers["content-type"] == "application/json"
    assert body["id"] == body["call_id"]
    assert body["status"] == "failed"
    assert "result" not in body
    assert set(body["error"]) <= {"code", "message", "details", "retryable"}
    assert body["error"]["code"] == code
    assert body["error"]["message"]
    assert isinstance(body["error"]["retryable"], bool)
    assert RFC_3339.fullmatch(body["timing"]["queued_at"])
    assert RFC_3339.fullmatch(body["timing"]["failed_at"])
    error: dict[str, Any] = body["error"]
    return error


def failing_paths(error: dict[str, Any]) -> set[str]:
    """The paths that a refusal names."""
    return {each["path"] for each in error["details"]["errors"]}


def log_lines(hub: HubProcess) -> list[dict[str, Any]]:
    """What the hub has logged so far, as objects; its one line of greeting aside."""
    return [json.loads(line) for line in hub.log.read_text().splitlines() if line.startswith("{")]


def tracebacks(hub: HubProcess) -> list[dict[str, Any]]:
    """The log lines that tell of something unexpected."""
    found = [line for line in log_lines(hub) if "traceback" in line or line["level"] in ("error", "critical")]
    for line in found:
        LOG.error("%s\n%s", line["message"], line.get("traceback"))  # pytest shows it whole where a test fails
    return found


def call_line(hub: HubProcess, call_id: str) -> dict[str, Any]:
    """The log line of one call; it is written a moment after the call's end."""

    def line() -> dict[str, Any] | None:
        return next((each for each in log_lines(hub) if each.get("call_id") == call_id), None)

    return eventually(line, f"{call_id} is in the log")


def eventually(look: Callable[[], Seen | None], what: str, within_s: float = PATIENCE_S) -> Seen:
    """What `look` sees, once it sees something; for what happens in another process and is told to nobody."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        seen = look()
        if seen:
            return seen
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {within_s:g} s")


def rss_bytes(hub: HubProcess) -> int:
    """The memory that the hub holds now."""
    status = Path(f"/proc/{hub.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024
