"""`instructions`: how many instructions a call takes, by thread. What others do on the machine does not touch that.

The hub runs under callgrind, fifty times slower; counts repeat to one per cent. They are no times: a hash that the
processor has instructions for counts thirty times what it takes, waiting for memory counts nothing.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import report, wrk
from benchmarks.calls import Call, echo_card
from benchmarks.hub import Hub
from benchmarks.place import Void
from benchmarks.rounds import Options
from benchmarks.stage import AGENT_ID, Stage

CONNECTIONS: Final = 4
WARM_UP_S, COUNTED_S, QUICK_S = 6.0, 12.0, 4.0
PATIENCE: Final = 20.0  # times as long to start and to stop
CALLGRIND: Final = ("valgrind", "--tool=callgrind", "--separate-threads=yes")
KINDS: Final[Mapping[str, Callable[[Hub], Call]]] = {
    "call": lambda hub: hub.call(AGENT_ID),
    "call, same dialect": lambda hub: hub.official_call(AGENT_ID),
    "call, X-Request-ID": lambda hub: hub.call(AGENT_ID, unique_header="X-Request-ID"),
    "call, Idempotency-Key": lambda hub: hub.call(AGENT_ID, unique_header="Idempotency-Key"),
}

_TOTAL: Final = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Count every kind of call in every checkout."""
    if shutil.which("valgrind") is None:
        raise Void("valgrind is not installed; with Debian: apt-get install valgrind")
    seconds = QUICK_S if options.quick else COUNTED_S
    kept: dict[str, Any] = {}
    for name, root in options.hubs.items():
        own = folder / name.replace("@", "-")
        own.mkdir()
        with Stage(own, options) as stage:
            agent = stage.agent()
            under = (*CALLGRIND, f"--callgrind-out-file={own}/counts", f"--log-file={own}/valgrind.log")
            hub = Hub(own, name=name, root=root, under=under, settings={"PYTHONHASHSEED": "0"}, patience=PATIENCE)
            stage.run(hub)
            hub.make_key()
            hub.register(AGENT_ID, echo_card(agent.url))
            kept[name] = {kind: _counted(make(hub), hub.server.pid, seconds, own) for kind, make in KINDS.items()}
    _show(kept)
    return kept


def _counted(call: Call, pid: int, seconds: float, folder: Path) -> dict[str, float]:
    """Instructions of one call: on the loop's thread, on the writer's, on the rest."""
    wrk.run(call, CONNECTIONS, WARM_UP_S, folder)
    _control("--zero", pid)
    answered = wrk.run(call, CONNECTIONS, seconds, folder).answered
    _control("--dump", pid)
    counts: dict[str, int] = {}
    for dump in folder.glob("counts.*-*"):
        total = _TOTAL.search(dump.read_text(errors="replace"))
        counts[dump.name.rpartition("-")[2]] = int(total[1]) if total else 0
        dump.unlink()
    if answered == 0 or "01" not in counts:
        raise Void(f"callgrind counted nothing: {answered} answers, threads {sorted(counts)}")
    loop = counts.pop("01")
    writer = max(counts.values(), default=0)
    rest = sum(counts.values()) - writer
    return {"loop": loop / answered, "writer": writer / answered, "rest": rest / answered}


def _control(what: str, pid: int) -> None:
    done = subprocess.run(["callgrind_control", what, str(pid)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Void(f"callgrind_control {what} failed: {done.stdout}{done.stderr}")


def _show(kept: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    rows = [
        (kind, name, *(f"{count / 1e3:,.0f}" for count in (sum(kinds[kind].values()), *kinds[kind].values())))
        for kind in KINDS
        for name, kinds in kept.items()
    ]
    print(f"\nthousands of instructions a call, {CONNECTIONS} callers")
    report.table(("kind", "hub", "in all", "loop", "writer", "rest"), rows)
