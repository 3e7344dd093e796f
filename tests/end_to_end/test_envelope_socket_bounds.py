"""The envelope's WebSocket at its bounds: who may open one, what it takes at most, and how it ends."""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.end_to_end.world import eventually, holds, join, rss_bytes, tracebacks
from tests.support.envelope_socket import PATH, joined, peer, working
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.plain_uvicorn import plain_hub
from tests.support.platform_agent import PlatformAgent

MIB: Final = 1024 * 1024
SHRUNK: Final = {
    "DRAGOMAN_LIMITS_STALLED_READER_S": "1",
    "DRAGOMAN_LIMITS_CALL_BODY_MIB": "12",
}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("bounds") / "data").start(SHRUNK)
    yield hub
    hub.stop()
    assert tracebacks(hub) == []


def refused(hub: HubProcess, name: str | None = None, **how: Any) -> tuple[int, Any]:
    """The status and body of a handshake's refusal."""
    with pytest.raises(InvalidStatus) as caught, peer(hub, name, **how):
        pass
    reply = caught.value.response
    return reply.status_code, json.loads(reply.body) if reply.body else None


def letters(hub: HubProcess, name: str, count: int, size: int = 0) -> None:
    """So many calls for an agent, each with an input of about that size."""
    for number in range(count):
        body = {"skill": "echo", "input": {"n": number, "text": "x" * size}, "target_agent_id": name}
        assert hub.post("/v1/a2a/call/async", body).status == 202


def waiting(hub: HubProcess, name: str) -> list[Any]:
    messages: list[Any] = hub.get(f"/a2a/messages?agent={name}").json["messages"]
    return messages


# -- who


@pytest.mark.req("E-30")
def test_only_who_may_speak_for_an_agent_opens_its_mailbox(hub: HubProcess) -> None:
    name, token = joined(hub)
    other, others_token = joined(hub)
    callers_key, receivers_key = hub.new_key("a2a:call"), hub.new_key("a2a:receive")
    bearer = {"Authorization": f"Bearer {token}"}
    credentials: list[dict[str, Any]] = [
        {"token": token},
        {"headers": {"X-Api-Key": token}},
        {"headers": {"X-Api-Key": token, **bearer}},
        {"token": ADMIN_TOKEN},
    ]
    for good in credentials:
        with peer(hub, name, **good) as worker:
            worker.settle()
    for key in (callers_key, receivers_key):
        with peer(hub, token=key):
            pass  # a mailbox of its own
    wrong: list[tuple[int, str, dict[str, Any]]] = [
        (401, "AUTHENTICATION_REQUIRED", {}),
        (401, "AUTHENTICATION_REQUIRED", {"token": "rubbish"}),
        (401, "AUTHENTICATION_REQUIRED", {"headers": {"X-Api-Key": others_token, **bearer}}),
        (401, "AUTHENTICATION_REQUIRED", {"headers": {"Authorization": token}}),
        (403, "CAPABILITY_MISMATCH", {"token": others_token}),
        (403, "CAPABILITY_MISMATCH", {"token": callers_key}),
        (403, "CAPABILITY_MISMATCH", {"token": hub.new_key("a2a:register")}),
        (403, "CAPABILITY_MISMATCH", {"token": token, "origin": "https://evil.example"}),
        (421, "INVALID_MESSAGE_FORMAT", {"token": token, "host_name": "evil.example"}),
    ]
    for status, code, bad in wrong:
        seen, body = refused(hub, name, **bad)
        assert (seen, body["error_code"], body["type"]) == (status, code, "error"), bad
    assert refused(hub, "not a name!", token=token)[0] == 400
    assert refused(hub, token=hub.new_key("a2a:register"))[0] == 403
    assert refused(hub, token=token, path="/a2a/nothing/ws") == (404, None)
    with peer(hub, name, token=token, origin=f"http://127.0.0.1:{hub.port}") as worker:
        worker.settle()
    # What comes over it is judged by the same credential: it does not speak for others.
    with peer(hub, token=token) as worker:
        worker.id = other
        assert worker.ask(worker.assignment(name, {}))["error_code"] == "CAPABILITY_MISMATCH"


@pytest.mark.req("E-30")
def test_a_revoked_key_hears_nothing_more(hub: HubProcess) -> None:
    name, token = joined(hub)
    with peer(hub, token=token) as worker:
        worker.id = name
        worker.settle()
        assert hub.request("DELETE", f"/v1/keys/{token.split('_')[1]}").status == 200
        refusal = worker.ask(worker.envelope(name, "ping", {"nonce": "n"}))
        assert refusal["error_code"] == "AUTHENTICATION_REQUIRED"
        letters(hub, name, 1)
        assert worker.closed() == 1008
    assert eventually(lambda: waiting(hub, name), "the letter is still there")


