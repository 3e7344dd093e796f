"""Readers of calls that run, in several dialects: whatever breaks their stream, they come back for the rest.

    asked after 0, or as the task is ─► events ─ cut, killed ─► asked again, Last-Event-ID ─► events ─► … ─► the end

A reader can be put to sleep: then it takes nothing, and its small buffers are soon full. What was seen is kept by its
number, to be held against what is stored.
"""

import asyncio
import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Final, NamedTuple

from dragoman.backends.sqlite import codec, tasks
from dragoman.backends.sqlite.connection import Connection
from dragoman.model.content import Text
from dragoman.model.events import ArtifactChunk, StatusChanged
from dragoman.model.states import FINAL
from tests.support.slow_reader import BUFFER_BYTES, SEGMENT_BYTES
from tests.support.stream_tongues import Told, Tongue

AGAIN_S: Final = 0.05
LIMIT_BYTES: Final = 4096  # what a sleeping reader's program holds, beside the system's buffers
SHOWN: Final = 5


class Seen(NamedTuple):
    """One event that a reader saw: its number, and digests of the words that it brought."""

    seq: int
    piece: int | None = None
    whole: int | None = None  # of all words so far
    end: str | None = None


class Stored(NamedTuple):
    """What a call has in the file: the words of each number that has some, and how and where it ended."""

    words: Mapping[int, str]
    end: str
    last: int


class Reader:
    """One reader of one call."""

    def __init__(self, tongue: Tongue, call_id: str, port: int, token: str, *, late: bool, slow: bool) -> None:
        """`late`: it wants the task as it is when it comes, and what follows; `slow`: it has small buffers."""
        self.tongue = tongue
        self.call_id = call_id
        self.slow = slow
        self.first = None if late else 0  # the number that it begins after, where it says one
        self.seen: list[Seen] = []
        self.end: str | None = None
        self.broken = 0  # streams that broke off
        self.late_s: list[float] | None = None  # how late pieces were, while somebody wants to know
        self._awake = asyncio.Event()
        self._awake.set()
        self._asleep = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._port = port
        self._token = token

    @property
    def last(self) -> int:
        """The number of the last event that it saw whole."""
        return self.seen[-1].seq if self.seen else 0

    @property
    def name(self) -> str:
        """Who it is, for complaints."""
        return f"the {self.tongue.slug} reader of {self.call_id}"

    async def sleep(self) -> None:
        """Leave, and come back to take nothing: on a connection that was read from, systems hold megabytes."""
        self._awake.clear()
        self._asleep.clear()
        if self._writer is not None:
            self._writer.transport.abort()
        await self._asleep.wait()

    def wake(self) -> None:
        """Read on."""
        self._awake.set()

    async def run(self) -> None:
        """Read to the call's end."""
        while self.end is None:
            with contextlib.suppress(OSError, EOFError):
                await self._read()
            if self.end is None:
                await asyncio.sleep(AGAIN_S)

    async def _read(self) -> None:
        reader, writer = await self._connected()
        self._writer = writer
        try:
            after = self.seen[-1].seq if self.seen else self.first
            writer.write(self._request(after))
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 503 "):
                return
            assert head.startswith(b"HTTP/1.1 200 "), f"{self.name} was refused: {head.decode()}"
            try:
                async for seq, told in _items(self.tongue, self._pieces(reader)):
                    self._note(seq, told, is_snapshot=after is None)
                    after = seq
            finally:
                self.broken += self.end is None
        finally:
            self._writer = None
            writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = socket.socket()
        made.setblocking(False)
        if self.slow:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
        try:
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self._port))
        except BaseException:
            made.close()
            raise
        return await asyncio.open_connection(sock=made, limit=LIMIT_BYTES)

    def _request(self, after: int | None) -> bytes:
        begins, body = self.tongue.asks(self.call_id)
        head = f"{begins}Host: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\nContent-Length: {len(body)}\r\n"
        if after is not None:
            head += f"Last-Event-ID: {after}\r\n"
        return f"{head}\r\n{body}".encode()

    async def _pieces(self, reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
        """The chunks of the answer, as soon as it is awake."""
        self._asleep.set()
        await self._awake.wait()
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield (await reader.readexactly(size + 2))[:-2]

    def _note(self, seq: int, told: Told, *, is_snapshot: bool) -> None:
        if is_snapshot:
            told = told._replace(piece="", whole=(told.whole or "") + told.piece)
        piece = hash(told.piece) if told.piece else None
        whole = hash(told.whole) if told.whole else None
        self.seen.append(Seen(seq, piece, whole, told.end))
        self.end = told.end
        if self.late_s is not None and told.piece:
            now = time.monotonic()
            self.late_s += [now - sent for _, sent in pieces_of(told.piece)]


async def _items(tongue: Tongue, pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, Told]]:
    """What whole items tell, by their numbers: the frames up to the one that has the number, as one."""
    held, before = b"", Told()
    async for piece in pieces:
        *whole, held = (held + piece).split(b"\n\n")
        for each in whole:
            fields = dict(line.split(b": ", 1) for line in each.split(b"\n") if line and not line.startswith(b":"))
            if b"data" not in fields:
                continue
            told = tongue.reads(fields.get(b"event", b"").decode(), json.loads(fields[b"data"]))
            if told is None:
                continue
            if b"id" in fields:
                yield int(fields[b"id"]), told._replace(whole=before.whole or told.whole)
                before = Told()
            else:
                before = Told(whole=(before.whole or "") + (told.whole or "") + told.piece)


