"""Streamed answers: bytes as they come, a bounded buffer, and an end that is always noticed."""

import asyncio

import pytest

from dragoman.net import Client, Reach
from dragoman.net.body import HIGH_BYTES
from tests.unit.net.servers import (
    Line,
    ManualClock,
    Run,
    always,
    client_of,
    failure,
    get,
    once,
    serving,
    silent,
    sockets_open,
    soon,
    until,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def read_all(client: Client, url: str, deadline: float) -> bytes:
    async with client.stream(get(url), deadline=deadline) as answer:
        return b"".join([part async for part in answer.chunks])


def test_parts_arrive_before_the_answer_is_complete(run: Run) -> None:
    async def scenario() -> None:
        go = asyncio.Event()

        async def script(line: Line) -> None:
            while await line.request():
                line.answer(HEAD)
                for word in (b"one", b"two"):
                    line.answer(chunk(word))
                    await go.wait()
                    go.clear()
                line.answer(b"0\r\n\r\n")

        async with serving(script) as server, client_of() as client:
            for _ in range(2):
                async with client.stream(get(server.url), deadline=soon()) as answer:
                    assert (answer.status, answer.headers[b"content-type"]) == (200, b"text/event-stream")
                    for word in (b"one", b"two"):
                        assert await anext(answer.chunks) == word
                        go.set()
                    assert [part async for part in answer.chunks] == []
            assert server.accepted == 1

    run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + chunk(b"abc") + chunk(b"defg") + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nabcdefg",
        b"HTTP/1.1 200 OK\r\n\r\nabcdefg",
    ],
)
def test_every_framing_is_streamed(run: Run, answer: bytes) -> None:
    async def scenario() -> None:
        async with serving(once(answer)) as server, client_of() as client:
            assert await read_all(client, server.url, soon()) == b"abcdefg"

    run(scenario())


