"""Many requests at once, each on a connection of its own; and an agent that knows how many it had at a time."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent, platform_agent

WORK_S: Final = 0.01
PATIENCE_S: Final = 60.0


class Posted(NamedTuple):
    """A request that is to be sent: where to, what, and how."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = {}


def all_at_once(hub: HubProcess, requests: Sequence[Posted], token: str = "") -> list[Reply]:
    """The answers to all of them; every connection is open before the first is sent."""
    return asyncio.run(_all_at_once(hub, requests, token or hub.token or ""))


async def _all_at_once(hub: HubProcess, requests: Sequence[Posted], token: str) -> list[Reply]:
    ready = asyncio.Barrier(len(requests))

    async def post(request: Posted) -> Reply:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        raw = json.dumps(request.body).encode()
        given = {
            "Host": "localhost",
            "Content-Type": "application/json",
            "Content-Length": str(len(raw)),
            "Connection": "close",
            **({"Authorization": f"Bearer {token}"} if token else {}),
            **request.headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        await ready.wait()
        writer.write(f"POST {request.path} HTTP/1.1\r\n{head}\r\n".encode() + raw)
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        said, _, body = answer.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in said.decode().split("\r\n")[1:]]
        return Reply(int(said[9:12]), {name.lower(): value for name, value in lines}, body)

    return list(await asyncio.gather(*map(post, requests)))


class CountingAgent:
    """An agent that repeats what it is told, and notes in which order calls came and how many it had at once."""

    def __init__(self, agent: PlatformAgent) -> None:
        self.agent = agent
        self.came: list[str] = []
        self.most = 0
        self.work_s = WORK_S
        self.held = threading.Event()  # set: calls are let go
        self.held.set()
        self.arrived = threading.Condition()
        self._now = 0

    def respond(self, body: dict[str, Any]) -> dict[str, Any]:
        """Work for a moment, or until it is let go."""
        with self.arrived:
            self._now += 1
            self.most = max(self.most, self._now)
            self.came.append(str(body["input"].get("text")))
            self.arrived.notify_all()
        threading.Event().wait(self.work_s)
        self.held.wait(PATIENCE_S)
        with self.arrived:
            self._now -= 1
        return {"result": body["input"]}

    def wait_for(self, calls: int) -> None:
        """Wait until so many have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.came) >= calls, PATIENCE_S), self.came


@contextlib.contextmanager
def counting_agent() -> Generator[CountingAgent]:
    """Such an agent, for as long as the block lasts."""
    with platform_agent() as agent:
        counting = CountingAgent(agent)
        agent.respond = counting.respond
        try:
            yield counting
        finally:
            counting.held.set()
