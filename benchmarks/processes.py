"""Servers under measurement: started on a core, watched through /proc, stopped by their own process id.

CPU seconds are those of the whole process tree, threads and ended children included.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from benchmarks.http import Endpoint
from benchmarks.place import ROOT, SERVER_CORE, Void

START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 40.0  # a hub drains for 30 s at most
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
LIBC: Final = ctypes.CDLL(None)
PR_SET_PDEATHSIG: Final = 1  # <sys/prctl.h>


class Server:
    """A process that listens on the loopback address from `start` until `stop`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        core: int,
        log: Path,
        environment: Mapping[str, str] | None = None,
        patience: float = 1.0,
    ) -> None:
        """`patience`: how many times longer than usual it may take to start and to stop."""
        self._patience = patience
        self.command = list(command)
        self.core = core
        self.log = log
        self.environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise Void(f"{self.command[0]} is not running.")
        return self._process.pid

    def start(self, ready: Endpoint, path: str) -> float:
        """Start it and wait until GET `path` answers 200; the seconds that took."""
        began = time.perf_counter()
        self._output = self.log.open("ab")
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            env=self.environment,
            # This process has one thread, so code between fork and exec is safe.
            preexec_fn=lambda: confine(self.core),
        )
        while not _answers(ready, path):
            if self._process.poll() is not None or time.perf_counter() - began > START_TIMEOUT_S * self._patience:
                self.stop()
                raise Void(f"{' '.join(self.command)} did not get ready. It said: {self.said()}")
            time.sleep(0.005)
        return time.perf_counter() - began

    def stop(self) -> None:
        """End it: politely, then by force; harmless when it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S * self._patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
        if self._output is not None:
            self._output.close()

    def kill(self) -> None:
        """End it as a power cut would: nothing is finished, nothing is flushed."""
        if self._process is not None:
            self._process.kill()
        self.stop()

    def said(self) -> str:
        """The end of what it wrote to its log."""
        return self.log.read_text(errors="replace")[-2000:].strip() if self.log.exists() else ""


def run_alone(module: str, *arguments: object, seconds: float) -> dict[str, float]:
    """Run a program of ours for so long, after its warm-up, on the server's core; the figures that it prints.

    Void when it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments), str(seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds + 30,
        check=False,
        preexec_fn=lambda: confine(SERVER_CORE),
    )
    if done.returncode != 0:
        raise Void(f"{module} failed: {done.stderr}")
    return json.loads(done.stdout)


def confine(core: int) -> None:
    """In a child before exec: stay on one core, with all that it forks, and end when the benchmark does."""
    os.sched_setaffinity(0, {core})
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _answers(endpoint: Endpoint, path: str) -> bool:
    try:
        return endpoint.ask("GET", path).status == 200
    except OSError:
        return False


def tree(pid: int) -> list[int]:
    """The process and all its living descendants."""
    found = [pid]
    for each in found:
        for task in _listed(Path(f"/proc/{each}/task")):
            try:
                found.extend(int(child) for child in (task / "children").read_text().split())
            except OSError:
                continue
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds that the process tree has used so far."""
    ticks = 0
    for each in tree(pid):
        try:
            stat = Path(f"/proc/{each}/stat").read_text()
        except OSError:
            continue
        # The name in brackets may hold spaces. Then: utime, stime, and both again for ended children.
        fields = stat.rpartition(")")[2].split()
        ticks += sum(int(value) for value in fields[11:15])
    return ticks / TICKS_PER_S


def exact_cpu_s(pid: int) -> float:
    """The same to the nanosecond, for the living alone: where little is used, a tick is much."""
    return sum(sum(thread_cpu_s(each).values()) for each in tree(pid))


def thread_cpu_s(pid: int) -> dict[str, float]:
    """CPU seconds of each living thread of one process, the first one under `main`."""
    used: dict[str, float] = {}
    for task in _listed(Path(f"/proc/{pid}/task")):
        try:
            nanoseconds = int((task / "schedstat").read_text().split()[0])
        except (OSError, IndexError):
            continue
        used["main" if task.name == str(pid) else task.name] = nanoseconds / 1e9
    return used


def thread_split(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds between two readings: the loop's thread, the busiest other (the writer's), all the rest."""
    spent = {name: value - before.get(name, 0.0) for name, value in after.items()}
    main = spent.pop("main", 0.0)
    others = sorted(spent.values(), reverse=True)
    return {"main": main, "writer": others[0] if others else 0.0, "rest": sum(others[1:])}


def rss_mb(pid: int) -> float:
    """Resident memory of the process tree, in MB of a million bytes."""
    total = 0
    for each in tree(pid):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total / 1e6


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
