"""R13: a hub that is told to stop ends what runs, sends readers away in good order, and loses nothing it accepted."""

import contextlib
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.backends.sqlite.connection import connect
from dragoman.server.app import DATABASE
from tests.support.hub import HubProcess, Reply
from tests.support.kill_agents import SLOW, KillAgents, kill_agents
from tests.support.kill_readers import Seen
from tests.support.kill_told import words_of
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.stream_agents import SKILL, STREAMER, StreamAgents, stream_agents

CALLS, FULL_CALLS = 20, 100
TAKES_S, FULL_TAKES_S = 1.0, 5.0
ACCEPTED = 50  # half of which are quick, and half take longer than what is waited for
PIECES = 3
DRAIN_S = 1.0
PATIENCE_S = 10.0


class Surroundings:
    """A hub, its agents, and threads for what waits."""

    def __init__(
        self, hub: HubProcess, agents: KillAgents, streamer: StreamAgents, threads: ThreadPoolExecutor
    ) -> None:
        self.hub = hub
        self.agents = agents
        self.streamer = streamer
        self._threads = threads

    def begin(self, work: Callable[[], Any]) -> "Future[Any]":
        """Do it in a thread."""
        return self._threads.submit(work)

    def stop(self) -> "Future[int]":
        """Tell the hub to stop, and wait until it says so."""
        stopping: Future[int] = self._threads.submit(self.hub.stop)
        _until(lambda: self.hub.get("/readyz").status == 503)
        return stopping

    def stream(self, key: str = "") -> "contextlib.AbstractContextManager[SseStream]":
        """A call that is streamed, and held by its agent once it has said a little."""
        body = {"target_agent_id": STREAMER, "skill": SKILL, "input": {"events": PIECES, "holds": True}}
        headers = {"Authorization": f"Bearer {self.hub.token}", **({"Idempotency-Key": key} if key else {})}
        return sse(f"{self.hub.url}/v1/a2a/call/stream", body, headers=headers, patience_s=PATIENCE_S)

    def reader(self, call_id: str, last: str) -> "contextlib.AbstractContextManager[SseStream]":
        """One who comes back to a call."""
        headers = {"Authorization": f"Bearer {self.hub.token}", "Last-Event-ID": last}
        return sse(f"{self.hub.url}/v1/a2a/call/{call_id}/stream", headers=headers, patience_s=PATIENCE_S)


@contextlib.contextmanager
def surroundings(folder: Path, *, planted: str = "", drain_s: float = 30.0) -> Generator[Surroundings]:
    """All of it, running within the block."""
    with kill_agents(0) as agents, stream_agents() as streamer, ThreadPoolExecutor(FULL_CALLS + 2) as threads:
        hub = HubProcess(folder / "data", planted=planted)
        # All calls go to one origin, at once.
        settings = {"DRAGOMAN_CALLS_DRAIN_S": str(drain_s), "DRAGOMAN_CLIENT_CONNECTIONS_PER_ORIGIN": "256"}
        hub.start(settings)
        try:
            for card in (*agents.cards(), streamer.card()):
                hub.register(card)
            yield Surroundings(hub, agents, streamer, threads)
        finally:
            hub.kill()


