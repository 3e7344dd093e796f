"""`profile…`: the hub's CPU time by step, in µs per call or event, from samples taken in the running hub under load."""

import collections
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import report, wrk
from benchmarks.accept import ONE_PLACE, SILENT_MS, drained, park
from benchmarks.calls import Call, echo_card
from benchmarks.hub import Hub
from benchmarks.place import LOAD_CORE, ROOT, Void
from benchmarks.reading import on_loop
from benchmarks.rounds import WARM_UP_S, Options
from benchmarks.stage import AGENT_ID, Stage
from benchmarks.stream import ONE_AGENT, hub_way, one_way
from benchmarks.telling import telling_card

Load = Callable[[Stage, Hub, Callable[[], None]], int]

CONNECTIONS, MANY_CONNECTIONS = 16, 64
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
THREADS: Final = (("/sqlite/writer.py", "writer thread"), ("/sqlite/readers.py", "reader threads"))
LOOP: Final = "runners.py:run"  # what lies outside of it belongs to the start of the process


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Where the CPU time of a synchronous call goes."""
    return _profiled(options, folder, _calls)


def run_accept(options: Options, folder: Path) -> dict[str, Any]:
    """Where that of accepting a call goes, with the queue left alone."""
    return _profiled(options, folder, _accepts, settings=ONE_PLACE)


def run_queue(options: Options, folder: Path) -> dict[str, Any]:
    """Where that of accepting a call and carrying it out goes."""
    return _profiled(options, folder, _queued)


def run_stream(options: Options, folder: Path) -> dict[str, Any]:
    """Where that of passing on one event of an agent goes."""
    return _profiled(options, folder, _streams, settings=ONE_AGENT)


def _profiled(options: Options, folder: Path, load: Load, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Load a hub with the sampler inside; print where its CPU time went."""
    output = folder / "samples.json"
    with Stage(folder, options) as stage:
        wrapper = (str(ROOT / "benchmarks" / "sampler.py"), str(output), "dragoman")
        hub = Hub(folder, wrapper=wrapper, settings=settings)
        stage.run(hub)
        hub.make_key()
        sampling = lambda: os.kill(hub.server.pid, signal.SIGUSR2)  # noqa: E731 - begins it, and ends it
        count = load(stage, hub, sampling)
        taken = _await_samples(output)
    spent = {stack: nanoseconds / 1e3 / count for stack, nanoseconds in taken["stacks"].items()}
    print(f"\n{count} in all, {taken['samples']} samples, {sum(spent.values()):.0f} CPU µs each")
    steps = by_step(spent)
    report.table(("step", "µs each"), [(step, f"{value:.1f}") for step, value in steps.items()])
    print("\nfunctions by their own time (compiled code below them included)")
    own = by_function(spent)
    report.table(("function", "µs each"), [(name, f"{value:.1f}") for name, value in list(own.items())[:SHOWN]])
    return {"count": count, "samples": taken["samples"], "steps_us": steps, "functions_us": own}


def _calls(stage: Stage, hub: Hub, sampling: Callable[[], None]) -> int:
    hub.register(AGENT_ID, echo_card(stage.agent().url))
    return _loaded(hub.call(AGENT_ID), CONNECTIONS, stage, sampling)


def _accepts(stage: Stage, hub: Hub, sampling: Callable[[], None]) -> int:
    hub.register(AGENT_ID, echo_card(stage.agent().url))
    park(hub, stage.delayed_agent(SILENT_MS))
    return _loaded(hub.accepted_call(AGENT_ID), MANY_CONNECTIONS, stage, sampling)


def _queued(stage: Stage, hub: Hub, sampling: Callable[[], None]) -> int:
    hub.register(AGENT_ID, echo_card(stage.agent().url))
    call = hub.accepted_call(AGENT_ID)
    wrk.run(call, CONNECTIONS, WARM_UP_S, stage.folder)
    drained(hub, hub.server.pid)
    sampling()
    load = wrk.run(call, CONNECTIONS, _seconds(stage), stage.folder)
    drained(hub, hub.server.pid)
    sampling()
    return load.answered


def _streams(stage: Stage, hub: Hub, sampling: Callable[[], None]) -> int:
    agent = stage.program("benchmarks.stream_agent", core=LOAD_CORE)
    hub.register(AGENT_ID, telling_card(agent.endpoint.url))
    streamed, _ = on_loop(one_way(hub_way(hub), _seconds(stage), sampling))
    return streamed.events


def _loaded(call: Call, connections: int, stage: Stage, sampling: Callable[[], None]) -> int:
    wrk.run(call, connections, WARM_UP_S, stage.folder)
    sampling()
    load = wrk.run(call, connections, _seconds(stage), stage.folder)
    sampling()
    return load.answered


def _seconds(stage: Stage) -> float:
    return max(stage.options.seconds * stage.options.rounds, 3.0)


def by_step(spent: Mapping[str, float]) -> dict[str, float]:
    """Time per step, the largest first."""
    return _sorted((_step(stack), value) for stack, value in spent.items())


def by_function(spent: Mapping[str, float]) -> dict[str, float]:
    """Time per innermost function, the largest first."""
    return _sorted((stack.rpartition(";")[2], value) for stack, value in spent.items())


def _step(stack: str) -> str:
    thread, _, frames = stack.partition(";")
    if thread == "other":
        return next((name for path, name in THREADS if path in frames), "other threads")
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
