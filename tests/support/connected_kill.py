"""The kill harness for agents that connect out: agent, or hub, killed again and again under load.

    callers ── calls that are waited for, calls that are accepted ──► hub ◄── connects out ── agent (two processes)
                                                                       ✝ or ✝                  leaves a mark per call

The load never pauses. Every call that was acknowledged must end, once, with its own answer. A handler runs again for
the same call only when the process in which it ran was killed; never for one call in two processes that live.
"""

import asyncio
import itertools
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.backends.sqlite import codec, tasks
from dragoman.backends.sqlite.connection import connect
from dragoman.model.events import StatusChanged
from dragoman.model.states import FINAL
from dragoman.server.app import DATABASE
from tests.support.connected_agent import AGENT, AgentProcess, Mark
from tests.support.hub import HubProcess
from tests.support.kill_load import Client
from tests.support.run import run

CALLERS: Final = 3
PER_S: Final = 100.0
ACCEPTED: Final = 0.5  # of the calls; the others are waited for
TAKES_S: Final = (0.0, 0.25)  # in the handler
PAUSE_S: Final = (0.1, 0.5)  # between two kills
LAST_S: Final = 0.3
ATTEMPTS: Final = 20
TIME_MS: Final = 120_000  # for a call: it may be begun several times
SETTLE_S: Final = 30.0
STEP_S: Final = 0.02
CONCURRENCY: Final = 40
LEASE_S: Final = 2.0  # of a session, in place of 30: so long nobody knows that its process was killed
AT_WORK_S: Final = 10.0
SHOWN: Final = 8


class Sent:
    """One call of the load, and what was answered."""

    def __init__(self, number: int, *, accepted: bool, takes_s: float) -> None:
        self.number = number
        self.accepted = accepted
        self.takes_s = takes_s
        self.ids: set[str] = set()
        self.answer: dict[str, Any] | None = None  # the last acknowledgement


class Report(msgspec.Struct, kw_only=True):
    """What a run did, and what it found wrong."""

    seed: int
    killed: str
    kills: int = 0
    calls: int = 0
    acknowledged: int = 0
    in_flight: list[int] = []  # handlers that ran when the process was killed
    executions: int = 0
    repeated: int = 0
    slowest_s: float = 0.0
    took_s: float = 0.0
    complaints: list[str] = []

    def __str__(self) -> str:
        shown = "\n".join(f"  {each[:400]}" for each in self.complaints[:SHOWN])
        hit = sum(1 for count in self.in_flight if count)
        return (
            f"seed {self.seed}: {self.killed} killed {self.kills} times, {hit} of them with handlers at work (in all "
            f"{sum(self.in_flight)}); {self.calls} calls, {self.acknowledged} acknowledged, {self.executions} "
            f"executions, {self.repeated} of them again after a kill; the slowest answer took {self.slowest_s:.1f} s, "
            f"all {self.took_s:.1f} s; {len(self.complaints)} complaints\n{shown}"
        )


def kill_agents(folder: Path, kills: int, seed: int, *, planted: str = "", settle_s: float = SETTLE_S) -> Report:
    """Kill the agent's processes so often, one after the other."""
    return _run(folder, kills, seed, "the agent", planted, settle_s)


def kill_hubs(folder: Path, kills: int, seed: int, *, planted: str = "", settle_s: float = SETTLE_S) -> Report:
    """Kill the hub so often."""
    return _run(folder, kills, seed, "the hub", planted, settle_s)


def _run(folder: Path, kills: int, seed: int, killed: str, planted: str, settle_s: float) -> Report:
    hub = HubProcess(folder / "data", planted=planted)
    return run(_KillRun(folder, hub, Report(seed=seed, killed=killed), settle_s).live(kills), 280.0)


