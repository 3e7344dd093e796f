import asyncio
import select
import socket
import ssl
from collections.abc import Iterator
from math import inf
from pathlib import Path

import msgspec
import pytest
from uvicorn import Config
from uvicorn.server import ServerState
from websockets.sync.client import connect

from dragoman.ports.clock import SystemClock
from dragoman.server.limits import Limits
from dragoman.server.listen import CannotListen
from dragoman.server.protocol import BoundedProtocol
from dragoman.server.run import Tls, serve
from dragoman.server.watch import Watch
from tests.support.raw_app import SMALL, WAYS, Receive, Running, Scope, Send, running
from tests.support.rawhttp import Reply, Target, converse, good, read_reply
from tests.support.run import run
from tests.support.selfsigned import self_signed


class Counted(msgspec.Struct):
    bytes: int
    headers: list[str]


@pytest.fixture(scope="module", params=WAYS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    with running(request.param) as started:
        yield started


@pytest.fixture
def target(server: Running) -> Target:
    return Target.at(server.url)


def _counted(reply: Reply) -> Counted:
    assert reply.status == 200, reply
    return msgspec.json.decode(reply.body, type=Counted)


class Recorder(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default


@pytest.mark.parametrize("more", [False, True], ids=["with a length", "a stream's first piece"])
def test_head_and_body_leave_in_one_write(more: bool) -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        headers = [] if more else [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await asyncio.sleep(0)
        assert transport.writes == []
        await send({"type": "http.response.body", "body": b"ok", "more_body": more})
        if more:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def serve_one() -> None:
        config = Config(app, log_config=None, lifespan="off", proxy_headers=False)
        state = ServerState()
        watch = Watch(Limits(), SystemClock(), public=False)
        protocol = BoundedProtocol(app, watch, config, state, {})
        protocol.connection_made(transport)
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
        await asyncio.gather(*state.tasks)
        protocol.connection_lost(None)

    transport = Recorder()
    run(serve_one())
    if more:
        chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"
        assert transport.writes == [chunked, b"0\r\n\r\n"]
    else:
        assert transport.writes == [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"]


def test_the_time_of_a_header_and_of_a_body_runs_from_their_first_byte_alone() -> None:
    async def app(_: Scope, __: Receive, ___: Send) -> None:
        await asyncio.Event().wait()

    async def due_after(*pieces: bytes) -> list[float]:
        state, watch = ServerState(), Watch(Limits(), SystemClock(), public=False)
        protocol = BoundedProtocol(app, watch, Config(app, log_config=None, lifespan="off"), state, {})
        protocol.connection_made(Recorder())
        connected, due = watch.now, list[float]()
        for at, piece in enumerate(pieces, start=1):
            watch.now = connected + at
            protocol.data_received(piece)
            due.append(round(protocol.read_deadline - connected, 3))
        protocol.connection_lost(None)
        for task in state.tasks:
            task.cancel()
        return due

    head, header, body = b"POST / HTTP/1.1\r\nHost: a\r\n", b"Content-Length: 4\r\n\r\n", b"hi"
    whole = head + header + body + body
    # The first header's time runs from the connection (10 s), a body's from the end of its header (30 s).
    assert run(due_after(head, header, body, body)) == [10.0, 32.0, 32.0, inf]
    assert run(due_after(whole, head, header, body, body)) == [inf, 12.0, 33.0, 33.0, inf]
    assert run(due_after(whole + head, header + body, body + whole + head + header)) == [11.0, 32.0, 33.0]


def test_an_answer_without_length_is_chunked(server: Running) -> None:
    target = Target.at(server.url, path="/stream", method="GET")
    reply = converse(target, target.good())[0]
    assert reply.body == b"one two three"
    assert "transfer-encoding: chunked" in reply.headers


def test_an_answer_larger_than_every_buffer_arrives_whole(server: Running) -> None:
    target = Target.at(server.url, path="/big", method="GET")
    assert converse(target, target.good())[0].body == b"x" * 1024 * 1024


def test_head_is_answered_with_the_length_and_no_body(target: Target) -> None:
    request = target.head("Connection: close", method="HEAD", path="/big") + b"\r\n"
    with target.connect() as client:
        client.sendall(request)
        seen = b"".join(iter(lambda: client.recv(4096), b""))
    assert seen == b"HTTP/1.1 200 OK\r\ncontent-length: 1048576\r\nconnection: close\r\n\r\n"


def test_an_application_that_fails_after_its_head_is_a_500(server: Running) -> None:
    target = Target.at(server.url, path="/fail")
    (reply,) = converse(target, target.good(), until_closed=True)
    assert reply.status == 500
    assert b'"INTERNAL_ERROR"' in reply.body


def test_a_client_that_expects_a_continue_gets_one_before_its_answer(target: Target) -> None:
    with target.connect() as client:
        client.sendall(target.head("Content-Length: 3", "Expect: 100-continue", "Connection: close") + b"\r\n")
        assert read_reply(client).status == 100
        client.sendall(b"abc")
        assert _counted(read_reply(client)).bytes == 3


def test_requests_sent_at_once_are_answered_in_order(target: Target) -> None:
    bodies = [target.head(f"Content-Length: {size}") + b"\r\n" + b"x" * size for size in (1, 2, 70_000, 3)]
    last = target.head("Connection: close", "Content-Length: 4") + b"\r\nxxxx"
    found = converse(target, b"".join(bodies) + last, until_closed=True)
    assert [_counted(reply).bytes for reply in found] == [1, 2, 70_000, 3, 4]


def test_a_good_request_is_answered_although_rubbish_follows_it(target: Target) -> None:
    found = converse(target, target.good() + b"\x00rubbish\r\n\r\n", until_closed=True)
    assert [reply.status for reply in found] == [200]


def test_a_good_request_is_answered_although_a_url_that_is_none_follows_it(target: Target) -> None:
    behind = b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n"
    assert [reply.status for reply in converse(target, target.good() + behind)] == [200]


def test_http_1_0_is_answered_and_closed(target: Target) -> None:
    (reply,) = converse(target, f"GET / HTTP/1.0\r\n{target.host_line}\r\n\r\n".encode(), until_closed=True)
    assert reply.status == 200
    assert "connection: close" in reply.headers


@pytest.mark.parametrize("together", [True, False])
def test_an_offer_of_http_2_is_declined_and_the_body_kept(target: Target, together: bool) -> None:
    lines = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Content-Length: 3")
    head = target.head(*lines) + b"\r\n"
    pieces = (head + b"abc",) if together else (head, b"abc")
    assert _counted(converse(target, *pieces)[0]).bytes == 3


def test_a_trailer_adds_no_header(target: Target) -> None:
    body = b"3\r\nabc\r\n0\r\nAuthorization: Bearer other\r\n\r\n"
    counted = _counted(converse(target, target.head("Transfer-Encoding: chunked") + b"\r\n" + body)[0])
    assert counted.bytes == 3
    assert "authorization" not in counted.headers


@pytest.mark.parametrize(
    "body",
    [b"1;" + b"a" * 1024 * 1024, b"0\r\nX: " + b"a" * 1024 * 1024, b"0\r\n" + b"X: a\r\n" * 200_000],
    ids=["an endless chunk extension", "an endless trailer", "endless trailers"],
)
def test_what_is_no_content_of_a_chunked_body_is_bounded(target: Target, body: bytes) -> None:
    (reply,) = converse(target, target.head("Transfer-Encoding: chunked") + b"\r\n" + body, until_closed=True)
    assert reply.status == 400


@pytest.mark.parametrize("value", ["gzip, chunked", "identity\r\nTransfer-Encoding: chunked"])
def test_chunked_is_the_one_transfer_encoding(target: Target, value: str) -> None:
    head = target.head(f"Transfer-Encoding: {value}") + b"\r\n0\r\n\r\n"
    (reply,) = converse(target, head, until_closed=True)
    assert reply.status == 400
    assert b'"INVALID_TRANSFER_ENCODING"' in reply.body


@pytest.mark.parametrize("request_line", ["GET / HTTP/2.0", "CONNECT a:80 HTTP/1.1", "GET /", "GET http:// HTTP/1.1"])
def test_an_odd_request_line_is_refused(target: Target, request_line: str) -> None:
    (reply,) = converse(target, f"{request_line}\r\n{target.host_line}\r\n\r\n".encode(), until_closed=True)
    assert reply.status == 400


def test_a_header_of_100_lines_and_a_url_of_8_kib_pass_and_no_more(target: Target) -> None:
    def status(lines: int, url: int) -> int:
        names = [f"X-{number}: v" for number in range(lines - 2)]
        return converse(target, target.head(*names, "Content-Length: 0", path="/" + "a" * (url - 1)) + b"\r\n")[
            0
        ].status

    assert status(100, 8 * 1024) == 200
    assert status(101, 10) == 431
    assert status(10, 8 * 1024 + 1) == 414


def test_a_large_header_behind_another_request_is_refused_too(target: Target) -> None:
    large = target.head("X: " + "a" * 33 * 1024, "Content-Length: 0") + b"\r\n"
    found = converse(target, target.good() + large, until_closed=True)
    assert [reply.status for reply in found] == [200]


def test_a_client_that_is_refused_in_its_body_can_read_why_and_is_not_cut_off_while_it_sends(target: Target) -> None:
    with target.connect() as client:
        client.sendall(target.head(f"Content-Length: {3 << 20}") + b"\r\n" + b"x" * (1 << 20) + b"x")
        assert select.select([client], [], [], 5)[0]
        for _ in range(20):
            client.sendall(b"x" * 1024)
        assert read_reply(client).status == 413
        assert client.recv(1) == b""


def test_an_answer_before_the_body_is_the_only_one(server: Running) -> None:
    target = Target.at(server.url, path="/deaf")
    found = converse(target, target.head("Content-Length: 100") + b"\r\nabc", until_closed=True)
    assert [reply.status for reply in found] == [401]


def test_tls_is_served_and_a_client_that_never_shakes_hands_is_dropped(tmp_path: Path) -> None:
    tls = self_signed(tmp_path)
    context = ssl.create_default_context(cafile=tls.certificate)
    with running(tls=tls) as started:
        target = Target.at(started.url)
        with target.connect() as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.sendall(target.good())
            assert read_reply(client).status == 200
        with target.connect() as silent:
            assert silent.recv(1) == b""


def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("rubbish")
    tls = Tls(certificate=tmp_path / "cert.pem", key=tmp_path / "none.pem")
    with pytest.raises(CannotListen, match=r"cert\.pem"):
        serve(_none, host="127.0.0.1", port=0, tls=tls)


async def _none(scope: Scope, receive: Receive, send: Send) -> None:
    pass


def test_a_connection_that_rests_is_closed_without_a_word(target: Target) -> None:
    found = converse(target, target.good(), until_closed=True)
    assert [reply.status for reply in found] == [200]


def test_connections_over_the_cap_are_hung_up_and_a_websocket_counts() -> None:
    limits = msgspec.structs.replace(SMALL, connections=1)
    with running(limits=limits) as started:
        target = Target.at(started.url)
        with connect(started.url.replace("http", "ws", 1)) as websocket:
            websocket.send("still here?")
            assert websocket.recv(5) == "still here?"
            with pytest.raises(ConnectionError), target.connect() as second:
                second.sendall(target.good())
                read_reply(second)
        _until_good(target)


def _until_good(target: Target) -> None:
    for _ in range(200):
        try:
            if good(target):
                return
        except ConnectionError:
            continue
    raise AssertionError("the seat of the closed connection was not given back")


def test_a_socket_is_given_back_when_its_client_is_refused(server: Running, target: Target) -> None:
    with target.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(b"rubbish\r\n\r\n")
        reply = read_reply(client)
        assert reply.status == 400
        assert "connection: close" in reply.headers
        assert msgspec.json.decode(reply.body) == {
            "error": {"code": "INVALID_REQUEST", "message": "This is not a well-formed HTTP/1.1 request."}
        }
        assert client.recv(1) == b""
