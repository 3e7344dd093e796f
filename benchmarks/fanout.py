"""`fanout`: one task, many readers: what an event costs for each of them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks import report
from benchmarks.http import Endpoint
from benchmarks.hub import Hub
from benchmarks.ledger import Answers
from benchmarks.open_calls import bare_request, follow_request, go, open_calls
from benchmarks.place import LOAD_CORE, SERVER_CORE
from benchmarks.processes import exact_cpu_s
from benchmarks.reading import all_begun, all_ended, on_loop, read
from benchmarks.rounds import WARM_UP_S, Options, spread
from benchmarks.stage import Stage
from benchmarks.telling import telling_card

READERS: Final = 1000
PER_S: Final = 10.0
REST_S: Final = 0.5
AT_ONCE: Final = 100  # connections that are made together
BARE: Final = "uvicorn"


class Task(NamedTuple):
    """What is followed: by which request, and how it is told to begin."""

    request: bytes
    begin: Callable[[], None]


class Fanned(msgspec.Struct, frozen=True, kw_only=True):
    """One round: events as readers got them, each counted once per reader."""

    events: int
    cpu_s: float
    per_s: float
    per_cpu_s: float


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure the hubs and the bare server in turn; what is kept of it."""
    lines = round((WARM_UP_S + options.seconds + REST_S) * PER_S)
    with Stage(folder, options) as stage:
        agent = stage.program("benchmarks.stream_agent", core=LOAD_CORE)
        bare = stage.program("benchmarks.bare_streams", core=SERVER_CORE)
        hubs = stage.hubs(agent.endpoint, card=telling_card)
        rounds: dict[str, list[Fanned]] = {BARE: [], **{hub.name: [] for hub in hubs}}
        for _ in range(options.rounds):
            path = f"/go?lines={lines}&per_s={PER_S}"
            task = Task(bare_request(bare.endpoint), lambda path=path: go(bare.endpoint, path))
            rounds[BARE].append(on_loop(_round(bare.endpoint, task, bare.server.pid, lines, options.seconds)))
            for hub in hubs:
                task = _task(hub, agent.endpoint, lines, stage)
                rounds[hub.name].append(on_loop(_round(hub.endpoint, task, hub.server.pid, lines, options.seconds)))
        kept = _show(rounds, list(options.hubs))
        print("\nproof")
        kept["database"] = stage.settle(hubs)
    return kept


def _task(hub: Hub, agent: Endpoint, lines: int, stage: Stage) -> Task:
    (call_id,) = open_calls(hub, 1, lines, PER_S)
    stage.count(hub.name, Answers(1, [call_id]))
    return Task(follow_request(hub, call_id), lambda: go(agent))


async def _round(endpoint: Endpoint, task: Task, pid: int, lines: int, seconds: float) -> Fanned:
    readings = [
        reading
        for _ in range(READERS // AT_ONCE)
        for reading in await asyncio.gather(*(read(endpoint, task.request) for _ in range(AT_ONCE)))
    ]
    await all_begun(readings)
    task.begin()
    await asyncio.sleep(WARM_UP_S)
    loop = asyncio.get_running_loop()
    began, before, first = loop.time(), exact_cpu_s(pid), sum(each.lines for each in readings)
    await asyncio.sleep(seconds)
    took, used = loop.time() - began, exact_cpu_s(pid) - before
    events = sum(each.lines for each in readings) - first
    await all_ended(readings, lines)
    return Fanned(events=events, cpu_s=used, per_s=events / took, per_cpu_s=events / used)


def _show(rounds: dict[str, list[Fanned]], hubs: list[str]) -> dict[str, Any]:
    print(f"\n{READERS} readers of one task, {PER_S:.0f} events a second")
    rows = [
        (
            name,
            spread([one.per_cpu_s for one in each]).text(",.0f"),
            f"{1e6 / spread([one.per_cpu_s for one in each]).median:.1f}",
            f"{spread([one.per_s for one in each]).median:,.0f}",
        )
        for name, each in rounds.items()
    ]
    report.table(("server", "events/CPU-s", "CPU µs", "events/s"), rows)
    kept: dict[str, Any] = {"rounds": {name: msgspec.to_builtins(each) for name, each in rounds.items()}, "ratios": {}}
    for name in hubs:
        pairs = zip(rounds[name], rounds[BARE], strict=True)
        found = spread([a.per_cpu_s / b.per_cpu_s for a, b in pairs])
        report.show_ratio(f"events per CPU-s, {name} / {BARE}", found)
        kept["ratios"][f"{name}/{BARE}"] = found
    kept["noisy"] = spread([each.per_cpu_s for each in rounds[BARE]]).noisy
    if kept["noisy"]:
        print(f"  NOISY: {BARE}'s own rounds differ by more than 1.5x")
    return kept
