"""R3: a hub that was killed with 10,000 calls open is ready again at once, and its streams go on."""

import math
import shutil
import sys
import time
from pathlib import Path

import pytest

from dragoman.backends.sqlite.connection import connect
from dragoman.server.app import DATABASE
from tests.support.hub import HubProcess
from tests.support.kill_agents import QUICK, KillAgents, kill_agents
from tests.support.kill_checks import open_calls
from tests.support.kill_readers import Seen
from tests.support.kill_told import words_of
from tests.support.preload import preload
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.stream_agents import SKILL, STREAMER, StreamAgents, stream_agents

OPEN_CALLS = 10_000
TAKEN_UP_S = 10.0
READY_S = 1.0  # the 99th percentile
STREAMS = 10
PIECES = 3


@pytest.mark.serial
@pytest.mark.req("P-21", "O-50")
def test_a_hub_with_10000_open_calls_is_ready_within_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = _restarts(5, tmp_path, capsys)
    assert _p99(took) < READY_S, took


@pytest.mark.full
@pytest.mark.serial
def test_a_hub_with_10000_open_calls_is_ready_within_a_second_100_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = _restarts(100, tmp_path, capsys)
    assert _p99(took) < READY_S, took


@pytest.mark.planted
@pytest.mark.serial
def test_a_hub_that_reads_all_events_at_its_start_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = _restarts(2, tmp_path, capsys, "events_read_at_start")
    assert max(took) >= READY_S, took


def _restarts(count: int, folder: Path, capsys: pytest.CaptureFixture[str], planted: str = "") -> list[float]:
    took: list[float] = []
    back_s = 0.0
    with kill_agents(0) as agents, stream_agents() as streamer:
        left, streams = _left_open(folder, agents, streamer)
        for number in range(count):
            # A copy each time: what one life ends is not open in the next.
            hub = HubProcess(folder / f"life-{number}", planted=planted)
            shutil.copytree(left, hub.data)
            began = time.monotonic()
            hub.start()
            took.append(time.monotonic() - began)
            try:
                if number == count - 1:
                    _wait_until_taken_up(hub)
                    for call_id, last in streams:
                        _goes_on(hub, call_id, last)
                    back_s = time.monotonic() - began
            finally:
                hub.kill()
            assert open_calls(hub.data / DATABASE) > 0, "nothing was open any more: the restart proves nothing"
            shutil.rmtree(hub.data)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{count} restarts with {OPEN_CALLS} open calls: ready after at most {max(took):.2f} s, p99 "
            f"{_p99(took):.2f} s; {len(streams)} streams had gone on after {back_s:.2f} s"
        )
    return took


def _p99(took: list[float]) -> float:
    return sorted(took)[math.ceil(len(took) * 0.99) - 1]


def _wait_until_taken_up(hub: HubProcess) -> None:
    until = time.monotonic() + TAKEN_UP_S
    while open_calls(hub.data / DATABASE) >= OPEN_CALLS:
        assert time.monotonic() < until, "none of the open calls was taken up"
        time.sleep(0.01)  # the only way to wait for what another process writes


def _goes_on(hub: HubProcess, call_id: str, last: int) -> None:
    """The agent is asked again, and a reader that comes back hears what it says, without gap or repetition."""
    headers = {"Authorization": f"Bearer {hub.token}", "Last-Event-ID": str(last)}
    with sse(f"{hub.url}/v1/a2a/call/{call_id}/stream", headers=headers, patience_s=TAKEN_UP_S) as stream:
        seen = [Seen(int(item.id), item.name, item.data["content"]) for item in _pieces(stream)]
    stored = connect(hub.data / DATABASE)
    try:
        assert seen == [word for word in words_of(stored, call_id) if word.seq > last]
    finally:
        stored.close()


def _pieces(stream: SseStream) -> list[SseItem]:
    """What the agent says before it falls silent; pieces that come at once are one event."""
    found: list[SseItem] = []
    for item in stream:
        assert item.name == "chunk", item
        found.append(item)
        if f"{PIECES - 1}@" in item.data["content"]:
            break
    return found


def _left_open(folder: Path, agents: KillAgents, streamer: StreamAgents) -> tuple[Path, list[tuple[str, int]]]:
    """The data of a hub that was killed with so many calls open, and its streams: call and last event seen."""
    hub = HubProcess(folder / "left").start()
    streams: list[tuple[str, int]] = []
    try:
        for card in (*agents.cards(), streamer.card()):
            hub.register(card)
        for number in range(STREAMS):
            headers = {"Authorization": f"Bearer {hub.token}", "Idempotency-Key": f"stream-{number}"}
            body = {"target_agent_id": STREAMER, "skill": SKILL, "input": {"events": PIECES, "holds": True}}
            with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers) as stream:
                call_id = stream.take(1)[0].data["call_id"]
                streams.append((call_id, int(_pieces(stream)[-1].id)))
    finally:
        hub.kill()
    preload(hub.data, QUICK, OPEN_CALLS)
    return hub.data, streams
