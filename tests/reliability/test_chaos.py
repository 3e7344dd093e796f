"""The tool itself: each switch of the proxy does what it says, and hurts no longer than it is on."""

import contextlib
import socket
import time
from collections.abc import Generator

import pytest

from tests.support.chaos import ChaosProxy, chaos
from tests.support.stub_server import StubHandler, on_free_port

WORDS = b"x" * 300


class Saying(StubHandler):
    """Says a few words."""

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        self.say(200, {"Connection": "close"}, WORDS)


@pytest.fixture(scope="module")
def wire() -> Generator[ChaosProxy]:
    with on_free_port(Saying) as url, chaos(int(url.rpartition(":")[2])) as proxy:
        yield proxy


def _ask(wire: ChaosProxy, timeout_s: float = 5.0) -> bytes:
    with socket.create_connection(("127.0.0.1", wire.port), timeout=timeout_s) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        said = b""
        while data := client.recv(65_536):
            said += data
        return said


def test_without_a_switch_it_is_a_wire(wire: ChaosProxy) -> None:
    assert _ask(wire).endswith(WORDS)


def test_it_delays_and_splits_and_carries_everything_all_the_same(wire: ChaosProxy) -> None:
    wire.to_client.delay_s, wire.to_client.splits = 0.05, True
    began = time.monotonic()
    assert _ask(wire).endswith(WORDS)
    assert time.monotonic() - began >= 0.05
    wire.to_client.delay_s, wire.to_client.splits = 0.0, False


def test_it_swallows_and_freezes_until_it_is_told_otherwise(wire: ChaosProxy) -> None:
    wire.to_server.discards = True
    with pytest.raises(TimeoutError):
        _ask(wire, 0.1)
    wire.to_server.discards = False
    wire.to_client.freeze()
    with socket.create_connection(("127.0.0.1", wire.port), timeout=0.1) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(TimeoutError):
            client.recv(1)
        wire.to_client.thaw()
        client.settimeout(5)
        assert client.recv(1) == b"H"


def test_it_breaks_off_after_so_many_bytes_and_when_it_is_told_to(wire: ChaosProxy) -> None:
    wire.to_client.drops_after = 40
    with contextlib.suppress(ConnectionResetError):  # an end is as good as a reset
        assert len(_ask(wire)) <= 40
    wire.to_client.drops_after = None
    with socket.create_connection(("127.0.0.1", wire.port), timeout=5) as client:
        client.sendall(b"GET")
        while not wire.connections:
            time.sleep(0.01)  # the only way to see what the proxy's thread does
        time.sleep(0.05)
        wire.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_it_refuses_and_takes_connections_again(wire: ChaosProxy) -> None:
    wire.refuse()
    with pytest.raises(ConnectionRefusedError):
        _ask(wire)
    wire.accept()
    assert _ask(wire).endswith(WORDS)
