"""What the figures were measured on: printed before them and kept beside them."""

import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from benchmarks.place import CORES, ROOT

SYNCS: Final = 200
PACKAGES: Final = ("dragoman", "uvicorn", "uvloop", "httptools", "msgspec")


def describe(folder: Path) -> dict[str, Any]:
    """CPU, load, versions, commit, and how long the disk of that folder takes to sync."""
    return {
        "cpu": _cpu_model(),
        "cores": len(CORES),
        "load": [round(value, 2) for value in os.getloadavg()],
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "nginx": _first_line("nginx", "-v"),
        "wrk": _first_line("wrk", "-v"),
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": commit(),
        "disk": disk(folder),
    }


def disk(folder: Path) -> dict[str, Any]:
    """The file system, and p50 and p99 of 200 small writes each followed by fdatasync."""
    times: list[float] = []
    probe = folder / "sync-probe"
    with probe.open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    probe.unlink()
    cuts = statistics.quantiles(times, n=100)
    return {"kind": _file_system(folder), "sync_p50_ms": round(cuts[49], 3), "sync_p99_ms": round(cuts[98], 3)}


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, with `+` when files differ from it."""
    done = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=10"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "none"


def show(facts: dict[str, Any]) -> None:
    """Print the header of a run."""
    packages = " ".join(f"{name} {version}" for name, version in facts["packages"].items())
    synced = facts["disk"]
    print(f"cpu      {facts['cpu']}, {facts['cores']} cores, load {' '.join(map(str, facts['load']))}")
    print(f"versions python {facts['python']}, sqlite {facts['sqlite']}, kernel {facts['kernel']}")
    print(f"         {facts['nginx']}, {facts['wrk']}, {packages}")
    print(f"commit   {facts['commit']}")
    print(f"disk     {synced['kind']}, fdatasync p50 {synced['sync_p50_ms']} ms, p99 {synced['sync_p99_ms']} ms")
    if facts["cores"] < 2:
        print("warning  one core: server and load share it, ratios of throughput mean little")
    if synced["kind"] == "tmpfs":
        print("warning  the data lies in memory: no commit here is durable, and none costs what it should")


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        mount, name = line.split()[1:3]
        if folder.resolve().is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, name
    return kind


def _first_line(program: str, flag: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        return f"no {program}"
    done = subprocess.run([found, flag], capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip().splitlines()[0]
    return said.partition(" Copyright")[0].replace("nginx version: ", "")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