class _KillRun:
    def __init__(self, folder: Path, hub: HubProcess, report: Report, settle_s: float) -> None:
        self._hub = hub
        self._report = report
        self._settle_s = settle_s
        self._chance = random.Random(report.seed)
        self._agents = [AgentProcess(hub, folder / "marks", concurrency=CONCURRENCY) for _ in range(2)]
        self._died: dict[int, float] = {}  # by process: when it was killed
        self._sent: list[Sent] = []
        self._clients: list[Client] = []
        self._stopped = asyncio.Event()

    async def live(self, kills: int) -> Report:
        """The load, the kills, then a look at everything."""
        began = time.monotonic()
        try:
            await self._start_hub()
            await asyncio.gather(*(asyncio.to_thread(agent.start) for agent in self._agents))
            clients = self._clients = [Client(self._hub.port, self._hub.new_key("a2a:call")) for _ in range(CALLERS)]
            async with asyncio.TaskGroup() as group:
                loading = group.create_task(self._load(clients))
                for _ in range(kills):
                    await asyncio.sleep(self._chance.uniform(*PAUSE_S))
                    await (self._kill_an_agent() if self._report.killed == "the agent" else self._kill_the_hub(clients))
                await asyncio.sleep(LAST_S)
                self._stopped.set()
                await asyncio.wait([loading], timeout=self._settle_s)
                if not loading.done():
                    self._complain("calls that were waited for were never answered")
                    loading.cancel()
            await self._check(clients)
            codes = [await asyncio.to_thread(agent.stop) for agent in self._agents]
            if any(codes):
                self._complain(f"the agents ended with {codes}")
            self._hub.kill()
            self._check_file()
        finally:
            for client in self._clients:
                client.start_anew()
            for agent in self._agents:
                agent.kill()
            self._hub.kill()
        self._report.took_s = time.monotonic() - began
        return self._report

    def _complain(self, *complaints: str) -> None:
        self._report.complaints.extend(complaints)

    # The kills.

    async def _kill_an_agent(self) -> None:
        agent = self._chance.choice(self._agents)
        pid = agent.pid
        await self._at_work([agent])
        await asyncio.to_thread(agent.kill)
        self._died[pid] = time.monotonic()
        self._report.kills += 1
        self._report.in_flight.append(_running(agent.marks(), pid))
        agent.begin()

    async def _at_work(self, agents: Sequence[AgentProcess]) -> int:
        """Wait until processes that may just have been started, or have just come back, have something to do."""
        for _ in range(round(AT_WORK_S / STEP_S)):
            marks = agents[0].marks()
            if running := sum(_running(marks, agent.pid) for agent in agents):
                return running
            await asyncio.sleep(STEP_S)
        return 0

    async def _kill_the_hub(self, clients: Sequence[Client]) -> None:
        self._report.in_flight.append(await self._at_work(self._agents))
        await asyncio.to_thread(self._hub.kill)
        self._report.kills += 1
        for client in clients:
            client.start_anew()
        await self._start_hub()

    async def _start_hub(self) -> None:
        short = {"DRAGOMAN_CONNECT_LEASE_S": str(LEASE_S)} if self._report.killed == "the agent" else {}
        await asyncio.to_thread(self._hub.start, short)

    # The load.

    async def _load(self, clients: Sequence[Client]) -> None:
        async with asyncio.TaskGroup() as group:
            for number in itertools.count():
                if self._stopped.is_set():
                    break
                accepted = self._chance.random() < ACCEPTED
                call = Sent(number, accepted=accepted, takes_s=self._chance.uniform(*TAKES_S))
                self._sent.append(call)
                group.create_task(self._call(clients[number % CALLERS], call))
                await asyncio.sleep(self._chance.expovariate(PER_S))

    async def _call(self, client: Client, call: Sent) -> None:
        """Ask until it is acknowledged: each call has a key, so it is one call however often it is asked."""
        body = {
            "target_agent_id": AGENT,
            "skill": "mark_it",
            "input": {"number": call.number, "takes_s": call.takes_s},
            "options": {"timeout_ms": TIME_MS},
        }
        path, wanted = ("/v1/a2a/call/async", 202) if call.accepted else ("/v1/a2a/call", 200)
        began = time.monotonic()
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(0 if attempt == 0 else self._chance.uniform(0, 0.1 * 2 ** min(attempt, 4)))
            try:
                status, said = await client.ask("POST", path, body, f"{self._report.seed}-{call.number}")
            except (OSError, EOFError, TimeoutError):
                continue  # By its key it is the same call: it goes on.
            if status == wanted:
                call.ids.add(said["call_id"])
                call.answer = said
                break
            if status != 503:
                self._complain(f"call {call.number} was answered {status}: {said.get('error')}")
                break
        self._report.slowest_s = max(self._report.slowest_s, time.monotonic() - began)

    # The checks.

    async def _check(self, clients: Sequence[Client]) -> None:
        report = self._report
        acknowledged = [call for call in self._sent if call.answer is not None]
        report.calls, report.acknowledged = len(self._sent), len(acknowledged)
        for call in acknowledged:
            await self._check_answer(clients[call.number % CALLERS], call)
        self._check_marks(self._agents[0].marks(), acknowledged)

    async def _check_answer(self, client: Client, call: Sent) -> None:
        if len(call.ids) != 1:
            self._complain(f"call {call.number} was acknowledged under {sorted(call.ids)}")
            return
        (call_id,) = call.ids
        until = time.monotonic() + self._settle_s
        while True:
            status, told = await client.ask("GET", f"/v1/a2a/call/{call_id}/status")
            open_ = status == 200 and told["status"] in ("queued", "running", "pending")
            if not open_ or time.monotonic() > until:
                break
            await asyncio.sleep(STEP_S)
        wanted = {"number": call.number, "call_id": call_id}
        if status != 200 or told["status"] != "completed" or told.get("result") != wanted:
            self._complain(f"call {call.number}, acknowledged as {call_id}, is {status} {told}")
            self._settle_s = min(self._settle_s, 1.0)  # One that stays open is enough to wait for.
        elif not call.accepted and call.answer is not None and call.answer.get("result") != wanted:
            self._complain(f"call {call.number} was answered {call.answer}")

    def _check_marks(self, marks: Sequence[Mark], acknowledged: Sequence[Sent]) -> None:
        begun: defaultdict[str, list[Mark]] = defaultdict(list)
        ended = Counter((mark.pid, mark.call_id) for mark in marks if mark.what == "end")
        for mark in marks:
            if mark.what == "begin":
                begun[mark.call_id].append(mark)
        self._report.executions = sum(map(len, begun.values()))
        self._report.repeated = sum(len(runs) - 1 for runs in begun.values())
        for call_id, runs in begun.items():
            for before, after in itertools.pairwise(runs):
                if before.pid == after.pid:
                    self._complain(f"{call_id} was carried out twice in process {before.pid}")
                elif self._died.get(before.pid, float("inf")) > after.at:
                    self._complain(f"{call_id} was carried out by {after.pid} while {before.pid} lived")
        for call in acknowledged:
            runs = begun[next(iter(call.ids))]
            if not any(ended[mark.pid, mark.call_id] for mark in runs):
                self._complain(f"call {call.number} was answered, and nobody carried it out")

    def _check_file(self) -> None:
        """Every call that is on disk has exactly one end."""
        connection = connect(self._hub.data / DATABASE)
        try:
            for (call_id,) in connection.execute("SELECT id FROM task").fetchall():
                happened = tasks.events(connection, str(call_id), 0, codec.MAX_SEQ)
                ends = [
                    each for each in happened if isinstance(each.event, StatusChanged) and each.event.state in FINAL
                ]
                if len(ends) != 1:
                    self._complain(f"{call_id} has {len(ends)} ends")
        finally:
            connection.close()


def _running(marks: Sequence[Mark], pid: int) -> int:
    """How many handlers a process has begun and not ended."""
    counts = Counter(mark.what for mark in marks if mark.pid == pid)
    return counts["begin"] - counts["end"]
