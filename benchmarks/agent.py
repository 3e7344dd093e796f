"""`agent`: a real agent, called directly and through the hub: how much of its rate is left, how long callers wait."""

from pathlib import Path
from typing import Any, Final

from benchmarks import report
from benchmarks.calls import Call, a2a_call
from benchmarks.latency import Commit, added, beyond_commit, lone_commit, show_noise
from benchmarks.latency_rounds import Latency, follow
from benchmarks.ledger import Answers
from benchmarks.rounds import WARM_UP_S, Contender, Options, measure, plain, ratio, spread
from benchmarks.sdk_agent import SdkAgent
from benchmarks.stage import AGENT_ID, Stage

CONNECTIONS: Final = 16
GOAL: Final = "goal 0.9"


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure rate and latency with the a2a-sdk agent at the far end; what is kept of it."""
    with Stage(folder, options) as stage:
        agent = SdkAgent()
        stage.run(agent)
        hubs = stage.hubs(agent.endpoint)
        contenders = [stage.checked(Contender("direct", a2a_call(agent.endpoint), agent.pid))]
        for hub in hubs:
            contenders.append(stage.checked(Contender(hub.name, hub.call(AGENT_ID), hub.server.pid)))
        official = [(hub, f"{hub.name}, a2a-1.0 caller") for hub in hubs if hub.serves_bases(AGENT_ID)]
        for hub, name in official:
            contenders.append(stage.checked(Contender(name, hub.official_call(AGENT_ID), hub.server.pid)))
        print(f"\nrate, c={CONNECTIONS}")
        kept: dict[str, Any] = {"rate": _rate(contenders, stage)}
        print("\nlatency, c=1")
        kept["latency"] = _latency({each.name: each.call for each in contenders}, stage)
        # Both ways of calling end in the same hub's database.
        for hub, name in official:
            ledger = stage.tally[name]
            stage.count(hub.name, Answers(ledger.answered, sorted(ledger.names)), ledger.cut_off)
        print("\nproof")
        kept["database"] = stage.settle(hubs)
    return kept


def _rate(contenders: list[Contender], stage: Stage) -> dict[str, Any]:
    rounds = measure(contenders, CONNECTIONS, stage.options, stage.folder, stage.tally)
    report.show_rounds(rounds)
    kept: dict[str, Any] = {"rounds": plain(rounds), "ratios": {}}
    for each in contenders[1:]:
        found = ratio(rounds, each.name, "direct", lambda measured: measured.per_s)
        report.show_ratio(f"throughput, {each.name} / direct", found, GOAL)
        kept["ratios"][f"{each.name}/direct"] = found
    kept["noisy"] = spread([each.per_s for each in rounds["direct"]]).noisy
    if kept["noisy"]:
        print("  NOISY: the direct call's own rounds differ by more than 1.5x")
    return kept


def _latency(calls: dict[str, Call], stage: Stage) -> dict[str, Any]:
    found: dict[str, list[Latency]] = {name: [] for name in calls}
    commits: list[Commit] = []
    for _ in range(stage.options.rounds):
        for name, call in calls.items():
            warm, measured = follow(call, WARM_UP_S, stage.folder), follow(call, stage.options.seconds, stage.folder)
            found[name].append(measured)
            stage.count(name, warm.answers, 1)
            stage.count(name, measured.answers, 1)
        every_ms = found[next(iter(stage.options.hubs))][-1].every_ms
        commits.append(lone_commit(stage.folder, stage.options.seconds, every_ms))
    direct = found["direct"]
    rows = [
        (
            name,
            spread([each.p50_ms for each in rounds]).text(".3f"),
            added(rounds, direct, "p50_ms").text(".3f"),
            added(rounds, direct, "p99_ms").text(".3f"),
            beyond_commit(rounds, direct, commits).text(".3f"),
        )
        for name, rounds in found.items()
    ]
    report.table(("peer", "p50 ms", "added p50 ms", "added p99 ms", "p50 beyond one commit"), rows)
    print(f"  one durable commit, as often: p50 {spread([each['p50_ms'] for each in commits]).text('.3f')} ms")
    return {
        "rounds": {name: [each.plain() for each in rounds] for name, rounds in found.items()},
        "commits": commits,
        "noisy": show_noise(direct, commits),
    }
