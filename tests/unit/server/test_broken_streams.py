"""A stream that breaks inside the hub says so where its dialect has words for it, and ends."""

import asyncio
from collections.abc import Sequence
from typing import Self

import pytest

from dragoman.dialects.agentvault.streams import error_frame
from dragoman.model.errors import DragomanError
from dragoman.model.task import StreamItem
from dragoman.server.streaming import ByteStream
from tests.support.run import run


class Breaking:
    """The items of a stream whose store has gone."""

    cut = False
    carried = False

    def __init__(self) -> None:
        self.closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[StreamItem]:
        if self.closed:
            raise StopAsyncIteration
        raise OSError("secret: /var/lib/hub.db")

    def stop(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True


def nothing(_: StreamItem) -> bytes:
    return b""


@pytest.mark.req("V-24")
def test_an_event_tells_that_the_stream_broke_and_nothing_of_the_inside() -> None:
    async def scenario() -> None:
        body = ByteStream(Breaking(), nothing, None, error_frame)
        pieces = [piece async for piece in body]
        assert len(pieces) == 1
        assert pieces[0].startswith(b'event: error\ndata: {"code":"')
        assert b"secret" not in pieces[0]

    run(asyncio.wait_for(scenario(), 10))


def test_without_words_for_it_the_connection_breaks() -> None:
    async def scenario() -> None:
        with pytest.raises(OSError, match="secret"):
            await anext(ByteStream(Breaking(), nothing))

    run(asyncio.wait_for(scenario(), 10))


def test_the_error_of_a_broken_stream_has_the_published_shape() -> None:
    assert error_frame(DragomanError("no")) == (
        b'event: error\ndata: {"code":"INTERNAL_ERROR","message":"no","details":{}}\n\n'
    )