def test_a_slow_reader_slows_the_peer_and_loses_nothing(run: Run) -> None:
    size = 64 * 1024 * 1024

    async def scenario() -> None:
        written = 0

        async def script(line: Line) -> None:
            nonlocal written
            while await line.request():
                line.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                for _ in range(size // 65536):
                    line.answer(b"x" * 65536)
                    await line.writer.drain()
                    written += 65536

        async with serving(script) as server, client_of() as client:
            for _ in range(2):
                async with client.stream(get(server.url), deadline=soon()) as answer:
                    await anext(answer.chunks)
                    before = -1
                    while before != written:
                        before = written
                        for _ in range(20):
                            await asyncio.sleep(0.001)
                    # The kernel's buffers on both sides are a few MiB; the rest must still be with the peer.
                    assert written < size // 2
                    largest = rest = 0
                    async for part in answer.chunks:
                        rest += len(part)
                        largest = max(largest, len(part))
                    assert size - HIGH_BYTES <= rest < size
                    assert largest <= 2 * HIGH_BYTES
                written = 0
            # The last bytes fitted into the buffer while reading was paused: the connection reads again.
            assert server.accepted == 1

    run(scenario())


def test_a_connection_whose_last_bytes_filled_the_buffer_reads_again(run: Run) -> None:
    size = HIGH_BYTES + 1

    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
        async with serving(always(answer)) as server, client_of() as client:
            async with client.stream(get(server.url), deadline=soon()) as streamed:
                await until(lambda: client.figures()[server.url[:-1]].idle == 1)
                assert len((await client.send(get(server.url), deadline=soon())).body) == size
                assert sum([len(part) async for part in streamed.chunks]) == size
            assert server.accepted == 1

    run(scenario())


def test_closing_the_iterator_aborts_the_connection(run: Run) -> None:
    async def endless(line: Line) -> None:
        await line.request()
        line.answer(HEAD + chunk(b"one"))
        await line.closed()

    async def scenario() -> None:
        before = sockets_open()
        async with serving(endless) as server, client_of() as client:
            async with client.stream(get(server.url), deadline=soon()) as answer:
                assert await anext(answer.chunks) == b"one"
                assert server.open == 1
            await until(lambda: server.open == 0)
            shown = client.figures()[server.url[:-1]]
            assert (shown.open, shown.failed) == (0, {})
            assert [part async for part in answer.chunks] == []
        await until(lambda: sockets_open() == before)

    run(scenario())


def test_cancelling_a_reader_aborts_the_connection(run: Run) -> None:
    async def endless(line: Line) -> None:
        await line.request()
        line.answer(HEAD + chunk(b"one"))
        await line.closed()

    async def scenario() -> None:
        for script in (endless, silent):
            async with serving(script) as server, client_of() as client:
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(read_all(client, server.url, soon()))
                    await until(lambda server=server: server.open == 1)
                    for _ in range(5):
                        await asyncio.sleep(0)
                    reading.cancel()
                await until(lambda server=server: server.open == 0)
                assert client.figures()[server.url[:-1]].open == 0

    run(scenario())


@pytest.mark.parametrize(
    ("rest", "kind"),
    [(b"zz\r\n", Reach.PROTOCOL), (b"", Reach.RESET), (b"0\r\n\r\nHTTP/1.1 200 OK\r\n", Reach.PROTOCOL)],
)
def test_what_arrived_is_read_before_the_error(run: Run, rest: bytes, kind: Reach) -> None:
    async def scenario() -> None:
        async with (
            serving(once(HEAD + chunk(b"one") + rest)) as server,
            client_of() as client,
            client.stream(get(server.url), deadline=soon()) as answer,
        ):
            assert await anext(answer.chunks) == b"one"
            error = await failure(anext(answer.chunks))
            assert (error.kind, error.sent) == (kind, True)

    run(scenario())


def test_silence_between_bytes_has_its_own_limit(run: Run) -> None:
    async def script(line: Line) -> None:
        await line.request()
        line.answer(HEAD + chunk(b"one"))
        await line.closed()

    async def scenario() -> None:
        clock = ManualClock()
        async with serving(script) as server, client_of(clock=clock) as client:
            for idle_s, deadline_s in ((3.0, 600.0), (600.0, 3.0)):
                deadline = clock.monotonic() + deadline_s
                async with client.stream(get(server.url), deadline=deadline, idle_s=idle_s) as answer:
                    assert await anext(answer.chunks) == b"one"
                    clock.advance(2.8)
                    assert server.open == 1
                    clock.advance(0.4)
                    assert (await failure(anext(answer.chunks))).kind is Reach.TIMEOUT

    run(scenario())


def test_a_stream_that_never_starts_times_out(run: Run) -> None:
    async def scenario() -> None:
        async with serving(silent) as server, client_of() as client:
            error = await failure(read_all(client, server.url, soon(0.2)))
            assert (error.kind, error.sent) == (Reach.TIMEOUT, True)

    run(scenario())


def test_a_dead_kept_connection_is_replaced_for_a_repeatable_stream(run: Run) -> None:
    async def script(line: Line) -> None:
        await line.request()
        line.answer()
        if line.number > 1:
            await line.closed()
        await line.request()

    async def scenario() -> None:
        async with serving(script) as server, client_of() as client:
            await client.send(get(server.url), deadline=soon())
            async with client.stream(get(server.url), deadline=soon(), repeatable=True) as answer:
                assert [part async for part in answer.chunks] == [b"ok"]
            assert server.accepted == 2

    run(scenario())


def test_the_connection_of_a_finished_stream_serves_again(run: Run) -> None:
    async def scenario() -> None:
        async with serving(always(HEAD + chunk(b"one") + b"0\r\n\r\n")) as server, client_of() as client:
            for _ in range(3):
                assert await read_all(client, server.url, soon()) == b"one"
            assert (await client.send(get(server.url), deadline=soon())).body == b"one"
            assert server.accepted == 1

    run(scenario())
