"""What a client tries again, and what never: against listeners that refuse, reset, and answer in a hub's place."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Generator, Mapping
from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from dragoman import A2AClient, errors
from tests.end_to_end.world import join
from tests.support.hub import HubProcess
from tests.support.hurried_clock import HurriedClock
from tests.support.platform_agent import PlatformAgent
from tests.support.ports import free_port
from tests.support.speaking import StubAgent, serving
from tests.support.stub_server import StubHandler, on_free_port

DONE = {"id": "c1", "call_id": "c1", "status": "completed", "result": {"ok": True}, "timing": {}}
Reply = tuple[int, Mapping[str, str], bytes]


def failed(code: str, status: int, headers: Mapping[str, str] | None = None, *, a_call: bool = False) -> Reply:
    """A refusal of a hub; with `a_call` it is the end of a call, so there is a trace of it."""
    body: dict[str, Any] = {"id": "c1", "status": "failed", "error": {"code": code, "message": "no"}}
    if a_call:
        body["trace"] = {"trace_id": "t1", "span_id": "s1"}
    return status, headers or {}, json.dumps(body).encode()


def html(status: int) -> Reply:
    """What a proxy says."""
    return status, {"Content-Type": "text/html"}, b"<h1>Bad gateway</h1>"


@contextlib.contextmanager
def answering(*replies: Reply) -> Generator[StubAgent]:
    """Answers with one reply after the other, then with a completed call."""
    left = list(replies)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        return left.pop(0) if left else (200, {}, json.dumps(DONE).encode())

    with serving(StubAgent("hub"), handle) as stub:
        yield stub


@contextlib.contextmanager
def resetting(times: int) -> Generator[tuple[str, list[bytes]]]:
    """Takes a whole request and resets the connection, so many times; then answers with a completed call."""
    taken: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                taken.append(connection.recv(65536))
                if len(taken) <= times:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    continue
                said = json.dumps(DONE).encode()
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(said) + said
                )

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def call(url: str, clock: HurriedClock, retries: int = 3, **options: Any) -> Any:
    async def called() -> Any:
        async with A2AClient(url, "ap_key", clock=clock, retries=retries) as client:
            return await client.call("agt_x", "echo", {"a": 1}, **options)

    return asyncio.run(called())


def test_nobody_listening_is_tried_again_after_1_2_and_4_seconds() -> None:
    clock = HurriedClock()
    with pytest.raises(errors.HubUnreachable) as raised:
        call(f"http://127.0.0.1:{free_port()}", clock)
    assert [round(wait, 1) in span for wait, span in zip(clock.slept, _spans(1, 2, 4), strict=True)] == [True] * 3
    assert not raised.value.sent
    assert raised.value.retryable
    assert str(raised.value).startswith("No hub answers at http://127.0.0.1:")
    assert str(raised.value).endswith("or set DRAGOMAN_URL.")


def test_a_hub_that_comes_back_in_time_answers() -> None:
    port = free_port()
    started = contextlib.ExitStack()

    class Handler(StubHandler):
        def _serve(self) -> None:
            self.read_body()
            self.say_json(200, DONE)

        do_POST = _serve  # noqa: N815 - the name the parent calls

    def start() -> None:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        for end in (lambda: thread.join(5), server.server_close, server.shutdown):
            started.callback(end)

    clock = HurriedClock(during=start)
    with started:
        assert call(f"http://127.0.0.1:{port}", clock) == {"ok": True}
    assert len(clock.slept) == 1


def test_a_lost_connection_is_tried_again_in_the_same_words() -> None:
    clock = HurriedClock()
    with resetting(2) as (url, taken):
        assert call(url, clock) == {"ok": True}
    assert len(taken) == 3
    assert len({_without_host(each) for each in taken}) == 1
    assert b"x-request-id: req_" in taken[0].lower()


def test_what_may_have_run_is_not_repeated_where_it_must_not_run_twice() -> None:
    with resetting(1) as (url, taken), pytest.raises(errors.HubUnreachable) as raised:
        call(url, HurriedClock(), delivery="at_most_once")
    assert len(taken) == 1
    assert raised.value.sent
    assert "may have been carried out" in str(raised.value)


def test_a_key_makes_even_that_safe_to_repeat() -> None:
    with resetting(1) as (url, taken):
        assert call(url, HurriedClock(), delivery="at_most_once", idempotency_key="order-7") == {"ok": True}
    assert len(taken) == 2
    assert all(b"idempotency-key: order-7" in each.lower() for each in taken)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_without_a_hub_behind_it_is_tried_again(status: int) -> None:
    clock = HurriedClock()
    with answering(html(status), html(status)) as stub:
        assert call(stub.url, clock) == {"ok": True}
    assert len(stub.requests) == 3
    assert len(clock.slept) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        failed("RATE_LIMITED", 429, {"Retry-After": "3"}),
        (503, {"Retry-After": "3"}, json.dumps(
            {"error": {"code": "AGENT_UNAVAILABLE", "message": "full", "details": {"reason": "overloaded"}}}
        ).encode()),
    ],
    ids=["429", "503"],
)  # fmt: skip
def test_a_hub_that_has_no_room_is_asked_again_when_it_says(refusal: Reply) -> None:
    clock = HurriedClock()
    with answering(refusal) as stub:
        assert call(stub.url, clock) == {"ok": True}
    assert clock.slept == [3.0]


@pytest.mark.parametrize("wait_s", ["16", "31"])
def test_a_wait_that_is_too_long_is_left_to_the_caller(wait_s: str) -> None:
    with answering(failed("RATE_LIMITED", 429, {"Retry-After": wait_s})) as stub:
        with pytest.raises(errors.RateLimited) as raised:
            call(stub.url, HurriedClock())
        assert len(stub.requests) == 1
    assert raised.value.retry_after_s == int(wait_s)


def test_nothing_is_tried_again_past_the_deadline() -> None:
    clock = HurriedClock()
    with answering(html(502), html(502), html(502)) as stub, pytest.raises(errors.HubUnreachable):
        call(stub.url, clock, timeout_ms=2500)
    assert len(clock.slept) == 1
    assert len(stub.requests) == 2


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (failed("AGENT_TIMEOUT", 504, a_call=True), errors.AgentTimeout),
        (failed("AGENT_ERROR", 502, a_call=True), errors.AgentError),
        (failed("RATE_LIMITED", 429, {"Retry-After": "1"}, a_call=True), errors.RateLimited),
        (failed("AGENT_UNAVAILABLE", 503, {"Retry-After": "1"}), errors.AgentUnavailable),
        (failed("CIRCUIT_OPEN", 503, {"Retry-After": "1"}), errors.CircuitOpen),
        (failed("VALIDATION_ERROR", 400), errors.InputRefused),
        (html(404), errors.HubUnreachable),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_an_agent_did_and_what_will_not_change_is_never_tried_again(
    reply: Reply, raised: type[errors.DragomanError]
) -> None:
    with answering(reply) as stub:
        with pytest.raises(raised):
            call(stub.url, HurriedClock())
        assert len(stub.requests) == 1


def test_retries_can_be_turned_off() -> None:
    with answering(html(502)) as stub, pytest.raises(errors.HubUnreachable):
        call(stub.url, HurriedClock(), retries=0)
    assert len(stub.requests) == 1


def test_an_answer_that_was_lost_is_found_again_and_the_agent_works_once(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]
    ids: list[str] = []

    class Losing(StubHandler):
        """Hands requests on to the hub, and loses its first answer."""

        def _serve(self) -> None:
            onwards = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=10)
            onwards.request("POST", self.path, self.read_body(), dict(self.headers.items()))
            answer = onwards.getresponse()
            said = answer.read()
            onwards.close()
            ids.append(json.loads(said)["id"])
            if len(ids) == 1:
                self.close_connection = True
                return
            self.say(answer.status, {}, said)

        do_POST = _serve  # noqa: N815 - the name the parent calls

    async def called(url: str) -> Any:
        async with A2AClient(url, hub.token, clock=HurriedClock()) as client:
            return await client.call(agent_id, "echo", {"a": 1})

    with on_free_port(Losing) as url:
        assert asyncio.run(called(url)).id == ids[0] == ids[1]
    assert len(agent.requests) == 1


def _spans(*seconds: float) -> list[list[float]]:
    """Tenths of a second from 20 % less to 20 % more."""
    return [[tenth / 10 for tenth in range(round(each * 8), round(each * 12) + 1)] for each in seconds]


def _without_host(request: bytes) -> bytes:
    return b"\r\n".join(line for line in request.split(b"\r\n") if not line.lower().startswith(b"host:"))
