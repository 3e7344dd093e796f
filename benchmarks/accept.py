"""`accept`: how fast calls that nobody waits for are taken in, durably, and how fast they are carried out.

Taken twice. `parked` hubs leave their queue alone while they accept: their one place for queued calls is held by a call
that is never answered. Then they are killed, started anew, and what they had accepted is carried out. Other hubs do
both at once, as in everyday life.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from benchmarks import report, wrk
from benchmarks.calls import ACCEPT_PATH, echo_card
from benchmarks.http import Endpoint
from benchmarks.hub import Hub
from benchmarks.ledger import Answers, Ledger, check_carried
from benchmarks.place import Void, scratch
from benchmarks.processes import cpu_s, run_alone
from benchmarks.rounds import WARM_UP_S, Contender, Measured, Options, Rounds, one_round, plain, ratio, spread
from benchmarks.stage import AGENT_ID, Stage

CASES: Final = (16, 64)
BARE: Final = "bare inserts"
GOALS: Final = {16: "goal 0.5", 64: "goal 0.5, 10,000/s"}
PARKED: Final = "-parked"
ROOM: Final = {"DRAGOMAN_CALLS_QUEUED_PER_AGENT": "1000000", "DRAGOMAN_QUOTAS_OPEN_CALLS": "1000000"}
ONE_PLACE: Final = {"DRAGOMAN_CALLS_QUEUED_AT_ONCE": "1", **ROOM}
SILENT_ID: Final = "agt_bench_silent"
SILENT_MS: Final = 3_600_000
LOOK_S: Final = 0.1
LONGEST_DRAIN_S: Final = 600.0


class Queueing(Protocol):
    """A server with a queue of calls."""

    name: str

    def left(self) -> int:
        """How many calls it has not carried out yet."""
        ...


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that were carried out, from the first look at the queue to the last."""

    jobs: int
    seconds: float
    cpu_s: float
    per_s: float
    per_cpu_s: float


class Queue(NamedTuple):
    """A contender, and where its accepted calls gather."""

    contender: Contender
    server: Queueing
    is_parked: bool = False


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure all cases; what is kept of them."""
    with Stage(folder, options) as stage:
        upstream, silent = stage.agent(), stage.delayed_agent(SILENT_MS)
        naive = stage.naive(upstream)
        parked = stage.hubs(upstream, suffix=PARKED, settings=ONE_PLACE)
        unanswered = {hub.name: park(hub, silent) for hub in parked}
        for hub in parked:
            stage.count(hub.name, Answers(0), 1)
        hubs = stage.hubs(upstream, settings=ROOM)
        queues = [Queue(Contender("naive", naive.accepted_call(), naive.server.pid), naive)]
        for hub in [*parked, *hubs]:
            contender = Contender(hub.name, hub.accepted_call(AGENT_ID), hub.server.pid)
            queues.append(Queue(contender, hub, is_parked=hub in parked))
        for each in queues:
            stage.checked(each.contender)
        cases = {f"c={connections}": _case(queues, connections, stage) for connections in CASES}
        print("\nproof")
        proofs = {hub.name: stage.prove(hub.name, hub.accepted_call(AGENT_ID), hub.server.pid) for hub in hubs}
        for each in (naive, *hubs):
            drained(each, each.server.pid)
        print("\ndrain: killed, started anew, all that was accepted is carried out")
        drains = {hub.name: _drain_after_kill(hub, unanswered[hub.name]) for hub in parked}
        kept = {"cases": cases, "syncs": proofs, "drains": drains, "database": stage.settle([naive, *parked, *hubs])}
        for hub in [*parked, *hubs]:
            carried = check_carried(hub.data / "hub.db")
            print(f"  {hub.name}: {carried} calls carried out, each with its own answer, none left, none lost")
    return kept


def park(hub: Hub, silent: Endpoint) -> str:
    """Give the hub's one place for queued calls to a call that is never answered; where that call is."""
    hub.register(SILENT_ID, echo_card(silent.url))
    asked = {"target_agent_id": SILENT_ID, "skill": "echo", "input": {}, "options": {"timeout_ms": SILENT_MS}}
    reply = hub.endpoint.ask("POST", ACCEPT_PATH, token=hub.caller_token, body=asked)
    if reply.status != 202:
        raise Void(f"{hub.name} did not accept the first call: {reply.status} {reply.body.decode()[:500]}")
    path = f"/v1/a2a/call/{reply.json()['call_id']}"
    deadline = time.perf_counter() + 10
    while hub.endpoint.ask("GET", f"{path}/status", token=hub.caller_token).json()["status"] != "running":
        if time.perf_counter() > deadline:
            raise Void(f"{hub.name} did not begin its first call.")
        time.sleep(LOOK_S)
    return path


