"""What a process asks, recorded without its secrets and answered again without a network."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.clock import SystemClock
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.testing.little_server import LittleServer, Streamed
from dragoman.sdk.testing.recording import NotRecorded, record, replay

TOKEN = "ap_abcdefghijkl_0123456789abcdef0123"
SHOWN = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"


async def _answer(request: HttpRequest) -> HttpReply | Streamed:
    if request.url == "/stream":
        return Streamed(headers={b"content-type": b"text/event-stream"}, pieces=_pieces())
    body = json.dumps({"asked": json.loads(request.body or b"null"), "signing_secret": SHOWN}).encode()
    return HttpReply(status=200, headers={b"content-type": b"application/json"}, body=body)


async def _pieces() -> AsyncIterator[bytes]:
    for number in range(3):
        yield b'data: {"n": %d, "token": "%s"}\n\n' % (number, TOKEN.encode())


async def _talk(url: str) -> list[object]:
    """Three questions, the last of them a stream; what came back."""
    hub = HubHttp(url, TOKEN)
    first = await hub.ask("POST", "/call", body={"n": 1}, timeout_s=5)
    second = await hub.ask("POST", "/call", body={"n": 2}, timeout_s=5)
    seen: list[object] = [first.body["asked"], second.body["asked"]]
    async with hub.stream("GET", "/stream", timeout_s=5, idle_s=5) as events:
        seen += [json.loads(event.data)["n"] async for event in events]
    await hub.close()
    return seen


EXPECTED = [{"n": 1}, {"n": 2}, 0, 1, 2]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"

    async def scenario() -> None:
        async with LittleServer(_answer, SystemClock()) as server:
            with record(path):
                assert await _talk(server.url) == EXPECTED

    asyncio.run(scenario())
    return path


def test_what_was_recorded_is_answered_again_at_any_address(recorded: Path) -> None:
    with replay(recorded):
        assert asyncio.run(_talk("http://127.0.0.1:9")) == EXPECTED


def test_no_secret_reaches_the_record(recorded: Path) -> None:
    text = recorded.read_text()
    assert TOKEN not in text and SHOWN not in text
    assert text.count("[redacted]") >= 3
    assert len(text.splitlines()) == 3


def test_the_answer_with_the_same_body_is_found_whatever_the_order(recorded: Path) -> None:
    async def scenario() -> object:
        hub = HubHttp("http://127.0.0.1:9", "another")
        return (await hub.ask("POST", "/call", body={"n": 2}, timeout_s=5)).body["asked"]

    with replay(recorded):
        assert asyncio.run(scenario()) == {"n": 2}


def test_what_was_not_recorded_says_so_and_afterwards_the_network_is_back(recorded: Path) -> None:
    async def scenario() -> None:
        await HubHttp("http://127.0.0.1:9", "x").ask("GET", "/other", timeout_s=5)

    with replay(recorded), pytest.raises(NotRecorded, match="no further answer to GET"):
        asyncio.run(scenario())

    async def after() -> None:
        async with LittleServer(_answer, SystemClock()) as server:
            assert await _talk(server.url) == EXPECTED

    asyncio.run(after())
