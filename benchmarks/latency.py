"""`latency`: what the hub adds to one caller's wait, beside one durable commit on the same disk in the same minutes.

The commit is timed twice: as often as the hub's calls came, which is what they waited for, and one right after the
other, which is the least that the disk can do.
"""

from pathlib import Path
from typing import Any, Final

from benchmarks import report
from benchmarks.calls import Call, a2a_call, echo_card
from benchmarks.latency_rounds import Latency, follow
from benchmarks.processes import run_alone
from benchmarks.rounds import WARM_UP_S, Options, Spread, spread
from benchmarks.stage import Stage

DELAYS_MS: Final = (0, 2, 20)
GOAL: Final = "goal 0.3 beyond one commit"
REPEATS_WITHIN: Final = 1.10
RESOLUTION_MS: Final = 0.002  # wrk tells whole microseconds: of 18, one more or less is no noise

Commit = dict[str, float]


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure against agents of 0, 2 and 20 ms; what is kept of it."""
    kept: dict[str, Any] = {}
    with Stage(folder, options) as stage:
        upstreams = {delay: stage.agent() if delay == 0 else stage.delayed_agent(delay) for delay in DELAYS_MS}
        floors = {delay: stage.floor(upstream) for delay, upstream in upstreams.items()}
        naive, hubs = stage.naive(upstreams[0]), stage.hubs(upstreams[0])
        for delay, upstream in upstreams.items():
            calls = {"direct": a2a_call(upstream, framed=False)} | {each.name: each.call for each in floors[delay]}
            if delay == 0:
                calls["naive"] = naive.call()
            for hub in hubs:
                agent_id = f"agt_bench_{delay}"
                hub.register(agent_id, echo_card(upstream.url))
                calls[hub.name] = hub.call(agent_id)
            print(f"\nagent of {delay} ms")
            kept[f"{delay} ms"] = _case(calls, options, folder, stage)
        kept["database"] = stage.settle([naive, *hubs])
    return kept


def _case(calls: dict[str, Call], options: Options, folder: Path, stage: Stage) -> dict[str, Any]:
    found: dict[str, list[Latency]] = {name: [] for name in calls}
    commits: list[Commit] = []
    at_once: list[Commit] = []
    paced_by = next(iter(stage.options.hubs))
    for _ in range(options.rounds):
        for name, call in calls.items():
            warm, measured = follow(call, WARM_UP_S, folder), follow(call, options.seconds, folder)
            found[name].append(measured)
            stage.count(name, warm.answers, 1)
            stage.count(name, measured.answers, 1)
        commits.append(lone_commit(folder, options.seconds, every_ms=found[paced_by][-1].every_ms))
        at_once.append(lone_commit(folder, options.seconds))
    rows = [(name, *_columns(rounds, found["direct"])) for name, rounds in found.items()]
    rows += [_commit_row("a commit, as often", commits), _commit_row("a commit, at once", at_once)]
    report.table(("peer", "p50 ms", "p99 ms", "added p50 ms", "added p99 ms"), rows)
    hubs = {name: rounds for name, rounds in found.items() if name in stage.options.hubs}
    beyond = {name: beyond_commit(rounds, found["direct"], commits) for name, rounds in hubs.items()}
    least = {name: beyond_commit(rounds, found["direct"], at_once) for name, rounds in hubs.items()}
    for name, value in beyond.items():
        print(
            f"  {name}: added p50 beyond one durable commit {value.text('.3f')} ms,"
            f" beyond one right after the other {least[name].text('.3f')}   [{GOAL}]"
        )
    return {
        "rounds": {name: [each.plain() for each in rounds] for name, rounds in found.items()},
        "commits": commits,
        "commits_at_once": at_once,
        "beyond_commit_ms": beyond,
        "beyond_commit_at_once_ms": least,
        "noisy": show_noise(found["direct"], commits),
    }


def _commit_row(name: str, commits: list[Commit]) -> tuple[str, str, str, str, str]:
    p50, p99 = spread([each["p50_ms"] for each in commits]), spread([each["p99_ms"] for each in commits])
    return name, p50.text(".3f"), f"{p99.median:.3f}", "", ""


def beyond_commit(through: list[Latency], direct: list[Latency], commits: list[Commit]) -> Spread:
    """Added p50 less one commit's, round by round."""
    each = zip(through, direct, commits, strict=True)
    return spread([hub.p50_ms - straight.p50_ms - commit["p50_ms"] for hub, straight, commit in each])


def added(through: list[Latency], direct: list[Latency], figure: str) -> Spread:
    """What the middle adds to the direct call, round by round."""
    pairs = zip(through, direct, strict=True)
    return spread([getattr(middle, figure) - getattr(straight, figure) for middle, straight in pairs])


def show_noise(direct: list[Latency], commits: list[Commit]) -> bool:
    """Latency counts only where the direct call repeats, and what lies beyond a commit only where that does."""
    p50 = spread([each.p50_ms for each in direct])
    noisy = p50.largest > max(REPEATS_WITHIN * p50.smallest, p50.smallest + RESOLUTION_MS)
    if noisy:
        print(f"  NOISY: the direct call's p50 does not repeat within 10 % or 2 µs: {p50.text('.3f')} ms")
    disk = spread([each["p50_ms"] for each in commits])
    if disk.noisy:
        print(f"  NOISY: the lone commit's rounds differ by more than 1.5x: {disk.text('.3f')} ms")
    return noisy or disk.noisy


def lone_commit(folder: Path, seconds: float, every_ms: float = 0.0) -> Commit:
    """p50 and p99 of commits made one at a time on the server's core, one every so often or right after the other."""
    return run_alone("benchmarks.commit", folder, every_ms, seconds=seconds)


def _columns(rounds: list[Latency], direct: list[Latency]) -> tuple[str, str, str, str]:
    p50, p99 = spread([each.p50_ms for each in rounds]), spread([each.p99_ms for each in rounds])
    if rounds is direct:
        return p50.text(".3f"), f"{p99.median:.3f}", "", ""
    more_p50, more_p99 = added(rounds, direct, "p50_ms"), added(rounds, direct, "p99_ms")
    return p50.text(".3f"), f"{p99.median:.3f}", more_p50.text(".3f"), f"{more_p99.median:.3f}"
