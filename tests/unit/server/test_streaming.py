"""A stream as bytes, and as the messages of ASGI for servers that have no better way."""

import asyncio
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from dragoman.model.task import Snapshot, StreamItem
from dragoman.server.streaming import COME_BACK, ByteStream, StreamReply, send_stream
from tests.support.growing import World, world
from tests.support.run import run

PATIENCE_S = 10.0


def numbered(item: StreamItem) -> bytes:
    """Frames of a dialect that says only numbers, and has no word for the third event."""
    seq = item.task.last_seq if isinstance(item, Snapshot) else item.seq
    return b"" if seq == 3 else b"%d " % seq


def stream_of(w: World) -> ByteStream[StreamItem]:
    return ByteStream(w.reader(after=0), numbered)


class Connection:
    """What an ASGI server gives an application: a client that leaves when the test says so."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue(100)
        self.gone = asyncio.Event()

    async def receive(self) -> MutableMapping[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    def sending(self, reply: StreamReply) -> asyncio.Future[None]:
        return asyncio.ensure_future(send_stream(reply, self.receive, self.sent.put))


def test_what_has_gathered_leaves_together_and_what_has_no_word_not_at_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            await w.words("a", "b")
            body = stream_of(w)
            assert await anext(body) == b"1 2 "
            waiting = asyncio.ensure_future(anext(body))
            await w.words("c")
            assert await waiting == b"4 "
            await w.end()
            assert [piece async for piece in body] == [b"5 "]
            assert not body.cut

    run(scenario())


def test_a_hub_that_stops_sends_its_readers_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            body = stream_of(w)
            assert await anext(body) == b"1 "
            waiting = asyncio.ensure_future(anext(body))
            await asyncio.sleep(0)
            body.stop(carried=False)
            assert await waiting == COME_BACK
            assert [piece async for piece in body] == []

    run(scenario())


def test_asgi_gets_the_head_at_once_each_piece_and_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            client = Connection()
            reply = StreamReply(headers={b"content-type": b"text/event-stream"}, body=stream_of(w))
            sending = client.sending(reply)
            async with asyncio.timeout(PATIENCE_S):
                assert (await client.sent.get())["type"] == "http.response.start"
                assert (await client.sent.get())["more_body"]
                assert (await client.sent.get())["body"] == b"1 "
                await w.words("a")
                assert (await client.sent.get())["body"] == b"2 "
                await w.end()
                assert await client.sent.get() == {"type": "http.response.body", "body": b""}
                await sending

    run(scenario())


def test_asgi_a_client_that_leaves_ends_its_reader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            client = Connection()
            reply = StreamReply(headers={}, body=stream_of(w))
            sending = client.sending(reply)
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(3):
                    await client.sent.get()
                client.gone.set()
                await sending
            assert not w.bus.wants(f"ev.{w.task.id}")

    run(scenario())
