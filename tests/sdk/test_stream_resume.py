"""A stream that breaks off is taken up behind the last event: nothing is missed, nothing comes twice."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from dragoman import A2AClient, errors
from tests.support.hurried_clock import HurriedClock
from tests.support.stub_server import StubHandler, on_free_port

Script = Callable[[StubHandler, int], None]


class Broken:
    """A hub whose connections end as a test says; what it was asked, in order."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str, dict[str, str]]] = []


@contextlib.contextmanager
def breaking(*scripts: Script) -> Generator[Broken]:
    """Each connection is served by the next script, and closed."""
    hub = Broken()

    class Handler(StubHandler):
        def _serve(self) -> None:
            self.read_body()
            hub.asked.append((self.command, self.path, self.read_headers()))
            scripts[min(len(hub.asked), len(scripts)) - 1](self, len(hub.asked))
            self.close_connection = True

        do_GET = do_POST = _serve  # noqa: N815 - the names the parent calls

    with on_free_port(Handler) as hub.url:
        yield hub


def events(*numbered: tuple[int, str, dict[str, Any]]) -> Script:
    """Begin a stream, say these events, and break off."""

    def script(handler: StubHandler, _: int) -> None:
        handler.begin_stream()
        for number, name, data in numbered:
            handler.wfile.write(f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())

    return script


def nothing(handler: StubHandler, _: int) -> None:
    """Close without a word."""


START = (1, "start", {"call_id": "c1", "status": "started"})
COMPLETE = (4, "complete", {"status": "completed", "result": {"text": "ab"}, "usage": {"tokens": 2}})


def heard(url: str, **options: Any) -> list[Any]:
    async def listening() -> list[Any]:
        async with A2AClient(url, "ap_key", clock=HurriedClock()) as client:
            return [event async for event in client.stream("agt_x", "write", {}, **options)]

    return asyncio.run(listening())


def test_a_stream_goes_on_behind_the_last_event_it_brought() -> None:
    first = events(START, (2, "chunk", {"content": "a"}))
    then = events((3, "chunk", {"content": "b"}), COMPLETE, (4, "done", {}))
    with breaking(first, nothing, then) as hub:
        found = heard(hub.url)
    assert [(event.type, event.seq) for event in found] == [("start", 1), ("chunk", 2), ("chunk", 3), ("complete", 4)]
    assert found[-1].result.usage == {"tokens": 2}
    assert [(method, path, headers.get("last-event-id")) for method, path, headers in hub.asked] == [
        ("POST", "/v1/a2a/call/stream", None),
        ("GET", "/v1/a2a/call/c1/stream", "2"),
        ("GET", "/v1/a2a/call/c1/stream", "2"),
    ]


def test_a_stream_that_never_began_is_asked_for_again_as_the_same_call() -> None:
    with breaking(events(), events(START, COMPLETE)) as hub:
        assert [event.type for event in heard(hub.url)] == ["start", "complete"]
    assert [path for _, path, _ in hub.asked] == ["/v1/a2a/call/stream"] * 2
    assert hub.asked[0][2]["x-request-id"] == hub.asked[1][2]["x-request-id"]


def test_a_stream_that_never_began_is_not_repeated_where_it_must_not_run_twice() -> None:
    with breaking(events(), events(START, COMPLETE)) as hub, pytest.raises(errors.HubUnreachable):
        heard(hub.url, delivery="at_most_once")
    assert len(hub.asked) == 1


def test_a_hub_that_stays_away_is_given_up() -> None:
    with breaking(events(START), nothing) as hub, pytest.raises(errors.HubUnreachable):
        heard(hub.url)
    assert 3 < len(hub.asked) < 20


def test_an_error_in_the_stream_is_raised_and_ends_it() -> None:
    told = (3, "error", {"code": "AGENT_TIMEOUT", "message": "too slow", "details": {"timeout_ms": 5}})
    with breaking(events(START, told)) as hub, pytest.raises(errors.AgentTimeout) as raised:
        heard(hub.url)
    assert raised.value.call_id == "c1"
    assert raised.value.details == {"timeout_ms": 5}
    assert len(hub.asked) == 1


def test_a_cancelled_call_ends_its_stream_with_an_error() -> None:
    cancelled = (2, "complete", {"status": "cancelled"})
    with breaking(events(START, cancelled)) as hub, pytest.raises(errors.CallCancelled):
        heard(hub.url)


def test_a_refusal_in_place_of_a_stream_is_raised() -> None:
    def refuse(handler: StubHandler, _: int) -> None:
        handler.say_json(404, {"id": "c1", "error": {"code": "AGENT_NOT_FOUND", "message": "There is no agent"}})

    with breaking(refuse) as hub, pytest.raises(errors.AgentNotFound):
        heard(hub.url)
