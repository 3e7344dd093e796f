"""`start`: how long until the hub is ready, what it weighs when idle, and how long its command takes to say hello."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import report
from benchmarks.hub import Hub
from benchmarks.place import SERVER_CORE, Void
from benchmarks.processes import confine, rss_mb
from benchmarks.rounds import Options, spread

IDLE_S: Final = 1.0
PROBES: Final = (
    ("python alone (ms)", ("-c", "pass")),
    ("import dragoman (ms)", ("-c", "import dragoman")),
    ("dragoman --help (ms)", ("-m", "dragoman", "--help")),
)
STARTS: Final = ("ready, empty data (ms)", "ready, again (ms)")
GOALS: Final = {**dict.fromkeys(STARTS, "500"), "idle RSS (MB)": "60", "dragoman --help (ms)": "200"}


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Measure every checkout in turn, in rounds; what is kept of it."""
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in options.hubs}
    for turn in range(options.rounds):
        for name, root in options.hubs.items():
            for label, value in _one_round(folder / f"round-{turn}", name, root).items():
                figures[name].setdefault(label, []).append(value)
    for name, labels in figures.items():
        print(f"\n{name}")
        rows = [(label, spread(values).text(".1f"), GOALS.get(label, "")) for label, values in labels.items()]
        report.table(("", "median (smallest to largest)", "goal below"), rows)
    return {name: {label: spread(values) for label, values in labels.items()} for name, labels in figures.items()}


def _one_round(folder: Path, name: str, root: Path) -> dict[str, float]:
    folder.mkdir(exist_ok=True)
    python = str(root / ".venv" / "bin" / "python")
    found = {label: _timed((python, *arguments), folder) for label, arguments in PROBES}
    hub = Hub(folder, name=name, root=root)
    for label in STARTS:
        try:
            found[label] = hub.start() * 1e3
            time.sleep(IDLE_S)
            found["idle RSS (MB)"] = rss_mb(hub.server.pid)
        finally:
            hub.server.stop()
    return found


def _timed(command: Sequence[str], folder: Path) -> float:
    began = time.perf_counter()
    # Away from the checkout: what is imported must be what is installed.
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False, preexec_fn=_on_core)
    took_ms = (time.perf_counter() - began) * 1e3
    if done.returncode != 0:
        raise Void(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace')[-1000:]}")
    return took_ms


def _on_core() -> None:
    confine(SERVER_CORE)
