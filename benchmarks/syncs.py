"""Proof of synchronous=FULL: with one caller at a time, every answer must have waited for a sync of its own."""

import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from benchmarks import wrk
from benchmarks.calls import Call
from benchmarks.ledger import Answers
from benchmarks.place import Void

SECONDS: Final = 1.0
ATTACH_TIMEOUT_S: Final = 5.0


def count_syncs(name: str, call: Call, pid: int, folder: Path) -> tuple[dict[str, Any], Answers]:
    """Load one connection while strace counts; Void when there were fewer syncs than answers."""
    strace = shutil.which("strace")
    if strace is None:
        load = wrk.run(call, 1, SECONDS, folder)
        reason = "strace is not installed: FULL is not proven"
        return {"answered": load.answered, "syncs": None, "reason": reason}, Answers(load.answered, load.names)
    report = folder / f"{name}.strace"
    command = [strace, "-f", "-c", "-e", "trace=fdatasync,fsync", "-o", str(report), "-p", str(pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        _await_attached(tracer, pid)
        load = wrk.run(call, 1, SECONDS, folder)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(10)
        if tracer.stderr is not None:
            tracer.stderr.close()
    syncs = _counted(report)
    if syncs < load.answered:
        raise Void(f"{name} synced {syncs} times for {load.answered} calls, one at a time: it is not durable")
    return {"answered": load.answered, "syncs": syncs}, Answers(load.answered, load.names)


def _await_attached(tracer: subprocess.Popen[bytes], pid: int) -> None:
    deadline = time.perf_counter() + ATTACH_TIMEOUT_S
    status = Path(f"/proc/{pid}/status")
    while "TracerPid:\t0\n" in status.read_text():
        if tracer.poll() is not None or time.perf_counter() > deadline:
            said = tracer.stderr.read().decode(errors="replace") if tracer.stderr and tracer.poll() is not None else ""
            raise Void(f"strace could not attach to {pid}: {said.strip()}")
        time.sleep(0.01)


def _counted(report: Path) -> int:
    """The calls in strace's table: share, seconds, µs per call, calls, [errors], name."""
    rows = (line.split() for line in report.read_text().splitlines())
    return sum(int(row[3]) for row in rows if row and row[-1] in ("fdatasync", "fsync"))
