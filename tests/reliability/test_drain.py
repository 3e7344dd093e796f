import signal
import socket
import time

import pytest

from dragoman.server.listen import AddressInUse
from dragoman.server.run import StartFailed, serve
from tests.support.raw_app import WAYS, Receive, Running, Scope, Send, running
from tests.support.rawhttp import Reply, Target, converse, read_reply


def _ask(started: Running, path: str) -> Reply:
    target = Target.at(started.url, path=path, method="GET")
    return converse(target, target.good())[0]


def _hold(started: Running) -> socket.socket:
    target = Target.at(started.url, path="/hold")
    client = target.connect()
    client.sendall(target.good())
    # An answer on a second connection: the server has read the first one's request by now.
    assert _ask(started, "/").status == 200
    return client


def _wait_until_draining(started: Running) -> Reply:
    until = time.monotonic() + 5
    while (reply := _ask(started, "/")).status != 503:
        assert time.monotonic() < until, "the signal has no effect"
    return reply


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_request_is_finished_and_a_new_one_refused(number: signal.Signals, way: str) -> None:
    with running(way) as started, _hold(started) as held:
        started.tell(number)
        refused = _wait_until_draining(started)
        assert "retry-after: 1" in refused.headers
        assert "connection: close" in refused.headers
        assert _ask(started, "/release").status == 200
        assert read_reply(held).body == b"held"
        assert held.recv(1) == b""
        assert started.ended() == 0
        assert started.process.stderr is not None
        assert started.process.stderr.read() == "closed\n"


def test_a_second_signal_exits_at_once() -> None:
    with running() as started, _hold(started) as held:
        started.tell()
        _wait_until_draining(started)
        started.tell()
        assert started.ended(2.0) == 128 + signal.SIGTERM
        assert held.recv(1) == b""


@pytest.mark.parametrize("way", WAYS)
def test_a_request_that_does_not_end_is_broken_off_after_the_time_to_drain(way: str) -> None:
    with running(way, drain_s=0.5) as started, _hold(started) as held:
        started.tell()
        assert started.ended(5.0) == 0
        assert held.recv(1) == b""


@pytest.mark.parametrize("way", WAYS)
def test_a_body_that_is_still_arriving_when_the_server_stops_is_taken_and_answered(way: str) -> None:
    with running(way) as started:
        target = Target.at(started.url, path="/hold")
        with target.connect() as client:
            client.sendall(target.head("Content-Length: 2") + b"\r\nx")
            assert _ask(started, "/").status == 200
            started.tell()
            _wait_until_draining(started)
            client.sendall(b"x")
            assert _ask(started, "/release").status == 200
            assert read_reply(client).body == b"held"
        assert started.ended() == 0


@pytest.mark.parametrize("way", WAYS)
def test_an_idle_server_stops_without_delay_although_clients_are_connected(way: str) -> None:
    with running(way) as started:
        target = Target.at(started.url)
        with target.connect() as kept, target.connect():
            kept.sendall(target.good())
            assert read_reply(kept).status == 200
            started.tell()
            assert started.ended(2.0) == 0
            assert kept.recv(1) == b""


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port: int = other.getsockname()[1]
        with pytest.raises(AddressInUse, match=f"Port {port} on 127.0.0.1 is in use"):
            serve(_no_app, host="127.0.0.1", port=port)


def test_an_application_that_does_not_start_is_never_announced(capsys: pytest.CaptureFixture[str]) -> None:
    ready: list[str] = []
    with pytest.raises(StartFailed):
        serve(_no_app, host="127.0.0.1", port=0, on_ready=ready.append)
    assert ready == []
    assert "listening" not in capsys.readouterr().err


async def _no_app(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "planned"})
