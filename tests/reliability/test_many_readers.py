"""R10, the long form: many readers in four dialects, some cut off, some asleep, and a hub that is killed meanwhile.

    alone ─► beside: sleepers, cuts ─► kill -9, restart ─► beside again ─► the end: each saw every number once

Each call has ten readers: four that read and are left alone, three whose connection is cut again and again, three that
sleep until the hub has cut them off. A call that may be sent again goes on with the next hub; one that may not ends
as interrupted, and each of its readers sees that end.
"""

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from dragoman.backends.sqlite.connection import connect
from dragoman.server.app import DATABASE
from tests.support.chaos import ChaosProxy, chaos
from tests.support.figures import rss_bytes
from tests.support.hub import HubProcess
from tests.support.many_readers import Reader, Reading, Stored, complaints, pieces_of, reading, stored_of
from tests.support.run import run
from tests.support.scraped import Scraped
from tests.support.sse_client import sse
from tests.support.stream_agents import SKILL, STREAMER, StreamAgents, stream_agents
from tests.support.stream_tongues import TONGUES, Tongue

BURST: Final = 50
PIECE_BYTES: Final = 2_000
CALL_MS: Final = 600_000
# How much later those that are left alone may hear of an event while others sleep; twice, or on a busy machine:
NOISE_MS: Final = 50.0
MOST_MIB: Final = 96  # that the hub's memory may grow while readers sleep
PATIENCE_S: Final = 20.0
CUT_OFF_S: Final = 10.0
STEP_S: Final = 0.02
LIMIT_S: Final = 240.0
SETTINGS: Final = {
    "DRAGOMAN_LIMITS_STALLED_READER_S": "600",  # It is to be its bound that cuts a sleeper off.
    "DRAGOMAN_HEALTH_EVERY_S": "0",  # The agent tells one thing for a minute, and answers nothing else.
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is done: calls, each with ten readers, and events of each, before and while some sleep."""

    calls: int  # the last of them may not be sent again
    every_s: float
    alone: int
    beside: int


FULL: Final = Plan(calls=5, every_s=1 / 20, alone=100, beside=500)
PLANTED: Final = Plan(calls=2, every_s=1 / 150, alone=50, beside=500)


@pytest.mark.full
@pytest.mark.serial
@pytest.mark.req("P-21", "P-22")
def test_50_readers_see_every_event_once_though_some_are_cut_some_sleep_and_the_hub_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _read_through(FULL, tmp_path, capsys)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("bug", "complaint"),
    [
        ("reader_unbounded", "was not cut off"),
        ("resumed_one_early", "came twice"),
        ("resumed_one_late", "missing|came twice"),
    ],
)
def test_among_many_readers_a_buffer_without_bound_and_a_resume_off_by_one_are_found(
    bug: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        _read_through(PLANTED, tmp_path, capsys, bug)


def _read_through(plan: Plan, folder: Path, capsys: pytest.CaptureFixture[str], bug: str = "") -> None:
    hub = HubProcess(folder / "data", planted=bug).start(SETTINGS)
    try:
        with stream_agents() as agent, chaos(hub.port) as wire:
            hub.register(agent.card())
            shown = run(_Run(plan, hub, agent, wire).live(), LIMIT_S)
    finally:
        hub.kill()
    with capsys.disabled():
        sys.stdout.write(f"\n{shown}")


class _Run:
    def __init__(self, plan: Plan, hub: HubProcess, agent: StreamAgents, wire: ChaosProxy) -> None:
        self._plan = plan
        self._hub = hub
        self._agent = agent
        self._wire = wire
        self._calls = [_begun(hub, number, again=number < plan.calls - 1) for number in range(plan.calls)]
        self._again = self._calls[:-1]
        tongues = itertools.cycle(TONGUES)
        self._plain = [self._reader(call_id, tongue) for call_id in self._calls for tongue in TONGUES]
        self._slow = [self._reader(call_id, next(tongues), slow=True) for call_id in self._calls for _ in range(3)]
        self._wired = [self._reader(call_id, next(tongues), wired=True) for call_id in self._calls for _ in range(3)]
        self._reading: Reading | None = None
        self._cuts = 0
        self._cut_off = 0  # times that a sleeper was
        self._ready_s = 0.0
        self._grown = 0  # bytes, at most, while readers slept

    async def live(self) -> str:
        """All of it; the figures in one line."""
        async with reading() as self._reading:
            self._reading.begin([*self._plain, *self._slow])
            await self._until(lambda: self._agent.held() == len(self._calls), "not every call was sent")
            alone = await self._spoken(self._plan.alone)
            self._reading.begin(self._wired)
            await self._caught_up()
            beside = await self._beside()
            await self._killed()
            beside += await self._beside()
            self._agent.end()
            await self._reading.finish(PATIENCE_S)
        events = self._judged()
        p99_ms, late_ms = statistics.median(alone), statistics.median(beside)
        broken = sum(each.broken for each in (*self._plain, *self._wired))
        shown = (
            f"{len(self._readers)} readers in {len(TONGUES)} dialects of {len(self._calls)} calls, {events} events: "
            f"{self._cuts} cuts and a kill (ready after {self._ready_s:.2f} s) broke {broken} streams off, "
            f"{self._cut_off} times a sleeper was cut off at its bound, every event was seen once; "
            f"p99 of those left alone {p99_ms:.1f} ms, beside the others {late_ms:.1f} ms; "
            f"memory grew by {self._grown >> 20} MiB (at most {MOST_MIB})"
        )
        assert late_ms < max(2 * p99_ms, p99_ms + NOISE_MS), f"the others were held up: {shown}"
        assert self._grown < MOST_MIB << 20, f"the hub keeps what sleepers do not take: {shown}"
        return shown

    # -- what happens

    async def _beside(self) -> list[float]:
        """While some are cut and some sleep: how late the others hear. Then the sleepers wake, and were cut off."""
        sleepers = [each for each in self._slow if each.end is None]
        await _asleep(sleepers)
        dropped, memory = self._dropped(), rss_bytes(self._hub.pid)
        late = await self._spoken(self._plan.beside, cuts=True)
        self._grown = max(self._grown, rss_bytes(self._hub.pid) - memory)
        broken = {each: each.broken for each in sleepers}
        for each in sleepers:
            each.wake()
        await self._until(
            lambda: all(each.broken > broken[each] for each in sleepers),
            "a reader that takes nothing was not cut off",
            CUT_OFF_S,
        )
        await self._caught_up()
        dropped = self._dropped() - dropped
        assert dropped == len(sleepers), f"{len(sleepers)} slept, and {dropped} were cut off at their bound"
        self._cut_off += len(sleepers)
        return late

    async def _killed(self) -> None:
        """The hub dies while its agent speaks, half of the slow ones asleep; the next one goes on."""
        await _asleep(self._slow[::2])
        saying = self._say()
        await self._heard(BURST // 5)
        await asyncio.to_thread(self._hub.kill)
        began = time.monotonic()
        await asyncio.to_thread(self._hub.start, SETTINGS)
        self._ready_s = time.monotonic() - began
        await saying
        await self._until(
            lambda: all(self._agent.asked().count(each) == 2 for each in self._again), "a call was not sent again"
        )
        for each in self._slow:
            each.wake()
        lost = [each for each in self._readers if each.call_id not in self._again]
        await self._until(lambda: all(each.end for each in lost), "to a reader the end of the lost call is missing")
        await self._caught_up()

    async def _spoken(self, events: int, *, cuts: bool = False) -> list[float]:
        """So many events of every call: the p99 in ms of each burst, as those that are left alone heard it."""
        goal = self._oldest() + events
        late: list[float] = []
        while self._oldest() < goal:
            for each in self._plain:
                each.late_s = []
            saying = self._say()
            await self._heard(BURST // 5)
            if cuts:
                await asyncio.to_thread(self._wire.cut)
                self._cuts += 1
            await saying
            heard = sorted(itertools.chain.from_iterable(each.late_s or () for each in self._plain))
            late.append(heard[int(len(heard) * 0.99)] * 1000)
        for each in self._plain:
            each.late_s = None
        return late

    def _say(self) -> "asyncio.Future[None]":
        said = asyncio.to_thread(self._agent.say, BURST, every_s=self._plan.every_s, size=PIECE_BYTES)
        return asyncio.ensure_future(said)

    # -- what is waited for

    async def _heard(self, events: int) -> None:
        goal = self._oldest() + events
        await self._until(lambda: self._oldest() >= goal, "the readers hear nothing more")

    async def _caught_up(self) -> None:
        newest = {each: max(one.last for one in self._plain if one.call_id == each) for each in self._calls}
        await self._until(
            lambda: all(each.last >= newest[each.call_id] for each in self._readers), "a reader stays behind"
        )

    async def _until(self, holds: Callable[[], bool], otherwise: str, within_s: float = PATIENCE_S) -> None:
        assert self._reading is not None
        until = time.monotonic() + within_s
        while not holds():
            self._reading.check()
            assert time.monotonic() < until, otherwise
            await asyncio.sleep(STEP_S)  # the only way to wait for what another process does

    def _oldest(self) -> int:
        """The number that the last of those that are left alone has come to, of a call that goes on."""
        return min((each.last for each in self._plain if each.end is None), default=0)

    def _dropped(self) -> int:
        return int(Scraped(self._hub).value("dragoman_stream_drops_total", reason="slow"))

    # -- what is judged

    def _judged(self) -> int:
        """How many events all calls have; AssertionError for whatever a reader missed, or saw twice or otherwise."""
        stored = connect(self._hub.data / DATABASE)
        try:
            calls = {each: stored_of(stored, each) for each in self._calls}
        finally:
            stored.close()
        found = [each for reader in self._readers for each in complaints(reader, calls[reader.call_id])]
        assert not found, f"{len(found)} complaints:\n" + "\n".join(found)
        seen: dict[tuple[str, str], set[tuple[int, ...]]] = {}
        for each in self._readers:
            if each.first == 0:
                shown = tuple(one.seq for one in each.seen)
                seen.setdefault((each.call_id, each.tongue.slug), set()).add(shown)
        assert all(len(shown) == 1 for shown in seen.values()), "readers of one call saw different events"
        for call_id, call in calls.items():
            assert call.end == ("completed" if call_id in self._again else "failed"), (call_id, call.end)
            lives = 2 if call_id in self._again else 1
            assert _times_begun(call) == lives, f"{call_id} has not all that its agent said, in its order"
        assert all(each.broken == 1 for each in self._plain), "a reader that reads was cut off"
        assert all(each.broken > 1 for each in self._wired if each.call_id in self._again), "too little was cut"
        return sum(call.last for call in calls.values())

    @property
    def _readers(self) -> list[Reader]:
        return [*self._plain, *self._slow, *self._wired]

    def _reader(self, call_id: str, tongue: Tongue, *, wired: bool = False, slow: bool = False) -> Reader:
        """Who comes late asks for the task as it is, where the dialect tells that in one piece."""
        port = self._wire.port if wired else self._hub.port
        late = wired and tongue.slug != "platform"
        return Reader(tongue, call_id, port, self._hub.token or "", late=late, slow=slow)


async def _asleep(readers: Sequence[Reader]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(each.sleep() for each in readers))


def _begun(hub: HubProcess, number: int, *, again: bool) -> str:
    """A call that is held by its agent; `again`: that may be sent once more."""
    options = {"timeout_ms": CALL_MS}
    body = {"target_agent_id": STREAMER, "skill": SKILL, "input": {"holds": True}, "options": options}
    headers = {"Authorization": f"Bearer {hub.token}", **({"Idempotency-Key": f"call-{number}"} if again else {})}
    with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers) as stream:
        return stream.take(1)[0].data["call_id"]


def _times_begun(call: Stored) -> int:
    """How often its agent began to tell, where nothing of what it told is missing; 0 where something is."""
    begun, last = 0, -1
    for number, _ in (piece for words in call.words.values() for piece in pieces_of(words)):
        if number == 0:
            begun += 1
        elif number != last + 1:
            return 0
        last = number
    return begun