@pytest.mark.parametrize(
    ("calls", "takes_s"), [(CALLS, TAKES_S), pytest.param(FULL_CALLS, FULL_TAKES_S, marks=pytest.mark.full)]
)
def test_calls_that_run_are_answered_and_accepted_ones_are_carried_out_by_the_next_hub(
    calls: int, takes_s: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with surroundings(tmp_path) as around:
        shown = _answered_and_accepted(around, calls, takes_s)
    with capsys.disabled():
        sys.stdout.write(f"\n{shown}")


@pytest.mark.req("P-21")
def test_a_stream_ends_with_its_call_and_other_readers_are_told_to_come_back(tmp_path: Path) -> None:
    with surroundings(tmp_path) as around:
        _ends_with_its_call(around)


@pytest.mark.req("P-21")
def test_a_stream_whose_call_takes_too_long_goes_on_with_the_next_hub(tmp_path: Path) -> None:
    with surroundings(tmp_path, drain_s=DRAIN_S) as around:
        with around.stream("keyed") as stream:
            call_id, seen = _begun(stream)
            stopping = around.stop()
            seen += _taken(stream)
            assert stream.retry == "1000"
            assert stopping.result(PATIENCE_S) == 0
        around.hub.start()
        with around.reader(call_id, stream.last_id) as back:
            _until(lambda: around.streamer.asked().count(call_id) == 2)
            _until(lambda: around.streamer.held() == 1)
            around.streamer.end()
            seen += _taken(back)
        _is_what_is_stored(around.hub, call_id, seen)


@pytest.mark.planted
@pytest.mark.parametrize("promise", ["calls", "streams"])
def test_a_hub_that_exits_at_once_is_found_out(promise: str, tmp_path: Path) -> None:
    with surroundings(tmp_path, planted="exits_at_once") as around, pytest.raises((AssertionError, OSError)):
        _answered_and_accepted(around, CALLS, TAKES_S) if promise == "calls" else _ends_with_its_call(around)


def _answered_and_accepted(around: Surroundings, calls: int, takes_s: float) -> str:
    hub = around.hub
    late_s = 2 * takes_s + 0.5
    accepted = [_accepted(around, number, late_s if number % 2 else 0.01) for number in range(ACCEPTED)]
    # The quickest takes a fifth of the time of the slowest, and is still under way when the hub is told to stop.
    takes = [takes_s * (0.2 + 0.8 * number / calls) for number in range(calls)]
    running = [around.begin(partial(_call, hub, each)) for each in takes]
    _until(lambda: len(around.agents.asked()) == ACCEPTED + calls)
    stopping = around.stop()
    refused = _call(hub, 0.01)
    assert refused.status == 503 and "retry-after" in refused.headers
    assert refused.headers["connection"] == "close"
    under_way = sum(not each.done() for each in running)
    assert under_way >= calls * 0.9, f"only {under_way} ran: it proves nothing"
    answers: list[Reply] = [each.result(PATIENCE_S) for each in running]
    assert [answer.status for answer in answers] == [200] * calls
    assert stopping.result(PATIENCE_S) == 0
    open_then = set(accepted) - {each.call_id for each in around.agents.called()}
    assert len(open_then) >= ACCEPTED // 2
    hub.start()
    _until(lambda: set(accepted) <= {each.call_id for each in around.agents.called()}, late_s + PATIENCE_S)
    assert {each.status for each in around.agents.called()} == {"completed"}
    return (
        f"{under_way} of {calls} calls under way at SIGTERM: none failed; {len(open_then)} accepted ones went on later"
    )


def _ends_with_its_call(around: Surroundings) -> None:
    with around.stream() as stream:
        call_id, seen = _begun(stream)
        with around.reader(call_id, "0") as other:
            told = [*other.take(1), *_pieces(other)]
            stopping = around.stop()
            assert list(other) == [] and other.retry == "1000"  # It ends in good order, and at once.
        assert not stopping.done()
        around.streamer.end()
        seen += _taken(stream)
        assert [each.name for each in seen][-1] == "complete"
        assert stopping.result(PATIENCE_S) == 0
    around.hub.start()
    with around.reader(call_id, told[-1].id) as back:
        _is_what_is_stored(around.hub, call_id, [*map(_seen, told), *_taken(back)])
    _is_what_is_stored(around.hub, call_id, seen)


def _call(hub: HubProcess, takes_s: float) -> Reply:
    return hub.call("echo", {"number": -1, "after_s": takes_s}, SLOW)


def _accepted(around: Surroundings, number: int, takes_s: float) -> str:
    body = {"target_agent_id": SLOW, "skill": "echo", "input": {"number": number, "after_s": takes_s}}
    reply = around.hub.post("/v1/a2a/call/async", {**body, "callback": {"url": around.agents.callback_url}})
    assert reply.status == 202, reply.body
    return reply.json["call_id"]


def _begun(stream: SseStream) -> tuple[str, list[Seen]]:
    """The call of a stream, and what it had said when its agent fell silent."""
    start = stream.take(1)[0]
    return start.data["call_id"], [_seen(start), *map(_seen, _pieces(stream))]


def _pieces(stream: SseStream) -> list[SseItem]:
    found: list[SseItem] = []
    for item in stream:
        found.append(item)
        if f"{PIECES - 1}@" in item.data["content"]:
            break
    return found


def _taken(stream: SseStream) -> list[Seen]:
    """The rest of a stream."""
    return [_seen(item) for item in stream if item.name != "done"]


def _seen(item: SseItem) -> Seen:
    return Seen(int(item.id), item.name, item.data.get("content", ""))


def _is_what_is_stored(hub: HubProcess, call_id: str, seen: list[Seen]) -> None:
    stored = connect(hub.data / DATABASE)
    try:
        assert seen == words_of(stored, call_id)
    finally:
        stored.close()


def _until(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)  # the only way to wait for what another process does