@pytest.mark.req("E-30")
def test_without_authentication_everybody_is_the_local_operator_on_uvicorn_as_shipped(tmp_path: Path) -> None:
    with plain_hub(tmp_path / "data") as hub:
        name, _ = joined(hub)
        stranger = str(uuid4())
        with working(hub, name) as seen, peer(hub, stranger) as caller:
            sent = caller.assignment(name, {"text": "hello"})
            assert caller.ask(sent)["status"] == "success"
            assert caller.take("task_completion")["payload"]["result"] == {"text": "hello"}
        assert len(seen) == 1
        assert refused(hub, origin="https://evil.example")[0] == 403
        assert refused(hub, path="/a2a/nothing/ws")[0] == 404


# -- how much


@pytest.mark.req("E-30")
def test_a_frame_beyond_the_size_of_a_call_ends_the_connection(hub: HubProcess) -> None:
    name, token = joined(hub)
    with peer(hub, token=token) as worker:
        worker.id = name
        # Without a nonce: it is refused in a few words, so that its answer need not be as large.
        fits = worker.envelope(name, "ping", {"echo": "x" * (12 * MIB - 1000)})
        assert worker.ask(fits)["error_code"] == "PAYLOAD_VALIDATION_FAILED"
        # The hub does not read on: who still sends may be cut off before it reads why.
        with contextlib.suppress(ConnectionClosed):
            worker.say("x" * (12 * MIB + 1))
        assert worker.closed() in (1009, 1006)


@pytest.mark.req("E-30")
def test_who_acknowledges_nothing_gets_so_much_and_no_more_and_is_closed(hub: HubProcess) -> None:
    for size, most in ((0, 256), (100_000, 10)):
        name, token = joined(hub)
        letters(hub, name, most + 4, size)
        with peer(hub, token=token, max_queue=None) as worker:
            came = 0
            with contextlib.suppress(ConnectionClosed):
                while worker.socket.recv(10):
                    came += 1
            assert worker.closed() == 1013
        assert came == most
        done: set[int] = set()
        with peer(hub, token=token) as worker:
            while len(done) < most + 4:
                done.add(worker.take()["payload"]["payload"]["n"])


@pytest.mark.req("E-30")
def test_a_reader_that_takes_nothing_is_cut_off(hub: HubProcess) -> None:
    name, token = joined(hub)
    before = rss_bytes(hub)
    gone = threading.Event()
    with peer(hub, token=token, max_queue=1, close_timeout=1) as worker:
        worker.id = name
        ping = json.dumps(worker.envelope(name, "ping", {"nonce": "n", "echo": "x" * (MIB // 2)}))

        def talk_without_listening() -> None:
            try:
                while True:
                    worker.socket.send(ping)
            except (ConnectionClosed, OSError):
                gone.set()

        threading.Thread(target=talk_without_listening, daemon=True).start()
        assert gone.wait(10)
        assert rss_bytes(hub) - before < 100 * MIB
    with peer(hub, token=token) as worker:
        worker.id = name
        worker.settle()


# -- how it ends


@pytest.mark.req("E-30")
def test_a_hub_that_stops_says_so_and_takes_no_further_connection(tmp_path: Path, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    hub = HubProcess(tmp_path / "data").start()
    try:
        name, token = joined(hub)
        slow = join(hub, agent)["id"]
        running = threading.Thread(target=lambda: hub.call("echo", {"a": 1}, slow))
        running.start()
        assert agent.arrived.wait(5)
        with peer(hub, token=token) as worker:
            worker.id = name
            worker.settle()
            os.kill(hub.pid, signal.SIGTERM)
            assert worker.closed() == 1012
        status, body = refused(hub, token=token)
        assert (status, body["payload"]["details"]["reason"]) == (503, "draining")
        agent.release.set()
        running.join(10)
        eventually(lambda: "State:\tZ" in Path(f"/proc/{hub.pid}/status").read_text(), "the hub has ended")
        assert hub.stop() == 0
    finally:
        agent.release.set()
        hub.kill()
    assert tracebacks(hub) == []


@pytest.mark.req("E-30")
def test_a_plain_request_to_the_path_is_not_found(hub: HubProcess) -> None:
    assert hub.get(PATH).status == 404
