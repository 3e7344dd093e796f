"""The readers of the kill harness: each has a call streamed, and comes back for the rest whenever the hub dies.

    POST …/call/stream ─► events ─ killed ─► GET …/stream, Last-Event-ID ─► events ─ killed ─► … ─► done

Every other call is accepted first and then read from its beginning; half of those that are streamed at once have a key,
so that they are sent again after a restart. What was seen is kept, to be held against what is stored.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from tests.support.stream_agents import SKILL, STREAMER

READERS: Final = 20
PIECES: Final = (2, 10)
EVERY_S: Final = (0.03, 0.1)
AGAIN_S: Final = (0.01, 0.05)
PATIENCE_S: Final = 20.0


class Seen(NamedTuple):
    """One event that a reader saw: its number, its name, its words."""

    seq: int
    name: str
    text: str


class Streamed:
    """One call that is read; it has an id from the moment it was acknowledged."""

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.call_id: str | None = None
        self.seen: list[Seen] = []
        self.done = False
        self.resumed = 0


class _Refused(Exception):
    """The hub answered with something else than a stream."""


class Readers:
    """Reads from `run` until `stop`, and then the calls that are not done to their end."""

    def __init__(self, port: int, token: str, chance: random.Random, name: str) -> None:
        self.calls: list[Streamed] = []
        self.complaints: list[str] = []
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self._chance = chance
        self._name = name
        self._stopped = False

    def stop(self) -> None:
        """Begin no new calls."""
        self._stopped = True

    async def run(self) -> None:
        """All readers; returns when the last has seen its end."""
        async with asyncio.TaskGroup() as readers:
            for _ in range(READERS):
                readers.create_task(self._read_on())

    async def _read_on(self) -> None:
        while not self._stopped:
            number = len(self.calls)
            call = Streamed(f"{self._name}-stream-{number}" if number % 4 else None)
            self.calls.append(call)
            try:
                await self._begin(call, accepted=number % 2 == 1)
                while call.call_id is not None and not call.done:
                    await self._resume(call)
            except _Refused as refused:
                self.complaints.append(f"reader of {call.call_id} was refused: {refused}")

    async def _begin(self, call: Streamed, *, accepted: bool) -> None:
        wanted = {"events": self._chance.randint(*PIECES), "every_s": self._chance.uniform(*EVERY_S)}
        body = json.dumps({"target_agent_id": STREAMER, "skill": SKILL, "input": wanted}).encode()
        way = "async" if accepted else "stream"
        head = f"POST /v1/a2a/call/{way} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n"
        if call.key is not None:
            head += f"Idempotency-Key: {call.key}\r\n"
        if accepted:
            call.call_id = await self._accepted(f"{head}\r\n".encode() + body)
        else:
            await self._follow(call, f"{head}\r\n".encode() + body)
        if call.call_id is None:
            await asyncio.sleep(self._chance.uniform(*AGAIN_S))

    async def _accepted(self, request: bytes) -> str | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(request)
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                    said = json.loads(await reader.readexactly(int(length.split(b":")[1])))
                finally:
                    writer.close()
        except (OSError, EOFError):
            return None
        return said["call_id"] if head.startswith(b"HTTP/1.1 202 ") else None

    async def _resume(self, call: Streamed) -> None:
        last = f"Last-Event-ID: {call.seen[-1].seq}\r\n" if call.seen else ""
        before = len(call.seen)
        await self._follow(call, f"GET /v1/a2a/call/{call.call_id}/stream HTTP/1.1\r\n{self._head}{last}\r\n".encode())
        call.resumed += len(call.seen) > before > 0
        if not call.done:
            await asyncio.sleep(self._chance.uniform(*AGAIN_S))

    async def _follow(self, call: Streamed, request: bytes) -> None:
        """Read on until the end, or until the hub is gone."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(request)
                    async for seq, name, data in _events(reader):
                        self._note(call, seq, name, data)
                finally:
                    writer.close()
        except TimeoutError:
            self.complaints.append(f"the stream of {call.call_id} neither went on nor ended in {PATIENCE_S:g} s")
        except (OSError, EOFError):
            return

    def _note(self, call: Streamed, seq: int, name: str, data: dict[str, Any]) -> None:
        if name == "done":
            call.done = True
            return
        if call.call_id is None:
            call.call_id = data["call_id"]
        call.seen.append(Seen(seq, name, data.get("content", "")))


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, str, dict[str, Any]]]:
    """The whole events of an answer in chunks; a hub that is busy has none."""
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 503 "):
        return
    if not head.startswith(b"HTTP/1.1 200 "):
        raise _Refused(head.split(b"\r\n", 1)[0].decode())
    held = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        held += await reader.readexactly(size)
        await reader.readexactly(2)
        *whole, held = held.split(b"\n\n")
        for each in whole:
            fields = dict(line.split(b": ", 1) for line in each.split(b"\n") if not line.startswith(b":"))
            if b"data" in fields:
                yield int(fields[b"id"]), fields[b"event"].decode(), json.loads(fields[b"data"])
