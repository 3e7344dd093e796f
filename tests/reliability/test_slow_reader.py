"""R10: a reader that takes nothing holds up nobody, is cut off at its bound, and misses nothing when it comes back."""

import statistics
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.churn import Churn, Heard, churn
from tests.support.hub import HubProcess
from tests.support.slow_reader import slow_reader
from tests.support.sse_client import sse
from tests.support.stream_agents import SKILL, STREAMER, StreamAgents, stream_agents

READERS, EVERY_S = 100, 1 / 150
FULL_READERS, FULL_EVERY_S = 1_000, 1 / 20
PLANTED_READERS = 1
EVENTS_ALONE = 150
EVENTS = 500  # more than a reader's buffer and those of the systems between hold
BURST = 50
PIECE_BYTES = 2_000
# How much later the others may hear of an event while one of them sleeps; twice, or on a busy machine:
NOISE_MS = 50.0
HEARD_S = 60.0


@pytest.mark.serial
@pytest.mark.req("P-22", "P-21")
def test_a_reader_that_takes_nothing_holds_up_none_of_100_others_and_misses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _one_sleeps_among(READERS, EVERY_S, tmp_path, capsys)


@pytest.mark.full
@pytest.mark.serial
def test_a_reader_that_takes_nothing_holds_up_none_of_1000_others_and_misses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _one_sleeps_among(FULL_READERS, FULL_EVERY_S, tmp_path, capsys)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("bug", "complaint"),
    [
        ("reader_unbounded", "was not cut off"),
        ("reader_waited_for", "held up"),
        ("resumed_one_early", "came twice|is missing"),
        ("resumed_one_late", "came twice|is missing"),
    ],
)
def test_a_buffer_without_bound_a_wait_for_the_slow_and_a_resume_off_by_one_are_found(
    bug: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        _one_sleeps_among(PLANTED_READERS, EVERY_S, tmp_path, capsys, bug)


def _one_sleeps_among(
    readers: int, every_s: float, folder: Path, capsys: pytest.CaptureFixture[str], bug: str = ""
) -> None:
    hub = HubProcess(folder / "data", planted=bug).start()
    headers = {"Authorization": f"Bearer {hub.token}"}
    body = {"target_agent_id": STREAMER, "skill": SKILL, "input": {"holds": True}}
    try:
        with stream_agents() as agent, churn(hub) as others:
            hub.register(agent.card())
            with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers) as stream:
                path = f"/v1/a2a/call/{stream.take(1)[0].data['call_id']}/stream"
            _judge(others.open([path], readers), readers)
            alone = _spoken(agent, others, readers, every_s, EVENTS_ALONE, [])
            last = alone[-1].last_id
            with slow_reader(hub, path, last) as sleeper:
                beside = _spoken(agent, others, readers, every_s, EVENTS, alone)
                first = sleeper.take_all()
                _show(capsys, readers, alone, beside, len(first))
                assert sleeper.over and first[-1] < beside[-1].last_id, "the reader that takes nothing was not cut off"
            agent.end()
            with sse(hub.url + path, headers={**headers, "Last-Event-ID": str(first[-1])}) as returned:
                rest = list(returned)
            assert [item.name for item in rest[-2:]] == ["complete", "done"]
            _each_once([*first, *(int(item.id) for item in rest[:-1])], last + 1)
            assert _p99_ms(beside) < max(2 * _p99_ms(alone), _p99_ms(alone) + NOISE_MS), "the others were held up"
    finally:
        hub.kill()


def _each_once(numbers: list[int], first: int) -> None:
    """Every number from the first to the last, none of them twice."""
    twice = [number for number, count in Counter(numbers).items() if count > 1]
    assert not twice, f"an event came twice: {twice}"
    missing = sorted(set(range(first, numbers[-1])) - set(numbers))
    assert not missing, f"an event is missing: {missing}"
    assert numbers == sorted(numbers)


def _spoken(
    agent: StreamAgents, others: Churn, readers: int, every_s: float, events: int, before: list[Heard]
) -> list[Heard]:
    """What the others heard of so many events, burst by burst; pieces that come at once are one event."""
    first = before[-1].last_id if before else 0
    bursts: list[Heard] = []
    while not bursts or bursts[-1].last_id < first + events:
        agent.say(BURST, every_s=every_s, size=PIECE_BYTES)
        piece = (len(before) + len(bursts) + 1) * BURST - 1
        bursts.append(_judge(others.hear(piece, HEARD_S), readers, all_heard=True))
    return bursts


def _p99_ms(bursts: list[Heard]) -> float:
    """Of the typical burst."""
    return statistics.median(burst.p99_ms for burst in bursts)


def _judge(heard: Heard, readers: int, *, all_heard: bool = False) -> Heard:
    assert not heard.faults, heard
    assert heard.readers == readers, heard
    assert not all_heard or heard.heard == readers, heard
    return heard


def _show(
    capsys: pytest.CaptureFixture[str], readers: int, alone: list[Heard], beside: list[Heard], taken: int
) -> None:
    with capsys.disabled():
        sys.stdout.write(
            f"\n{readers} readers: an event comes with p99 {_p99_ms(alone):.1f} ms, "
            f"beside one reader that takes nothing {_p99_ms(beside):.1f} ms; that one was cut off with {taken} events"
        )
