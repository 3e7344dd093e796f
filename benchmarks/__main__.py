"""The command: `python -m benchmarks [NAME…] [--rounds N] [--seconds S] [--quick] [--compare COMMIT] [--json]`.

Exit codes: 0 measured, 1 void (one wrong answer is enough), 2 wrong usage, 130 interrupted.
"""

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import (
    accept,
    agent,
    call,
    fanout,
    idle_streams,
    install,
    instructions,
    latency,
    machine,
    profile,
    registry,
    report,
    start,
    stream,
    wrk,
)
from benchmarks.compare import checkout
from benchmarks.place import LOAD_CORE, ROOT, Void, scratch
from benchmarks.rounds import Options

SCRIPTS: Final = {
    "call": call.run,
    "agent": agent.run,
    "latency": latency.run,
    "accept": accept.run,
    "stream": stream.run,
    "idle_streams": idle_streams.run,
    "fanout": fanout.run,
    "start": start.run,
}
EXTRA: Final = {
    "registry": registry.run,
    "install": install.run,
    "instructions": instructions.run,
    "profile": profile.run,
    "profile_accept": profile.run_accept,
    "profile_queue": profile.run_queue,
    "profile_stream": profile.run_stream,
}
MOST_ROUNDS, LONGEST_S = 50, 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were named, or all of them."""
    asked = _parser().parse_args(arguments)
    known = {**SCRIPTS, **EXTRA}
    unknown = [name for name in asked.names if name not in known]
    if unknown or not (1 <= asked.rounds <= MOST_ROUNDS and 1 <= asked.seconds <= LONGEST_S):
        limits = f"--rounds 1 to {MOST_ROUNDS}, --seconds 1 to {LONGEST_S:.0f}, names: {', '.join(known)}"
        sys.stderr.write(f"error: {unknown[0] + ' is no benchmark' if unknown else 'out of range'}\nnext: {limits}\n")
        return 2
    # Servers are stopped by the blocks that started them, so those must get to run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = contextlib.redirect_stdout(sys.stderr) if asked.json else contextlib.nullcontext()
    try:
        with out:
            results = _run(asked)
    except Void as error:
        sys.stderr.write(f"\nVOID: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    if asked.json:
        print(json.dumps(results, indent=1))
    return 0


def _run(asked: argparse.Namespace) -> dict[str, Any]:
    if not wrk.available():
        raise Void("wrk is not installed; with Debian: apt-get install wrk")
    results: dict[str, Any] = {}
    with scratch("bench") as folder, contextlib.ExitStack() as stack:
        hubs = {"hub": ROOT}
        if asked.compare:
            name, place = stack.enter_context(checkout(asked.compare, folder))
            hubs[name] = place
        os.sched_setaffinity(0, {LOAD_CORE})
        rounds, seconds = (3, 1.0) if asked.quick else (asked.rounds, asked.seconds)
        options = Options(rounds=rounds, seconds=seconds, hubs=hubs, quick=asked.quick)
        facts = machine.describe(folder)
        machine.show(facts)
        print(f"method   {rounds} interleaved rounds of {seconds:g} s; 1.4x or less between runs is a tie")
        for name in asked.names or SCRIPTS:
            results[name] = _one(name, options, folder, facts)
    return results


def _one(name: str, options: Options, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    print(f"\n== {name} ==")
    own = folder / name
    own.mkdir()
    result = {
        "benchmark": name,
        "machine": {**facts, "disk": machine.disk(own), "load": os.getloadavg()},
        "rounds": options.rounds,
        "seconds": options.seconds,
        "commits": {hub: machine.commit(root) for hub, root in options.hubs.items()},
        "result": {**SCRIPTS, **EXTRA}[name](options, own),
    }
    report.keep(name, result)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Side-by-side benchmarks; README.md has the method."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(SCRIPTS)} (all), or {', '.join(EXTRA)}")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a round (3)")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 s: to see that it runs, not to claim")
    parser.add_argument("--compare", metavar="COMMIT", help="run the hub of that commit too, interleaved")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; the tables go to stderr")
    return parser


if __name__ == "__main__":
    sys.exit(main())
