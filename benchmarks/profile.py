"""`profile`: the hub's CPU time by step, in µs per call, from samples taken in the running hub under load."""

import collections
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import report, wrk
from benchmarks.calls import echo_card
from benchmarks.hub import Hub
from benchmarks.place import ROOT, Void
from benchmarks.rounds import WARM_UP_S, Options
from benchmarks.stage import AGENT_ID, Stage

CONNECTIONS: Final = 16
SHOWN: Final = 30
WRITE_TIMEOUT_S: Final = 10.0

# The step of a stack is that of its innermost frame that has one; the first line that matches wins.
STEPS: Final = (
    ("HTTP in and out", ("dragoman/server/protocol.py", "dragoman/server/answer.py", "uvicorn/", "starlette/")),
    ("server: route, exchange", ("dragoman/server/",)),
    ("store: handing over", ("dragoman/backends/",)),
    ("translate: read, reply", ("dragoman/dialects/platform/",)),
    ("translate: ask, hear", ("dragoman/dialects/",)),
    ("model: record, fold", ("dragoman/model/", "dragoman/hub/tasks.py")),
    ("admit and carry", ("dragoman/hub/", "dragoman/security/")),
    ("delivery", ("dragoman/delivery/",)),
    ("outgoing client", ("dragoman/net/",)),
    ("metrics, log, trace", ("dragoman/observe/", "logging/", "prometheus_client/", "opentelemetry/")),
    ("clock, ids", ("dragoman/ports/",)),
)
LOOP: Final = "runners.py:run"  # what lies outside of it belongs to the start of the process


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Load a hub with the sampler inside; print where its CPU time went."""
    output = folder / "samples.json"
    with Stage(folder, options) as stage:
        upstream = stage.agent()
        wrapper = (str(ROOT / "benchmarks" / "sampler.py"), str(output), "dragoman")
        hub = Hub(folder, wrapper=wrapper)
        stage.run(hub)
        hub.register(AGENT_ID, echo_card(upstream.url))
        hub.make_key()
        call = hub.call(AGENT_ID)
        wrk.run(call, CONNECTIONS, WARM_UP_S, folder)
        os.kill(hub.server.pid, signal.SIGUSR2)
        load = wrk.run(call, CONNECTIONS, max(options.seconds * options.rounds, 3.0), folder)
        os.kill(hub.server.pid, signal.SIGUSR2)
        taken = _await_samples(output)
    spent = {stack: nanoseconds / 1e3 / load.answered for stack, nanoseconds in taken["stacks"].items()}
    total_us = sum(spent.values())
    print(f"\n{load.answered} calls, c={CONNECTIONS}, {taken['samples']} samples, {total_us:.0f} CPU µs per call")
    steps = by_step(spent)
    report.table(("step", "µs per call"), [(step, f"{value:.1f}") for step, value in steps.items()])
    print("\nfunctions by their own time (compiled code below them included)")
    own = by_function(spent)
    report.table(("function", "µs per call"), [(name, f"{value:.1f}") for name, value in list(own.items())[:SHOWN]])
    return {"calls": load.answered, "samples": taken["samples"], "steps_us": steps, "functions_us": own}


def by_step(spent: Mapping[str, float]) -> dict[str, float]:
    """Time per step, the largest first."""
    return _sorted((_step(stack), value) for stack, value in spent.items())


def by_function(spent: Mapping[str, float]) -> dict[str, float]:
    """Time per innermost function, the largest first."""
    return _sorted((stack.rpartition(";")[2], value) for stack, value in spent.items())


def _step(stack: str) -> str:
    thread, _, frames = stack.partition(";")
    if thread == "other":
        return "writer thread" if "/sqlite/writer.py" in frames else "other threads"
    for frame in reversed(frames.rpartition(LOOP)[2].split(";")):
        for name, paths in STEPS:
            if frame.startswith(paths):
                return name
    return "the loop itself, and what is unknown"


def _sorted(pairs: Iterator[tuple[str, float]]) -> dict[str, float]:
    total: collections.Counter[str] = collections.Counter()
    for name, value in pairs:
        total[name] += value  # type: ignore[assignment]  # pyright: counts are whole numbers to it; here they are µs
    return dict(total.most_common())


def _await_samples(output: Path) -> dict[str, Any]:
    deadline = time.perf_counter() + WRITE_TIMEOUT_S
    while not output.exists():
        if time.perf_counter() > deadline:
            raise Void("The hub wrote no samples.")
        time.sleep(0.05)
    return json.loads(output.read_text())
