"""`stream`: what it costs to pass on what agents say while they say it, every event durable before it is shown."""

import asyncio
import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks import nginx, report
from benchmarks.http import Endpoint
from benchmarks.hub import Hub
from benchmarks.ledger import Answers
from benchmarks.place import LOAD_CORE
from benchmarks.processes import exact_cpu_s
from benchmarks.reading import Reading, all_begun, all_ended, on_loop, read
from benchmarks.rounds import WARM_UP_S, Options, Spread, spread
from benchmarks.stage import AGENT_ID, Stage
from benchmarks.telling import STREAM_PATH, asked, call_body, telling_card

STREAMS: Final = 100
PER_S: Final = 50.0
REST_S: Final = 0.5  # how long the streams go on after the measuring
# Each stream has a connection of its own to the agent, and all go to one.
ONE_AGENT: Final = {"DRAGOMAN_CLIENT_CONNECTIONS_PER_ORIGIN": "256"}


class Way(NamedTuple):
    """One way to the agent: where to ask, and how."""

    name: str
    endpoint: Endpoint
    request: Callable[[dict[str, Any]], bytes]
    pid: int


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """One round of one way; events are those of the agent, however many came in one piece."""

    events: int
    cpu_s: float
    per_s: float
    per_cpu_s: float
    pieces_per_event: float
    first_p50_ms: float
    p50_ms: float
    p99_ms: float


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure all ways in turn; what is kept of them."""
    with Stage(folder, options) as stage:
        agent = stage.program("benchmarks.stream_agent", core=LOAD_CORE)
        ways = [_straight("direct", agent.endpoint, agent.server.pid)]
        if nginx.program() is not None:
            floor = nginx.stream_proxy(folder, agent.endpoint)
            stage.run(floor)
            ways.append(_straight("nginx", floor.endpoint, floor.server.pid))
        hubs = stage.hubs(agent.endpoint, settings=ONE_AGENT, card=telling_card)
        ways += [hub_way(hub) for hub in hubs]
        rounds: dict[str, list[Streamed]] = {way.name: [] for way in ways}
        for _ in range(options.rounds):
            for way in ways:
                streamed, names = on_loop(one_way(way, options.seconds))
                rounds[way.name].append(streamed)
                stage.count(way.name, Answers(STREAMS, names))
        kept = _show(rounds, list(options.hubs))
        print("\nproof")
        kept["database"] = stage.settle(hubs)
    return kept


def hub_way(hub: Hub) -> Way:
    """The way through a hub."""
    return Way(hub.name, hub.endpoint, _asking(hub.endpoint, STREAM_PATH, hub.caller_token), hub.server.pid)


def _straight(name: str, endpoint: Endpoint, pid: int) -> Way:
    return Way(name, endpoint, _asking(endpoint, "/a2a"), pid)


def _asking(endpoint: Endpoint, path: str, token: str | None = None) -> Callable[[dict[str, Any]], bytes]:
    headers = {"Accept": "text/event-stream", **({"Authorization": f"Bearer {token}"} if token else {})}

    def request(wanted: dict[str, Any]) -> bytes:
        return endpoint.request("POST", path, headers, json.dumps(call_body(AGENT_ID, wanted)).encode())

    return request


async def one_way(way: Way, seconds: float, watched: Callable[[], object] = lambda: None) -> tuple[Streamed, list[str]]:
    """One round: what it cost, and the calls' names. `watched` is called when the measuring begins and ends."""
    lines = round((WARM_UP_S + seconds + REST_S) * PER_S)
    request = way.request(asked(lines, PER_S))
    readings: list[Reading] = []
    for _ in range(STREAMS):
        readings.append(await read(way.endpoint, request))
        # Spread over one pause between two lines, so that no two streams speak at once.
        await asyncio.sleep(1 / PER_S / STREAMS)
    await all_begun(readings)
    await asyncio.sleep(WARM_UP_S)
    loop = asyncio.get_running_loop()
    began, before, first = loop.time(), exact_cpu_s(way.pid), _lines(readings)
    watched()
    await asyncio.sleep(seconds)
    watched()
    took, used, events = loop.time() - began, exact_cpu_s(way.pid) - before, _lines(readings) - first
    await all_ended(readings, lines)
    late = statistics.quantiles([each for reading in readings for each in reading.late_ms], n=100)
    streamed = Streamed(
        events=events,
        cpu_s=used,
        per_s=events / took,
        per_cpu_s=events / used,
        pieces_per_event=sum(each.chunks for each in readings) / _lines(readings),
        first_p50_ms=statistics.median(each.first_ms for each in readings),
        p50_ms=late[49],
        p99_ms=late[98],
    )
    return streamed, [each.call_id for each in readings if each.call_id]


def _lines(readings: list[Reading]) -> int:
    return sum(each.lines for each in readings)


def _show(rounds: Mapping[str, list[Streamed]], hubs: list[str]) -> dict[str, Any]:
    print(f"\n{STREAMS} streams of {PER_S:.0f} events a second")
    direct = rounds["direct"]
    rows = [
        (
            name,
            "" if name == "direct" else _spread(each, "per_cpu_s").text(",.0f"),
            "" if name == "direct" else f"{1e6 / _spread(each, 'per_cpu_s').median:,.0f}",
            f"{_spread(each, 'per_s').median:,.0f}",
            f"{_spread(each, 'pieces_per_event').median:.2f}",
            _added(each, direct, "first_p50_ms").text(".2f"),
            _added(each, direct, "p50_ms").text(".2f"),
            f"{_added(each, direct, 'p99_ms').median:.2f}",
        )
        for name, each in rounds.items()
    ]
    headings = ("way", "events/CPU-s", "CPU µs", "events/s", "pieces per event")
    report.table((*headings, "first event +ms", "event p50 +ms", "p99 +ms"), rows)
    first, p50 = _spread(direct, "first_p50_ms"), _spread(direct, "p50_ms")
    print(f"  direct: first event {first.text('.2f')} ms, event p50 {p50.text('.2f')} ms")
    kept: dict[str, Any] = {"rounds": {name: msgspec.to_builtins(each) for name, each in rounds.items()}, "ratios": {}}
    others = [name for name in ("nginx", *hubs[1:]) if name in rounds]
    for one, other in [(hub, other) for hub in hubs for other in others if hub != other]:
        pairs = zip(rounds[one], rounds[other], strict=True)
        found = spread([a.per_cpu_s / b.per_cpu_s for a, b in pairs])
        report.show_ratio(f"events per CPU-s, {one} / {other}", found)
        kept["ratios"][f"{one}/{other}"] = found
    kept["noisy"] = "nginx" in rounds and _spread(rounds["nginx"], "per_cpu_s").noisy
    if kept["noisy"]:
        print("  NOISY: nginx's own rounds differ by more than 1.5x")
    return kept


def _spread(rounds: list[Streamed], figure: str) -> Spread:
    return spread([getattr(each, figure) for each in rounds])


def _added(rounds: list[Streamed], direct: list[Streamed], figure: str) -> Spread:
    return spread([getattr(a, figure) - getattr(b, figure) for a, b in zip(rounds, direct, strict=True)])
