"""R9: thousands of idle streams cost little, hear everything, and leave nothing behind when they go."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.churn import Heard, churn
from tests.support.figures import asyncio_tasks, open_files, raise_file_limit, rss_bytes
from tests.support.hub import HubProcess
from tests.support.sse_client import sse
from tests.support.stream_agents import SKILL, STREAMER, StreamAgents, stream_agents

STREAMS = 1_000
FULL_STREAMS = 10_000
PLANTED_STREAMS = 200
TASKS = 20
ROUNDS = 10
WARM = 100  # streams that come and go first: what a hub makes once is not theirs
MOST_KB = 25.0  # each; the goal is 12
GROWTH = 1.3
GONE_S = 10.0
STEP_S = 0.05


@pytest.mark.serial
@pytest.mark.req("P-22")
def test_1000_idle_streams_cost_little_hear_everything_and_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _come_and_go(STREAMS, tmp_path, capsys)


@pytest.mark.full
@pytest.mark.serial
def test_10000_idle_streams_cost_little_hear_everything_and_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _come_and_go(FULL_STREAMS, tmp_path, capsys)


@pytest.mark.planted
@pytest.mark.serial
def test_a_reader_that_is_kept_when_its_client_has_left_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match="left behind"):
        _come_and_go(PLANTED_STREAMS, tmp_path, capsys, planted="reader_kept", rounds=2)


def _come_and_go(
    count: int, folder: Path, capsys: pytest.CaptureFixture[str], planted: str = "", rounds: int = ROUNDS
) -> None:
    raise_file_limit()
    hub = HubProcess(folder / "data", planted=f"counts_tasks,{planted}" if planted else "counts_tasks").start()
    try:
        with stream_agents() as agent, churn(hub) as readers:
            paths = _held_calls(hub, agent)
            _judge(readers.open(paths, WARM), WARM)
            _judge(readers.leave(WARM), 0)
            _until(lambda: asyncio_tasks(hub) <= 2 * TASKS + WARM // 2, "the first streams")
            tasks, files, before = asyncio_tasks(hub), open_files(hub.pid), rss_bytes(hub.pid)
            _judge(readers.open(paths, count), count)
            each_kb = (rss_bytes(hub.pid) - before) / count / 1024
            rss: list[int] = []
            late: list[Heard] = []
            for piece in range(rounds):
                agent.say()
                late.append(_judge(readers.hear(piece), count, piece))
                _judge(readers.leave(count // 2), count - count // 2)
                _judge(readers.open(paths, count // 2), count)
                rss.append(rss_bytes(hub.pid))
            _judge(readers.leave(count), 0)
            _show(capsys, count, each_kb, before, rss, late)
            _until(lambda: open_files(hub.pid) <= files, "files")
            _until(lambda: asyncio_tasks(hub) <= tasks, "asyncio tasks")
            assert each_kb <= MOST_KB
            assert rss[-1] <= GROWTH * rss[0], rss
            agent.end()
    finally:
        hub.kill()


def _held_calls(hub: HubProcess, agent: StreamAgents) -> list[str]:
    """Where the streams are of calls whose agent is silent; nobody reads them yet."""
    hub.register(agent.card())
    body = {"target_agent_id": STREAMER, "skill": SKILL, "input": {"holds": True}}
    paths: list[str] = []
    for _ in range(TASKS):
        with sse(f"{hub.url}/v1/a2a/call/stream", body, headers={"Authorization": f"Bearer {hub.token}"}) as stream:
            paths.append(f"/v1/a2a/call/{stream.take(1)[0].data['call_id']}/stream")
    _until(lambda: agent.held() == TASKS, "calls that the agent was not sent")
    return paths


def _judge(heard: Heard, readers: int, piece: int | None = None) -> Heard:
    assert not heard.faults, heard
    assert heard.readers == readers, heard
    assert piece is None or heard.heard == readers, heard
    return heard


def _until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + GONE_S
    while not holds():
        assert time.monotonic() < until, f"left behind: {what}"
        time.sleep(STEP_S)  # the only way to wait for what another process does


def _show(
    capsys: pytest.CaptureFixture[str], count: int, each_kb: float, before: int, rss: list[int], late: list[Heard]
) -> None:
    with capsys.disabled():
        sys.stdout.write(
            f"\n{count} idle streams: {each_kb:.1f} KB each (at most {MOST_KB:g}, goal 12); "
            f"memory {before >> 20} MiB before, {rss[0] >> 20} after round 1, {rss[-1] >> 20} after {len(rss)}; "
            f"one event to all: p99 {max(each.p99_ms for each in late):.0f} ms at worst"
        )
