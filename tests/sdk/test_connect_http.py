"""The link over HTTP: what a hub answers, and what it means to whoever holds the link."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dragoman.errors import DragomanError, HubUnreachable, InputRefused, NotAuthenticated
from dragoman.model.errors import Overloaded
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.connect.http_link import SILENT_S, HttpLink
from dragoman.sdk.connect.links import Frame, Gap, SessionOver, Stale
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.support.stub_server import StubHandler, on_free_port

OVER: dict[str, Any] = {"error": {"code": "SESSION_OVER", "message": "There is no such session.", "details": {}}}


class Hub(StubHandler):
    """A hub that answers as a test says, and keeps what it was asked."""

    status = 200
    said: Any = None
    stream: bytes | None = None
    asked: list[tuple[str, str, dict[str, str], Any]] = []  # noqa: RUF012 - each test has a class of its own

    def _answer(self) -> None:
        body = self.read_body()
        self.asked.append((self.command, self.path, self.read_headers(), json.loads(body) if body else None))
        if self.stream is None:
            self.say_json(self.status, self.said)
        else:
            self.begin_stream()
            self.wfile.write(self.stream)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - as the base class has it


def linked(hub: type[Hub], play: Callable[[HttpLink, HubHttp], Coroutine[Any, Any, None]]) -> None:
    async def played() -> None:
        http, acting = HubHttp(url, "ap_mine"), HubHttp(url, "ap_mine")
        link = HttpLink(http, acting)
        try:
            await play(link, acting)
        finally:
            await link.close()

    with on_free_port(hub) as url:
        run(played())


def answering(status: int, said: Any) -> type[Hub]:
    return type("Answering", (Hub,), {"status": status, "said": said, "asked": []})


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (409, {"expected": 4}, Gap),
        (410, {"error": {"code": "STALE", "message": "over"}}, Stale),
        (404, {"error": {"code": "CALL_NOT_FOUND", "message": "no such call"}}, Stale),
        (404, OVER, SessionOver),
        (503, {"error": {"code": "OVERLOADED", "message": "later", "details": {"retry_after": 7}}}, Overloaded),
        (400, {"error": {"code": "VALIDATION_ERROR", "message": "no"}}, InputRefused),
        (502, "a proxy", HubUnreachable),
        (200, {"acked": "many"}, HubUnreachable),
        (200, ["strange"], HubUnreachable),
    ],
)
def test_what_a_hub_says_to_events(status: int, said: Any, error: type[Exception]) -> None:
    async def play(link: HttpLink, _: HubHttp) -> None:
        with pytest.raises(error) as raised:
            await link.tell("s 1", "call/1", 2, [{"n": 1, "event": "start", "data": {}}])
        if isinstance(raised.value, Gap):
            assert raised.value.expected == 4
        if isinstance(raised.value, Overloaded):
            assert raised.value.retry_after_s == 7

    linked(answering(status, said), play)


def test_events_are_posted_and_what_is_acknowledged_is_returned() -> None:
    hub = answering(200, {"acked": 3})

    async def play(link: HttpLink, _: HubHttp) -> None:
        assert await link.tell("s 1", "call/1", 2, [{"n": 3, "event": "start", "data": {}}]) == 3

    linked(hub, play)
    ((method, path, headers, body),) = hub.asked
    assert (method, path) == ("POST", "/v1/agents/calls/call%2F1/events")
    assert body == {"session_id": "s 1", "attempt": 2, "events": [{"n": 3, "event": "start", "data": {}}]}
    assert headers["authorization"] == "Bearer ap_mine"


def test_the_token_that_a_session_brings_is_for_the_calls_of_the_agent_alone() -> None:
    hub = answering(200, {"session_id": "s1", "token": "of the agent"})

    async def play(link: HttpLink, acting: HubHttp) -> None:
        for hello in ({"agent_id": "a"}, {"agent_id": "a", "session_id": "s1"}):
            assert (await link.open(hello))["session_id"] == "s1"
        await acting.ask("GET", "/anything", timeout_s=5)

    linked(hub, play)
    assert [asked[2]["authorization"].split(" ", 1)[1] for asked in hub.asked] == ["ap_mine", "ap_mine", "of the agent"]


@pytest.mark.parametrize(("status", "said", "error"), [(404, OVER, SessionOver), (401, {}, NotAuthenticated)])
def test_a_refused_session_is_refused_everywhere(status: int, said: Any, error: type[Exception]) -> None:
    async def play(link: HttpLink, _: HubHttp) -> None:
        with pytest.raises(error):
            await link.open({"session_id": "s1"})
        with pytest.raises(error):
            await anext(link.frames("s1", 0))
        with pytest.raises(error):
            await link.leave("s1")

    linked(answering(status, said), play)


def test_frames_are_read_with_their_numbers_and_a_lost_connection_ends_them() -> None:
    said = (
        b'event: hello\ndata: {"session_id": "s1"}\n\n: still here\n\n'
        b'id: 8\nevent: call\ndata: {"call_id": "c1"}\n\nid: x\nevent: odd\ndata: not JSON\n\n'
    )
    hub = type("Streaming", (Hub,), {"stream": said, "asked": []})

    async def play(link: HttpLink, _: HubHttp) -> None:
        frames = [frame async for frame in link.frames("s 1", 7)]
        assert frames == [
            Frame(0, "hello", {"session_id": "s1"}),
            Frame(8, "call", {"call_id": "c1"}),
            Frame(0, "odd", {}),
        ]

    linked(hub, play)
    _, path, headers, _ = hub.asked[0]
    assert path == "/v1/agents/connect?session=s%201" and headers["last-event-id"] == "7"


def test_a_stream_that_falls_silent_is_lost() -> None:
    clock = ManualClock()

    async def play() -> None:
        came, leave = asyncio.Event(), asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: hello\ndata: {}\n\n")
            came.set()
            await leave.wait()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        link = HttpLink(HubHttp(f"http://127.0.0.1:{port}", "ap_mine", clock=clock))
        frames = link.frames("s1", 0)
        assert (await anext(frames)).event == "hello"
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_lost(frames))
            while not waiting.done():
                await asyncio.sleep(0)
                clock.advance(1)
        assert clock.monotonic() >= SILENT_S
        leave.set()
        await link.close()
        server.close()

    async def _lost(frames: Any) -> None:
        with pytest.raises(DragomanError):
            await anext(frames)

    run(play())
