"""Which requests go past ASGI, and what happens to them there that no other test sees."""

import asyncio
from collections.abc import Iterator

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from dragoman.model.http import HttpReply
from dragoman.ports.clock import SystemClock
from dragoman.server.limits import Limits
from dragoman.server.protocol import BoundedProtocol
from dragoman.server.shortcut import SHORT_BYTES, HotPaths, Serve
from dragoman.server.watch import Watch
from tests.support.raw_app import WENT_SHORT, Receive, Scope, Send, running
from tests.support.rawhttp import Reply, Target, converse
from tests.support.run import run
from tests.unit.server.test_protocol import Recorder


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running("shortcut") as started:
        yield Target.at(started.url)


def only(serve: Serve) -> HotPaths:
    paths = HotPaths()
    paths.open({b"/": serve}.get)
    return paths


def _went_short(reply: Reply) -> bool:
    return f"{WENT_SHORT.decode()}: yes" in reply.headers


@pytest.mark.parametrize("size", [0, 1, SHORT_BYTES])
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_plain_request_goes_short_however_its_body_comes(target: Target, size: int, pieces: int) -> None:
    data = target.head(f"Content-Length: {size}") + b"\r\n" + b"x" * size
    step = len(data) // pieces + 1
    (reply,) = converse(target, *(data[at : at + step] for at in range(0, len(data), step)))
    assert reply.status == 200
    assert b'"bytes":%d' % size in reply.body
    assert _went_short(reply)


@pytest.mark.parametrize(
    "request_",
    [
        ("POST", "/", "Transfer-Encoding: chunked", b"1\r\nx\r\n0\r\n\r\n"),
        ("POST", "/", "Content-Length: 1\r\nX-Twice: a\r\nX-Twice: b", b"x"),
        ("POST", "/", f"Content-Length: {SHORT_BYTES + 1}", b"x" * (SHORT_BYTES + 1)),
        ("POST", "/?query", "Content-Length: 1", b"x"),
        ("POST", "/%2f", "Content-Length: 1", b"x"),
        ("PUT", "/", "Content-Length: 1", b"x"),
        ("GET", "/", "X-Nothing: more", b""),
    ],
    ids=lambda request: f"{request[0]} {request[1]} {request[2]!r}",
)
def test_any_other_request_goes_through_the_application(target: Target, request_: tuple[str, str, str, bytes]) -> None:
    method, path, lines, body = request_
    (reply,) = converse(target, target.head(lines, method=method, path=path) + b"\r\n" + body)
    assert reply.status == 200
    assert not _went_short(reply)


def test_only_the_first_of_requests_sent_at_once_goes_short(target: Target) -> None:
    one = target.head("Content-Length: 1") + b"\r\nx"
    assert [_went_short(reply) for reply in converse(target, one * 3, until_closed=True)] == [True, False, False]


def test_a_client_that_wants_the_connection_closed_gets_it_closed(target: Target) -> None:
    (reply,) = converse(target, target.head("Content-Length: 1", "Connection: close") + b"\r\nx", until_closed=True)
    assert _went_short(reply)
    assert "connection: close" in reply.headers


@pytest.mark.parametrize("leaves", ["in its body", "before its answer"])
def test_nothing_is_written_to_a_client_that_left_and_nothing_stays_behind(leaves: str) -> None:
    asked: list[bytes] = []

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("not the long way")

    async def scenario() -> None:
        let_go = asyncio.Event()

        async def serve(_headers: dict[bytes, bytes], body: bytes, _: str) -> HttpReply:
            asked.append(body)
            await let_go.wait()
            return HttpReply(status=200, headers={b"content-length": b"2"}, body=b"ok")

        config, state = Config(app, log_config=None, lifespan="off", proxy_headers=False), ServerState()
        watch = Watch(Limits(), SystemClock(), public=False)
        protocol = BoundedProtocol(app, watch, config, state, {}, hot_paths=only(serve))
        protocol.connection_made(transport)
        body = b"h" if leaves == "in its body" else b"hi"
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n" + body)
        await asyncio.sleep(0)
        protocol.connection_lost(None)
        let_go.set()
        await asyncio.gather(*state.tasks)
        assert not state.tasks

    transport = Recorder()
    run(scenario())
    assert transport.writes == []
    assert asked == ([] if leaves == "in its body" else [b"hi"])


def test_head_and_body_leave_in_one_write() -> None:
    async def scenario() -> None:
        async def serve(_headers: dict[bytes, bytes], body: bytes, _: str) -> HttpReply:
            return HttpReply(status=200, headers={b"content-length": b"2"}, body=body)

        async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
            raise AssertionError("not the long way")

        config, state = Config(app, log_config=None, lifespan="off", proxy_headers=False), ServerState()
        watch = Watch(Limits(), SystemClock(), public=False)
        protocol = BoundedProtocol(app, watch, config, state, {}, hot_paths=only(serve))
        protocol.connection_made(transport)
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
        await asyncio.gather(*state.tasks)
        protocol.connection_lost(None)

    transport = Recorder()
    run(scenario())
    assert transport.writes == [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"]