def pieces_of(words: str) -> list[tuple[int, float]]:
    """The number of each piece in some words of the streaming agent, and when it was sent."""
    found = (each.rstrip("x").split("@") for each in words.split())
    return [(int(number), float(sent)) for number, sent in found]


class Reading:
    """Readers that read; made by `reading`."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], Reader] = {}

    def begin(self, readers: Sequence[Reader]) -> None:
        """Have these read too."""
        self._running |= {asyncio.ensure_future(each.run()): each for each in readers}

    def check(self) -> None:
        """Raises what went wrong with one of them, if something did."""
        for task in self._running:
            if task.done():
                task.result()

    async def finish(self, within_s: float) -> None:
        """Wait until each has seen its end. Raises AssertionError for those that do not."""
        _, waiting = await asyncio.wait(self._running, timeout=within_s)
        self.check()
        left = [f"{self._running[task].name} after {self._running[task].last}" for task in waiting]
        assert not left, f"to {len(left)} readers the end is missing: {left[:SHOWN]}"

    async def stop(self) -> None:
        """Let them all go."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


@contextlib.asynccontextmanager
async def reading() -> AsyncGenerator[Reading]:
    """Readers, to be begun within the block; nobody reads after it."""
    made = Reading()
    try:
        yield made
    finally:
        await made.stop()


def stored_of(connection: Connection, call_id: str) -> Stored:
    """The call as it stands in the file, ended."""
    words: dict[int, str] = {}
    end, last = "", 0
    for happened in tasks.events(connection, call_id, 0, codec.MAX_SEQ):
        event, last = happened.event, happened.seq
        if isinstance(event, ArtifactChunk):
            words[last] = "".join(part.text for part in event.artifact.parts if isinstance(part, Text))
        elif isinstance(event, StatusChanged) and event.state in FINAL:
            end = event.state.value
    return Stored(words, end, last)


def complaints(reader: Reader, stored: Stored) -> list[str]:
    """What a reader saw that it should not have, and what it missed; none of it is allowed."""
    numbers = [each.seq for each in reader.seen]
    first = numbers[0] if reader.first is None else reader.first
    found: list[str] = []
    if twice := [number for number, count in Counter(numbers).items() if count > 1]:
        found.append(f"{len(twice)} events came twice: {twice[:SHOWN]}")
    if missing := sorted({each for each in (*stored.words, stored.last) if each > first} - set(numbers)):
        found.append(f"{len(missing)} events are missing: {missing[:SHOWN]}")
    if numbers != sorted(numbers):
        found.append("the order is not that of the numbers")
    if (reader.end, numbers[-1]) != (stored.end, stored.last):
        found.append(f"it ended as {reader.end} at {numbers[-1]}, and is {stored.end} at {stored.last}")
    found += _strange_words(reader, stored)
    return [f"{reader.name}: {each}" for each in found]


def _strange_words(reader: Reader, stored: Stored) -> list[str]:
    strange = [each.seq for each in reader.seen if not _is_as_stored(each, stored)]
    return [f"what {len(strange)} events say is not what is stored: {strange[:SHOWN]}"] if strange else []


def _is_as_stored(seen: Seen, stored: Stored) -> bool:
    if seen.whole is not None:
        return seen.whole == hash("".join(words for seq, words in stored.words.items() if seq <= seen.seq))
    words = stored.words.get(seen.seq)
    return seen.piece == (hash(words) if words else None)
