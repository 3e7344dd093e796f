"""Two agents and a receiver of callbacks in a process of their own, which outlives every hub that is killed.

`/quick` answers within 5 ms, `/slow` after 150 to 400 ms, longer than a hub holds an opening back; or, where the input
has an `after_s`, after that. Both give the input again. `/callback` takes what the hub tells callers. `/asked` and
`/called` tell every request they got, in order. Runs alone: `python -m tests.support.kill_agents SEED`; the port is its
first line.
"""

import asyncio
import contextlib
import http.client
import json
import random
import sys
import time
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from tests.support.tiny_http import Connection, Request, listen, process

QUICK: Final = "agt_quick"
SLOW: Final = "agt_slow"
TURNS: Final = 3  # of an agent's loop: a connection is taken, its request is read, and both are over
DELAYS_S: Final = {"/quick": (0.0, 0.005), "/slow": (0.15, 0.4)}


class Asked(NamedTuple):
    """One request that an agent got: under which call id, which of the loader's calls it was, and when."""

    call_id: str
    number: int
    at: float


class Called(NamedTuple):
    """One callback that was received: its id, the call it tells of, and how that ended."""

    webhook_id: str
    call_id: str
    status: str


class Answering:
    """What the agents do, and what they keep."""

    def __init__(self, chance: random.Random) -> None:
        self._asked: list[Asked] = []
        self._called: list[Called] = []
        self._chance = chance

    def answer(self, request: Request, client: Connection) -> None:
        """A call, its cancel, a callback, or the test's question."""
        body = request.body
        match request.path:
            case "/asked":
                client.say(self._asked)
            case "/called":
                client.say(self._called)
            case "/callback":
                self._called.append(Called(request.headers["webhook-id"], body["call_id"], body["status"]))
                client.say({})
            case path if path.endswith("/cancel") or "call_id" not in body:  # or whether it is there
                client.say({})
            case path:
                given: dict[str, Any] = body["input"]
                self._asked.append(Asked(body["call_id"], given["number"], time.monotonic()))
                answer = {"status": "completed", "result": given, "usage": {"tokens": 1}}
                after_s: float = given.get("after_s") or self._chance.uniform(*DELAYS_S[path])
                asyncio.get_running_loop().call_later(after_s, client.say, answer)


class KillAgents:
    """The running agents, as a test sees them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.callback_url = f"http://127.0.0.1:{port}/callback"

    def cards(self) -> list[dict[str, Any]]:
        """The cards of both agents."""
        return [self._card(QUICK, "/quick"), self._card(SLOW, "/slow")]

    def read_all(self) -> None:
        """Returns when they have read whatever was sent to them before."""
        for _ in range(TURNS):
            self._told("/")

    def asked(self) -> list[Asked]:
        """Every request they got so far."""
        return [Asked(*each) for each in self._told("/asked")]

    def called(self) -> list[Called]:
        """Every callback that came so far."""
        return [Called(*each) for each in self._told("/called")]

    def _told(self, path: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def _card(self, agent_id: str, path: str) -> dict[str, Any]:
        return {
            "id": agent_id,
            "name": agent_id,
            "description": "Gives the input again",
            "version": "1.0.0",
            "skills": [{"name": "echo", "description": "Says it again", "input_schema": {"type": "object"}}],
            "rate_limits": {"requests_per_minute": 1_000_000, "concurrent_requests": 10_000},
            "endpoint": f"http://127.0.0.1:{self.port}{path}",
        }


@contextlib.contextmanager
def kill_agents(seed: int) -> Generator[KillAgents]:
    """Both agents and the receiver, running within the block."""
    with process("tests.support.kill_agents", str(seed)) as running:
        yield KillAgents(running.port)


if __name__ == "__main__":
    asyncio.run(listen(Answering(random.Random(int(sys.argv[1]))).answer))
