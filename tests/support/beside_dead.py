"""Load on ten agents at a steady pace, and how long the calls of each took."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from tests.support.hub import HubProcess

EVERY_S: Final = 0.03  # between two calls of one agent
TIMEOUT_MS: Final = 5000
LAST_MS: Final = 60  # for the last agent, which may be dead


async def load(hub: HubProcess, agents: Sequence[str], seconds: float) -> dict[str, list[float]]:
    """How long each call took that was answered, by agent; each agent is called again and again, one call at a time."""
    took: dict[str, list[float]] = {agent: [] for agent in agents}
    until = asyncio.get_running_loop().time() + seconds
    async with asyncio.TaskGroup() as group:
        for number, agent in enumerate(agents):
            timeout_ms = LAST_MS if agent == agents[-1] else TIMEOUT_MS
            group.create_task(_calls(hub, agent, timeout_ms, took[agent], until, EVERY_S * number / len(agents)))
    return took


def quantile(took: Sequence[float], share: float) -> float:
    """The time that this share of the calls took at most."""
    known = sorted(took)
    return known[min(len(known) - 1, int(len(known) * share))]


async def _calls(hub: HubProcess, agent: str, timeout_ms: int, took: list[float], until: float, later_s: float) -> None:
    loop = asyncio.get_running_loop()
    body: dict[str, Any] = {"target_agent_id": agent, "skill": "echo", "input": {"n": 1}}
    data = json.dumps({**body, "options": {"timeout_ms": timeout_ms}}).encode()
    head = f"POST /v1/a2a/call HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nContent-Type: application/json\r\n"
    asked = f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    due = loop.time() + later_s
    try:
        while due < until:
            await asyncio.sleep(max(0.0, due - loop.time()))  # the pace of the load
            began = loop.time()
            writer.write(asked)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = answer.partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            if b" 200 " in answer.split(b"\r\n", 1)[0]:
                took.append(loop.time() - began)
            due = max(due + EVERY_S, loop.time())
    finally:
        writer.close()
