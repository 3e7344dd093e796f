"""The kill harness: a hub under load is killed again and again, and held to what it had acknowledged.

    life 1 ── load ── kill -9 ──► life 2 ── load ── kill -9 ──► … ──► last life: the load ends, all is checked

The load never pauses, and readers of streams come back after every kill. After each restart the hub must still tell
what it answered before; at the end its answers, its file, its callbacks, its streams and its agents' account are held
against the loader's ledger. A hub is killed from outside after a while, or kills itself at a point (`planted.py`).
"""

import asyncio
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from dragoman.server.app import DATABASE
from tests.support.hub import HubProcess
from tests.support.kill_agents import KillAgents, kill_agents
from tests.support.kill_checks import check_answers, check_asked, check_file, check_statuses, open_calls, open_work
from tests.support.kill_load import Client, Load
from tests.support.kill_readers import Readers
from tests.support.kill_told import check_callbacks, check_readers
from tests.support.run import run
from tests.support.stream_agents import StreamAgents, stream_agents

PAUSE_S: Final = (0.1, 0.5)
LAST_S: Final = 0.3  # of load in the last life
POINT_S: Final = 20.0
STEP_S: Final = 0.01
SHOWN: Final = 8


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One life of the hub: with which fault in it, and how long; until it kills itself where no time is given."""

    planted: str = ""
    lasts_s: float | None = None


class Report(msgspec.Struct, kw_only=True):
    """What a run did, and what it found wrong."""

    seed: int
    calls: int = 0
    acknowledged: int = 0
    cut_off: int = 0
    repeated: int = 0
    given_up: int = 0
    cancelled: int = 0
    callbacks: int = 0
    streams: int = 0
    resumed: int = 0
    in_flight: list[int] = []
    ready_s: list[float] = []
    stored: Counter[str] = Counter()
    complaints: list[str] = []

    @property
    def kills(self) -> int:
        """How often the hub was killed."""
        return len(self.in_flight)

    @property
    def kills_with_calls(self) -> float:
        """The share of kills that hit calls on their way."""
        return sum(1 for count in self.in_flight if count) / max(self.kills, 1)

    def __str__(self) -> str:
        shown = "\n".join(f"  {each[:400]}" for each in self.complaints[:SHOWN])
        stored = ", ".join(f"{count} {kind}" for kind, count in sorted(self.stored.items()))
        return (
            f"seed {self.seed}: {self.kills} kills, {self.kills_with_calls:.0%} with calls in flight "
            f"(mean {sum(self.in_flight) / max(self.kills, 1):.0f}); {self.calls} calls, {self.cut_off} cut off, "
            f"{self.acknowledged} acknowledged, {self.repeated} of them again, {self.given_up} with a key given up; "
            f"{self.cancelled} cancelled, {self.callbacks} callbacks; {self.streams} streams, resumed {self.resumed} "
            f"times; "
            f"stored: {stored}; ready after at most {max(self.ready_s, default=0):.2f} s; "
            f"{len(self.complaints)} complaints\n{shown}"
        )


def random_lives(kills: int, seed: int, planted: str = "") -> list[Life]:
    """Lives that end after a random while, and the last one."""
    chance = random.Random(seed)
    return [Life(planted=planted, lasts_s=chance.uniform(*PAUSE_S)) for _ in range(kills)] + [
        Life(planted=planted, lasts_s=LAST_S)
    ]


def pointed_lives(points: Sequence[str], seed: int) -> list[Life]:
    """A life in which the agents are registered, one for each kill point, and the last one."""
    chance = random.Random(seed)
    ends = [Life(planted=f"{point}={chance.randint(30, 120)}") for point in points]
    return [Life(lasts_s=LAST_S), *ends, Life(lasts_s=LAST_S)]


def kill_run(
    folder: Path, lives: Sequence[Life], seed: int, *, settle_s: float = 30.0, limit_s: float = 280.0
) -> Report:
    """Live these lives under load; what was done and found. `settle_s`: how long calls may take to end afterwards."""
    with kill_agents(seed) as agents, stream_agents() as streamer:
        return run(_KillRun(folder, agents, streamer, seed, settle_s).live(lives), limit_s)


class _KillRun:
    def __init__(self, folder: Path, agents: KillAgents, streamer: StreamAgents, seed: int, settle_s: float) -> None:
        self._agents = agents
        self._streamer = streamer
        self._settle_s = settle_s
        self._hub = HubProcess(folder / "data")
        self._file = self._hub.data / DATABASE
        self._report = Report(seed=seed)
        self._checked = 0
        self._lives: list[float] = []  # when each of them began

    async def live(self, lives: Sequence[Life]) -> Report:
        """All lives, one after the other."""
        try:
            await self._begin(lives[0])
            for card in (*self._agents.cards(), self._streamer.card()):
                self._hub.register(card)
            key, seed = self._hub.new_key("a2a:call"), self._report.seed
            client = Client(self._hub.port, key)
            load = Load(client, random.Random(seed), f"kill-{seed}", self._agents.callback_url)
            readers = Readers(self._hub.port, key, random.Random(seed + 1), f"kill-{seed}")
            async with asyncio.TaskGroup() as group:
                loading, reading = group.create_task(load.run()), group.create_task(readers.run())
                for life, after in itertools.pairwise(lives):
                    await self._end(life, client)
                    await self._begin(after)
                    if not self._hub.died_by:
                        await self._check_so_far(load, client)
                await asyncio.sleep(LAST_S)
                load.stop()
                readers.stop()
                await asyncio.wait([loading, reading], timeout=self._settle_s)
                # What is still unanswered now is judged by its task, below.
                loading.cancel()
                reading.cancel()
            await self._finish(load, readers, client)
        finally:
            self._hub.kill()
        return self._report

    async def _begin(self, life: Life) -> None:
        """A new process on the same data and port."""
        hub = HubProcess(self._hub.data, planted=life.planted)
        hub.port, hub.url = self._hub.port, self._hub.url
        self._hub = hub
        began = time.monotonic()
        self._lives.append(began)
        try:
            await asyncio.to_thread(hub.start)
        except AssertionError:
            # One that is to die at a weak point may pass it before anybody sees that it is ready.
            if life.lasts_s is not None or hub.died_by != signal.SIGKILL:
                raise
            return
        self._report.ready_s.append(time.monotonic() - began)

    async def _end(self, life: Life, client: Client) -> None:
        if life.lasts_s is not None:
            await asyncio.sleep(life.lasts_s)
            in_flight = client.in_flight
        elif self._hub.died_by:
            in_flight = client.in_flight + client.broken_off
        else:
            if not await _becomes_true(lambda: _died_by(self._hub.pid) is not None, POINT_S):
                self._complain([f"the hub did not pass {life.planted}"])
            elif (died_by := _died_by(self._hub.pid)) != signal.SIGKILL:
                self._complain([f"the hub ended by {died_by} before it passed {life.planted}"])
            # We hear of it a little late: what was on its way is broken off already.
            in_flight = client.in_flight + client.broken_off
        self._report.in_flight.append(in_flight)
        await asyncio.to_thread(self._hub.kill)
        await asyncio.to_thread(self._agents.read_all)  # Else what this life asked counts for the next.
        client.start_anew()

    async def _check_so_far(self, load: Load, client: Client) -> None:
        """What was answered since the last restart is told again as it was, and by its key given again."""
        calls = load.ledger.calls
        fresh, self._checked = [call for call in calls[self._checked :] if call.answers], len(calls)
        self._complain(await check_statuses(client, fresh))
        await load.repeat_answered()

    async def _finish(self, load: Load, readers: Readers, client: Client) -> None:
        report, ledger = self._report, load.ledger
        await _becomes_true(lambda: open_calls(self._file) == 0 and open_work(self._file) == 0, self._settle_s)
        if still_open := open_calls(self._file):
            self._complain([f"{still_open} calls stay open"])
        answered = ledger.acknowledged()
        self._complain(await check_statuses(client, answered))
        client.start_anew()
        self._complain(check_answers(ledger))
        self._complain(check_asked(self._agents.asked(), ledger, self._lives))
        if still_open:
            self._hub.kill()  # It would wait for them in vain.
        elif code := await asyncio.to_thread(self._hub.stop):
            self._complain([f"the hub ended with code {code}"])
        complaints, stored, report.stored = check_file(self._file, ledger)
        called = self._agents.called()
        self._complain([*complaints, *check_callbacks(called, ledger, stored), *check_readers(self._file, readers)])
        report.calls = len(ledger.calls)
        report.acknowledged = len(answered)
        report.cut_off = sum(call.cut_off for call in ledger.calls)
        report.repeated = sum(1 for call in answered if len(call.answers) > 1)
        report.cancelled = sum(1 for call in ledger.calls if call.cancelled)
        report.callbacks = len(called)
        report.streams = sum(1 for call in readers.calls if call.done)
        report.resumed = sum(call.resumed for call in readers.calls)
        report.given_up = sum(1 for call in ledger.calls if call.key is not None and not call.answers)

    def _complain(self, complaints: Sequence[str]) -> None:
        self._report.complaints += complaints


def _died_by(pid: int) -> int | None:
    """The signal a child process died by, 0 if it left by itself, None if it lives."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_KILLED else 0


async def _becomes_true(holds: Callable[[], bool], within_s: float) -> bool:
    until = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(STEP_S)
    return True
