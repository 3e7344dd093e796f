"""A platform agent that streams, in a process of its own: it outlives a hub that is killed, or is itself killed.

What a call wants is its input: `events` pieces, one every `every_s` seconds, then the end; or with `holds` no end, but
what `/say` tells it to say, until `/end`. Each piece is `NUMBER@TIME `, the time being when it was sent, by the clock
that all processes of a machine share. Runs alone: `python -m tests.support.stream_agents`; the port is its first line.
"""

import asyncio
import contextlib
import http.client
import json
import time
from collections.abc import Coroutine, Generator
from typing import Any, Final

from tests.support.tiny_http import Connection, Process, Request, listen, process

STREAMER: Final = "agt_streamer"
SKILL: Final = "tell"
PATIENCE_S: Final = 30.0


class Streams:
    """The calls that are streamed; those that are held wait for a word."""

    def __init__(self) -> None:
        self._asked: list[str] = []
        self._held: dict[str, tuple[Connection, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, request: Request, client: Connection) -> None:
        """A call, its cancel, or a word of the test's."""
        body = request.body
        match request.path:
            case "/asked":
                client.say(self._asked)
            case "/held":
                client.say(len(self._held))
            case "/say":
                self._begin(self._say(client, body["pieces"], body["every_s"], "x" * body["size"]))
            case "/end":
                for held, _ in self._held.values():
                    _complete(held)
                self._held.clear()
                client.say({})
            case path if path.endswith("/cancel") or "call_id" not in body:  # or whether it is there
                client.say({})
            case path:
                self._asked.append(body["call_id"])
                client.begin(chunked=path.startswith("/chunked"))
                self._begin(self._call(client, body["call_id"], body["input"]))

    async def _call(self, client: Connection, call_id: str, wanted: dict[str, Any]) -> None:
        pieces: int = wanted.get("events", 0)
        for number in range(pieces):
            _piece(client, number)
            await asyncio.sleep(wanted.get("every_s", 0.0))
        if wanted.get("holds"):
            self._held[call_id] = client, pieces
        else:
            _complete(client)

    async def _say(self, client: Connection, pieces: int, every_s: float, padding: str) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for _ in range(pieces):
            for call_id, (held, number) in self._held.items():
                _piece(held, number, padding)
                self._held[call_id] = held, number + 1
            due += every_s
            await asyncio.sleep(max(0.0, due - loop.time()))
        client.say({})

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _piece(client: Connection, number: int, padding: str = "") -> None:
    client.event("chunk", {"content": f"{number}@{time.monotonic():.6f}{padding} "})


def _complete(client: Connection) -> None:
    client.event("complete", {"status": "completed"})  # The pieces are its result.
    client.end()


class StreamAgents:
    """The running agent, as a test sees it."""

    def __init__(self, running: Process) -> None:
        self._running = running

    def card(self, agent_id: str = STREAMER, *, chunked: bool = True) -> dict[str, Any]:
        """Its card; the end of its streams is marked, or is that of the connection."""
        return {
            "id": agent_id,
            "name": agent_id,
            "description": "Streams",
            "version": "1.0.0",
            "capabilities": {"streaming": True, "a2a": True, "memory": False},
            "skills": [{"name": SKILL, "description": "Tells", "input_schema": {"type": "object"}}],
            "rate_limits": {"requests_per_minute": 1_000_000, "concurrent_requests": 10_000},
            "endpoint": f"http://127.0.0.1:{self._running.port}/{'chunked' if chunked else 'open'}",
        }

    def say(self, pieces: int = 1, *, every_s: float = 0.0, size: int = 0) -> None:
        """Say so many pieces in every call that is held; returns when they are said."""
        self._ask("/say", {"pieces": pieces, "every_s": every_s, "size": size})

    def end(self) -> None:
        """End every call that is held."""
        self._ask("/end", {})

    def held(self) -> int:
        """How many calls are held now."""
        return int(self._ask("/held", {}))

    def asked(self) -> list[str]:
        """The call ids that the agent was given, in order."""
        return list(self._ask("/asked", {}))

    def kill(self) -> None:
        """SIGKILL, in the midst of whatever it does."""
        self._running.kill()

    def _ask(self, path: str, body: object) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._running.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", path, json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextlib.contextmanager
def stream_agents() -> Generator[StreamAgents]:
    """The agent, running within the block unless it is killed before."""
    with process("tests.support.stream_agents") as running:
        yield StreamAgents(running)


if __name__ == "__main__":
    asyncio.run(listen(Streams().answer))
