"""Two agents in a process of their own, which outlives every hub that is killed: one quick, one slow.

`/quick` answers within 5 ms, `/slow` after 150 to 400 ms, longer than a hub holds an opening back. Both give the input
again. `GET /asked` tells every request they got, in order. Runs alone: `python -m tests.support.kill_agents SEED`; the
port is its first line. Reads just enough HTTP/1.1 for the hub.
"""

import asyncio
import contextlib
import http.client
import json
import random
import re
import subprocess
import sys
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from tests.support.hub import ROOT

QUICK: Final = "agt_quick"
SLOW: Final = "agt_slow"
DELAYS_S: Final = {"/quick": (0.0, 0.005), "/slow": (0.15, 0.4)}
LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


class Asked(NamedTuple):
    """One request that an agent got: under which call id, and which of the loader's calls it was."""

    call_id: str
    number: int


class Answering(asyncio.Protocol):
    """One connection; requests on it are answered in turn."""

    def __init__(self, asked: list[Asked], chance: random.Random) -> None:
        self._asked = asked
        self._chance = chance
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._held) < whole:
                return
            body, self._held = self._held[end + 4 : whole], self._held[whole:]
            self._answer(head.split(b" ", 2)[1].decode(), body)

    def _answer(self, path: str, body: bytes) -> None:
        if path == "/asked":
            self._say(self._asked)
            return
        request: dict[str, Any] = json.loads(body)
        given: dict[str, Any] = request["input"]
        self._asked.append(Asked(request["call_id"], given["number"]))
        answer = {"status": "completed", "result": given, "usage": {"tokens": 1}}
        asyncio.get_running_loop().call_later(self._chance.uniform(*DELAYS_S[path]), self._say, answer)

    def _say(self, answer: object) -> None:
        said = json.dumps(answer).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(head + said)


class KillAgents:
    """The running agents, as a test sees them."""

    def __init__(self, port: int) -> None:
        self.port = port

    def cards(self) -> list[dict[str, Any]]:
        """The cards of both agents."""
        return [self._card(QUICK, "/quick"), self._card(SLOW, "/slow")]

    def asked(self) -> list[Asked]:
        """Every request they got so far."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/asked")
            return [Asked(*each) for each in json.loads(connection.getresponse().read())]
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
    """Both agents, running within the block."""
    command = [sys.executable, "-m", "tests.support.kill_agents", str(seed)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield KillAgents(int(process.stdout.readline()))
        finally:
            process.kill()


async def serve(seed: int) -> None:
    """Listen until the process is ended."""
    asked: list[Asked] = []
    chance = random.Random(seed)
    server = await asyncio.get_running_loop().create_server(lambda: Answering(asked, chance), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
