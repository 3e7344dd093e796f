"""`call`: what a synchronous call through the hub costs in CPU, with every call durable before it is answered."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import report
from benchmarks.calls import Call
from benchmarks.hub import Hub
from benchmarks.rounds import Contender, Options, Rounds, measure, plain, ratio, spread
from benchmarks.stage import AGENT_ID, Stage


class Case(NamedTuple):
    """One load, and what the hub's share of nginx's rate should be."""

    name: str
    connections: int
    header: str | None = None
    goal: str = ""
    official: bool = False  # the caller speaks A2A 1.0, as the agent does; else the platform's dialect


CASES: Final = (
    Case("c=1", 1),
    Case("c=16", 16, goal="gate 0.10, goal 0.12"),
    Case("c=64", 64, goal="gate 0.10, goal 0.12"),
    Case("c=16, same dialect", 16, goal="gate 0.10, goal 0.12", official=True),
    Case("c=64, same dialect", 64, goal="gate 0.10, goal 0.12", official=True),
    Case("c=16, X-Request-ID", 16, "X-Request-ID", goal="gate 0.10"),
    Case("c=16, Idempotency-Key", 16, "Idempotency-Key"),
)
BESIDE_NAIVE: Final = "goal 15"


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure all cases; what is kept of them."""
    with Stage(folder, options) as stage:
        upstream = stage.agent()
        floor = stage.floor(upstream)
        naive = stage.naive(upstream)
        control = stage.checked(Contender("naive", naive.call(), naive.server.pid))
        hubs = stage.hubs(upstream)
        cases: dict[str, Any] = {}
        for case in CASES:
            contenders = [Contender(hub.name, _call(hub, case), hub.server.pid) for hub in hubs if _speaks(hub, case)]
            for each in contenders:
                stage.checked(each)
            others = [*floor, control] if case.header is None and not case.official else floor
            print(f"\n{case.name}")
            rounds = measure([*others, *contenders], case.connections, options, folder, stage.tally)
            cases[case.name] = _show(case, rounds, [each.name for each in contenders])
        print("\nproof")
        proofs = {hub.name: stage.prove(hub.name, hub.call(AGENT_ID), hub.server.pid) for hub in hubs}
        proofs["naive"] = stage.prove("naive", control.call, control.pid)
        return {"cases": cases, "syncs": proofs, "database": stage.settle([naive, *hubs])}


def _speaks(hub: Hub, case: Case) -> bool:
    return not case.official or hub.serves_bases(AGENT_ID)


def _call(hub: Hub, case: Case) -> Call:
    return hub.official_call(AGENT_ID) if case.official else hub.call(AGENT_ID, unique_header=case.header)


def _show(case: Case, rounds: Rounds, hubs: list[str]) -> dict[str, Any]:
    report.show_rounds(rounds)
    kept: dict[str, Any] = {"rounds": plain(rounds), "ratios": {}, "thread_us": {}}
    first, *others = hubs
    pairs = [(hub, "nginx", case.goal) for hub in hubs] + [(hub, "naive", BESIDE_NAIVE) for hub in hubs]
    for one, other, goal in [*pairs, *((first, each, "") for each in others)]:
        found = ratio(rounds, one, other)
        report.show_ratio(f"{one} / {other}", found, goal if case.connections > 1 else "")
        kept["ratios"][f"{one}/{other}"] = found
    for hub in hubs:
        shares = report.thread_shares(rounds[hub])
        kept["thread_us"][hub] = shares
        print(f"  {hub} threads, µs per call: " + ", ".join(f"{name} {value:.0f}" for name, value in shares.items()))
    kept["noisy"] = any(
        spread([each.per_cpu_s for each in rounds[name]]).noisy for name in ("nginx", "naive") if name in rounds
    )
    if kept["noisy"]:
        print("  NOISY: a control's own rounds differ by more than 1.5x")
    return kept
