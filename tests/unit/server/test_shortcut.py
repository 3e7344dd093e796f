"""Which requests go past ASGI, and what happens to them there that no other test sees."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping

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
from tests.support.rawhttp import CONNECT_S, Reply, Target, converse, read_reply
from tests.support.run import run
from tests.unit.server.test_protocol import Recorder

App = Callable[[Scope, Receive, Send], Awaitable[None]]


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


def alike(target: Target, body: bytes, *lines: str) -> bytes:
    return target.head(f"Content-Length: {len(body)}", *lines) + b"\r\n" + body


OTHERS: tuple[tuple[Callable[[Target], bytes], int, bool], ...] = (
    (lambda target: alike(target, b"longer than before"), 200, True),
    (lambda target: alike(target, b"x" * (SHORT_BYTES + 1)), 200, False),
    (lambda target: alike(target, b"x", "X-More: yes"), 200, True),
    (lambda target: alike(target, b"x", "Content-Length: 1"), 400, False),
    (lambda target: target.head("Content-Length: 1", method="PUT") + b"\r\nx", 200, False),
    (lambda target: target.head("Content-Length: 1", path="/deaf") + b"\r\nx", 401, False),
    (lambda target: target.head("Content-Length: +1") + b"\r\nx", 400, False),
    (lambda target: target.head("Transfer-Encoding: chunked") + b"\r\n1\r\nx\r\n0\r\n\r\n", 200, False),
    (lambda target: target.head("Content-Length: 0", "Host: again") + b"\r\n", 400, False),
)


@pytest.mark.parametrize(("other", "status", "short"), OTHERS)
def test_behind_requests_alike_any_other_is_judged_for_itself(
    target: Target, other: Callable[[Target], bytes], status: int, short: bool
) -> None:
    with target.connect() as client:
        client.settimeout(CONNECT_S)
        for number in range(5):
            client.sendall(alike(target, b"x" * number))
            reply = read_reply(client)
            assert (reply.status, _went_short(reply)) == (200, True)
            assert b'"bytes":%d' % number in reply.body
        client.sendall(other(target))
        reply = read_reply(client)
        assert (reply.status, _went_short(reply)) == (status, short)
        if status in (200, 401):
            client.sendall(alike(target, b"abc"))
            assert b'"bytes":3' in read_reply(client).body


@pytest.mark.parametrize("cut", [1, 30, -4, -1])
def test_requests_alike_may_come_in_pieces_or_one_behind_the_other(target: Target, cut: int) -> None:
    request = alike(target, b"12345678")
    with target.connect() as client:
        client.settimeout(CONNECT_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(3):
            client.sendall(request)
            assert b'"bytes":8' in read_reply(client).body
        client.sendall(request + request[:cut])
        assert b'"bytes":8' in read_reply(client).body
        client.sendall(request[cut:])
        assert b'"bytes":8' in read_reply(client).body
        client.sendall(request)
        assert b'"bytes":8' in read_reply(client).body


@contextlib.contextmanager
def connected(app: App, serve: Serve) -> Generator[tuple[BoundedProtocol, ServerState, Recorder]]:
    """A client's connection, without a socket."""
    config, state, transport = (
        Config(app, log_config=None, lifespan="off", proxy_headers=False),
        ServerState(),
        Recorder(),
    )
    watch = Watch(Limits(), SystemClock(), public=False)
    protocol = BoundedProtocol(app, watch, config, state, {}, hot_paths=only(serve))
    protocol.connection_made(transport)
    yield protocol, state, transport
    protocol.connection_lost(None)


async def not_the_long_way(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError("not the long way")


def numbered(number: int, body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\nX-Request-ID: id-%d\r\nContent-Length: %d\r\n\r\n%b" % (
        number,
        len(body),
        body,
    )


def test_a_header_that_comes_again_is_not_parsed_again() -> None:
    served: list[tuple[dict[bytes, bytes], bytes]] = []

    async def serve(headers: dict[bytes, bytes], body: bytes, _: str) -> HttpReply:
        served.append((headers, body))
        return HttpReply(status=200, headers={b"content-length": b"2"}, body=b"ok")

    async def scenario() -> None:
        with connected(not_the_long_way, serve) as (protocol, state, _):
            for number in range(4):
                protocol.data_received(numbered(number, b"x" * number))
                if number == 1:
                    protocol.headers = []  # what only the parser fills
                await asyncio.gather(*state.tasks)
            assert protocol.headers == []

    run(scenario())
    assert served == [
        ({b"host": b"a", b"x-request-id": b"id-%d" % number, b"content-length": b"%d" % number}, b"x" * number)
        for number in range(4)
    ]


def test_one_that_comes_again_too_early_waits_for_its_turn() -> None:
    long_way: list[Mapping[str, object]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        long_way.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"later"})

    async def scenario() -> None:
        let_go = asyncio.Event()

        async def serve(_headers: dict[bytes, bytes], body: bytes, _: str) -> HttpReply:
            if body == b"slow":
                await let_go.wait()
            return HttpReply(status=200, headers={b"content-length": b"%d" % len(body)}, body=body)

        with connected(app, serve) as (protocol, state, transport):
            for body in (b"one", b"two", b"slow", b"early"):
                protocol.data_received(numbered(1, body))
                await asyncio.sleep(0)
            let_go.set()
            while state.tasks:
                await asyncio.gather(*state.tasks)
            assert [written.rpartition(b"\n")[2] for written in transport.writes] == [b"one", b"two", b"slow", b"later"]

    run(scenario())
    assert [message["body"] for message in long_way] == [b"early"]


def test_one_for_another_path_in_between_leaves_nothing_behind() -> None:
    there: list[object] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        there.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async def scenario() -> None:
        let_go = asyncio.Event()

        async def serve(_headers: dict[bytes, bytes], body: bytes, _: str) -> HttpReply:
            there.append(body)
            if body == b"slow":
                await let_go.wait()
            return HttpReply(status=200, headers={b"content-length": b"2"}, body=b"ok")

        async def elsewhere(_headers: dict[bytes, bytes], _body: bytes, _: str) -> HttpReply:
            raise AssertionError("that is another path")

        with connected(app, serve) as (protocol, state, _):
            protocol.hot_paths[b"/other"] = elsewhere
            for body in (b"one", b"two", b"slow"):
                protocol.data_received(numbered(1, body))
                await asyncio.sleep(0)
            # It comes while the one before is served, so it waits, and goes the long way.
            protocol.data_received(numbered(1, b"early").replace(b"POST / ", b"POST /other "))
            let_go.set()
            while state.tasks:
                await asyncio.gather(*state.tasks)
            protocol.data_received(numbered(1, b"three"))
            await asyncio.gather(*state.tasks)

    run(scenario())
    assert there == [b"one", b"two", b"slow", "/other", b"three"]


def test_one_that_comes_again_with_a_large_body_goes_the_long_way() -> None:
    sizes: list[int] = []

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        sizes.append(len(body) if isinstance(body, bytes) else -1)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async def serve(_headers: dict[bytes, bytes], _body: bytes, _: str) -> HttpReply:
        return HttpReply(status=200, headers={b"content-length": b"2"}, body=b"ok")

    async def scenario() -> None:
        with connected(app, serve) as (protocol, state, _):
            for size in (1, 2, 3, SHORT_BYTES + 1):
                protocol.data_received(numbered(1, b"x" * size))
                await asyncio.gather(*state.tasks)

    run(scenario())
    assert sizes == [SHORT_BYTES + 1]
