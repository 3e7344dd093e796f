"""An agent that connects by WebSocket: the frames of its session down, what it tells and its heartbeats up."""

import contextlib
import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Final

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as _connect

from tests.end_to_end.test_connect import DONE, accepted, status_of
from tests.end_to_end.world import fresh, tracebacks
from tests.support.hub import HubProcess
from tests.support.raw_connected import CONNECT, RawSession, calling, connect

PATIENCE_S: Final = 15.0
_open: Callable[..., AbstractContextManager[ClientConnection]] = _connect


class Socket:
    """One open WebSocket of a session."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def take(self, event: str) -> dict[str, Any]:
        """The data of the next message down, which has that name."""
        said = json.loads(self.socket.recv(PATIENCE_S))
        assert said["event"] == event, said
        data: dict[str, Any] = said["data"]
        return data

    def say(self, message: Any) -> None:
        self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def tell(self, call: dict[str, Any], *events: tuple[str, dict[str, Any]], first: int = 1) -> None:
        told = [{"n": n, "event": name, "data": data} for n, (name, data) in enumerate(events, first)]
        self.say({"call_id": call["call_id"], "attempt": call["attempt"], "events": told})


@contextlib.contextmanager
def socket_of(hub: HubProcess, session: RawSession, token: str = "") -> Generator[Socket]:
    address = f"ws://127.0.0.1:{hub.port}{CONNECT}?session={session.id}"
    headers = {"Authorization": f"Bearer {token or session.token}"}
    with _open(address, additional_headers=headers, open_timeout=PATIENCE_S, proxy=None) as socket:
        made = Socket(socket)
        assert made.take("hello")["session_id"] == session.id
        yield made


@pytest.mark.req("X-21")
def test_a_call_goes_down_and_its_answer_up_on_one_socket(hub: HubProcess) -> None:
    session = connect(hub, fresh("agt_ws"))
    with socket_of(hub, session) as socket, calling() as callers:
        pending = callers.call(hub, session.agent_id, {"q": 1})
        call = socket.take("call")
        socket.tell(call, ("start", {}), ("chunk", {"content": "a"}))
        assert socket.take("acked") == {"call_id": call["call_id"], "attempt": 1, "acked": 2}
        socket.tell(call, ("chunk", {"content": "x"}), first=5)
        gap = socket.take("refused")
        assert (gap["call_id"], gap["status"], gap["expected"]) == (call["call_id"], 409, 3)
        socket.tell(call, ("complete", {"status": "completed"}), first=3)
        assert socket.take("acked")["acked"] == 3
        assert pending.result().json["result"] == {"text": "a"}
        socket.tell({**call, "attempt": 2}, DONE)
        assert socket.take("refused")["status"] == 410


@pytest.mark.req("X-21")
def test_heartbeats_and_cancels_go_over_the_socket(hub: HubProcess) -> None:
    session = connect(hub, fresh("agt_ws"))
    with socket_of(hub, session) as socket:
        call_id = accepted(hub, session.agent_id)
        call = socket.take("call")
        socket.say({"heartbeat": {"received": 1, "running": [{"call_id": call_id, "attempt": 1}, _GONE]}})
        renewed = socket.take("renewed")
        assert (renewed["session_id"], renewed["keep"], renewed["drop"]) == (session.id, [call_id], ["gone"])
        assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {}).status == 200
        assert socket.take("cancel")["call_id"] == call["call_id"]
    # Another socket goes on after what was received.
    accepted(hub, session.agent_id)
    with socket_of(hub, session) as socket:
        assert socket.take("cancel")["call_id"] == call_id
        second = socket.take("call")
        socket.tell(second, DONE)
        assert socket.take("acked")["acked"] == 1
        assert status_of(hub, second["call_id"])["status"] == "completed"


def test_what_makes_no_sense_is_refused_and_ends_nothing(hub: HubProcess) -> None:
    session = connect(hub, fresh("agt_ws"))
    with socket_of(hub, session) as socket:
        for rubbish in ("", "[]", "{", "3", b"\xff\xfe", "{}", '{"heartbeat": 3}', '{"call_id": 1}', "[" * 100):
            socket.say(rubbish)
            assert socket.take("refused")["status"] == 400
        socket.say({"heartbeat": {"capacity": "x"}})
        assert socket.take("refused")["error"]["code"] == "VALIDATION_ERROR"
        accepted(hub, session.agent_id)
        socket.tell(socket.take("call"), DONE)
        assert socket.take("acked")["acked"] == 1


def test_a_socket_needs_a_session_of_its_own(hub: HubProcess) -> None:
    session = connect(hub, fresh("agt_ws"))
    other = hub.new_key("a2a:receive")
    with pytest.raises(InvalidStatus) as refusal, socket_of(hub, session, other):
        pass
    assert refusal.value.response.status_code == 404  # which looks like one that never was
    session.leave()
    with pytest.raises(InvalidStatus) as refusal, socket_of(hub, session):
        pass
    assert refusal.value.response.status_code == 404


def test_a_second_socket_takes_the_place_of_the_first_and_the_end_of_the_session_ends_it(hub: HubProcess) -> None:
    session = connect(hub, fresh("agt_ws"))
    with socket_of(hub, session) as first, socket_of(hub, session) as second:
        with pytest.raises(ConnectionClosed):
            first.socket.recv(PATIENCE_S)
        session.leave()
        with pytest.raises(ConnectionClosed):
            second.socket.recv(PATIENCE_S)


_GONE: Final = {"call_id": "gone", "attempt": 1}


def test_a_connection_that_ends_before_its_agent_is_answered_breaks_nothing(hub: HubProcess) -> None:
    session = connect(hub, fresh("agt_ws"))
    known = len(tracebacks(hub))
    accepted(hub, session.agent_id)
    with socket_of(hub, session) as socket:
        call = socket.take("call")
    for n in range(1, 21):
        with socket_of(hub, session) as socket:
            socket.tell(call, ("chunk", {"content": "a"}), first=n)
            socket.socket.socket.sendall(b"\x81\x01a")  # No such frame: the connection ends while that is written.
    with socket_of(hub, session) as socket:
        socket.say({"heartbeat": {"received": 1, "running": []}})
        while json.loads(socket.socket.recv(PATIENCE_S))["event"] != "renewed":
            pass
    assert len(tracebacks(hub)) == known