def _case(queues: Sequence[Queue], connections: int, stage: Stage) -> dict[str, Any]:
    options, folder = stage.options, stage.folder
    rounds: Rounds = {BARE: [], **{each.contender.name: [] for each in queues}}
    carried: dict[str, list[Carried]] = {each.contender.name: [] for each in queues if not each.is_parked}
    for _ in range(options.rounds):
        rounds[BARE].append(_bare_inserts(connections, options.seconds))
        for contender, server, is_parked in queues:
            ledger = stage.tally.setdefault(contender.name, Ledger())
            warm = wrk.run(contender.call, connections, WARM_UP_S, folder)
            ledger.add(Answers(warm.answered, warm.names), connections)
            if not is_parked:
                drained(server, contender.pid)
            began, before = time.perf_counter(), cpu_s(contender.pid)
            measured = one_round(contender, connections, options.seconds, folder, ledger)
            rounds[contender.name].append(measured)
            if not is_parked:
                drained(server, contender.pid)
                jobs, used = measured.answered, cpu_s(contender.pid) - before
                carried[contender.name].append(_carried(jobs, time.perf_counter() - began, used))
    return _show(connections, rounds, carried, [each.contender.name for each in queues])


def _bare_inserts(producers: int, seconds: float) -> Measured:
    """One round of the insert loop, on the server's core and the same disk."""
    with scratch("inserts") as own:
        found = run_alone("benchmarks.inserts", own, producers, seconds=seconds)
    return Measured(
        answered=int(found["inserts"]),
        seconds=found["seconds"],
        cpu_s=found["cpu_s"],
        per_s=found["inserts"] / found["seconds"],
        per_cpu_s=found["inserts"] / found["cpu_s"],
        p50_ms=found["p50_ms"],
        p99_ms=found["p99_ms"],
        threads_s={},
    )


def drained(server: Queueing, pid: int, *, rest: int = 0) -> Carried:
    """Wait until no more than the rest is left in the queue."""
    began, before, first = time.perf_counter(), cpu_s(pid), server.left()
    left = first
    while left > rest:
        if time.perf_counter() - began > LONGEST_DRAIN_S:
            raise Void(f"{server.name} has {left} of {first} calls left after {LONGEST_DRAIN_S:.0f} s")
        time.sleep(LOOK_S)
        left = server.left()
    return _carried(first - left, time.perf_counter() - began, cpu_s(pid) - before)


def _carried(jobs: int, seconds: float, used_s: float) -> Carried:
    per_cpu_s = jobs / max(used_s, 0.01)
    return Carried(jobs=jobs, seconds=seconds, cpu_s=used_s, per_s=jobs / seconds, per_cpu_s=per_cpu_s)


def _drain_after_kill(hub: Hub, unanswered: str) -> dict[str, Any]:
    hub.server.kill()
    for name in ONE_PLACE:
        hub.server.environment.pop(name)
    hub.start()
    # The call that held the place is sent anew, and not answered this time either.
    found = drained(hub, hub.server.pid, rest=1)
    rates = f"{found.per_s:,.0f} jobs/s, {found.per_cpu_s:,.0f} per CPU-s"
    print(f"  {hub.name}: {found.jobs} jobs in {found.seconds:.1f} s: {rates}")
    hub.endpoint.ask("POST", f"{unanswered}/cancel", token=hub.caller_token)
    drained(hub, hub.server.pid)
    return msgspec.to_builtins(found)


def _show(
    connections: int, rounds: Rounds, carried: dict[str, list[Carried]], servers: Sequence[str]
) -> dict[str, Any]:
    print(f"\nc={connections}")
    report.show_rounds(rounds)
    kept: dict[str, Any] = {"rounds": plain(rounds), "ratios": {}, "carried": {}, "thread_us": {}}
    for name in servers:
        found = ratio(rounds, name, BARE, lambda measured: measured.per_s)
        report.show_ratio(f"accepts/s, {name} / {BARE}", found, GOALS[connections] if name != "naive" else "")
        kept["ratios"][f"{name}/{BARE}"] = found
        if name != "naive":
            shares = report.thread_shares(rounds[name])
            kept["thread_us"][name] = shares
            print(f"  {name} threads, µs per call: " + ", ".join(f"{key} {us:.0f}" for key, us in shares.items()))
    for name, each in carried.items():
        kept["carried"][name] = msgspec.to_builtins(each)
        rate, cost = spread([one.per_s for one in each]), spread([one.per_cpu_s for one in each])
        print(f"  {name}: accepted and carried out {rate.text(',.0f')} jobs/s, {cost.text(',.0f')} per CPU-s")
    kept["noisy"] = any(spread([each.per_cpu_s for each in rounds[name]]).noisy for name in (BARE, "naive"))
    if kept["noisy"]:
        print("  NOISY: a control's own rounds differ by more than 1.5x")
    return kept
