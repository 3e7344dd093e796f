"""Calls that nobody waits for: accepted when they are on disk, carried out, told of, over a restart too."""

import contextlib
import http.client
import json
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.secret import Secret
from dragoman.security.signing import webhook_signature, x_signature
from tests.support.agents import platform as platform_stub
from tests.support.hub import HubProcess, running_hub
from tests.support.speaking import StubAgent, json_answer, serving

PATIENCE_S = 20.0


class Receiver(StubAgent):
    """Where callbacks arrive; answers with the next of the statuses it was given, then with 200."""

    def __init__(self) -> None:
        super().__init__("receiver")
        self.statuses: list[int] = []
        self.changed = threading.Condition()
        self.got: list[tuple[Mapping[str, str], Any]] = []

    def wait_for(self, count: int) -> list[tuple[Mapping[str, str], Any]]:
        """The first so many, as soon as they are there."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.got) >= count, PATIENCE_S), self.got
            return self.got[:count]


@contextlib.contextmanager
def receiver() -> Generator[Receiver]:
    stub = Receiver()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        with stub.changed:
            stub.got.append((headers, body))
            stub.changed.notify_all()
            return json_answer({}, stub.statuses.pop(0) if stub.statuses else 200)

    with serving(stub, handle):
        yield stub


@pytest.fixture
def world(tmp_path: Path) -> Generator[tuple[HubProcess, StubAgent]]:
    with running_hub(tmp_path / "data") as hub, platform_stub.agent() as stub:
        assert hub.request("POST", "/v1/a2a/registry", {"agent_card": stub.card}).status == 201
        yield hub, stub


def _key(hub: HubProcess) -> tuple[str, str]:
    made = hub.request("POST", "/v1/keys", {"name": "caller", "scopes": ["a2a:call"]}).json
    return made["key"], made["signing_secret"]


def _accepted(hub: HubProcess, text: str, token: str = "", **more: Any) -> str:
    body = {"target_agent_id": "agt_platform-stub", "skill": "echo", "input": {"text": text}, **more}
    reply = hub.request("POST", "/v1/a2a/call/async", body, token=token)
    assert reply.status == 202, reply.body
    assert reply.json["status"] == "queued"
    return reply.json["call_id"]


@pytest.mark.req("P-19")
@pytest.mark.req("P-25")
@pytest.mark.req("P-59")
@pytest.mark.req("P-60")
def test_an_accepted_call_is_carried_out_and_its_outcome_told_and_signed(world: tuple[HubProcess, StubAgent]) -> None:
    hub, _ = world
    token, secret = _key(hub)
    with receiver() as sink:
        callback = {"url": f"{sink.url}/done", "headers": {"X-Mine": "yes"}}
        call_id = _accepted(hub, "hello", token, callback=callback)
        ((headers, body),) = sink.wait_for(1)
    assert (body["call_id"], body["status"], body["result"]) == (call_id, "completed", {"text": "hello"})
    assert headers["x-mine"] == "yes"
    assert headers["webhook-id"] == f"cb_{call_id}"
    timestamp = int(headers["webhook-timestamp"])
    assert headers["x-timestamp"] == str(timestamp)
    encoded = _raw_of(headers, body)
    assert headers["x-signature"] == x_signature(Secret(secret), encoded)
    assert headers["webhook-signature"] == webhook_signature(Secret(secret), f"cb_{call_id}", timestamp, encoded)


def _raw_of(headers: Mapping[str, str], body: Any) -> bytes:
    """The body's bytes: the hub writes JSON without spaces, in the order of its members."""
    raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    assert len(raw) == int(headers["content-length"])
    return raw


def test_a_callback_that_is_refused_comes_again_under_the_same_id(world: tuple[HubProcess, StubAgent]) -> None:
    hub, _ = world
    with receiver() as sink:
        sink.statuses = [500]
        _accepted(hub, "hello", callback={"url": f"{sink.url}/done"})
        first, second = sink.wait_for(2)
    assert first[0]["webhook-id"] == second[0]["webhook-id"]
    assert first[1] == second[1]


@pytest.mark.req("P-26")
def test_an_accepted_call_survives_the_hubs_death(tmp_path: Path) -> None:
    with platform_stub.agent() as stub, receiver() as sink:
        hub = HubProcess(tmp_path / "data").start()
        try:
            assert hub.request("POST", "/v1/a2a/registry", {"agent_card": stub.card}).status == 201
            call_id = _accepted(hub, "slow", callback={"url": f"{sink.url}/done"})
            assert stub.arrived.wait(PATIENCE_S)
            hub.kill()
            stub.release.set()
            hub.start()
            ((_, body),) = sink.wait_for(1)
            assert (body["call_id"], body["status"]) == (call_id, "completed")
        finally:
            hub.stop()


def test_a_cancelled_call_lets_its_waiting_caller_go_at_once(world: tuple[HubProcess, StubAgent]) -> None:
    hub, stub = world
    call_id = _accepted(hub, "slow")
    assert stub.arrived.wait(PATIENCE_S)
    cancelled = hub.request("POST", f"/v1/a2a/call/{call_id}/cancel", {})
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert stub.cancelled.wait(PATIENCE_S)
    again = hub.request("POST", f"/v1/a2a/call/{call_id}/cancel", {})
    assert (again.status, again.json["error"]["code"]) == (409, "VALIDATION_ERROR")


def test_a_stranger_without_a_good_link_gets_no_file(world: tuple[HubProcess, StubAgent]) -> None:
    hub, _ = world
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=10)
    for path in ("/files/x", "/files/WyJkZWZhdWx0Il0", "/files/x?exp=99999999999&sig=AAAA", "/files/x?exp=1&sig="):
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 401, path
    connection.close()
