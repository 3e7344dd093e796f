"""What the process takes of its machine, as every Prometheus client names it."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dragoman.observe import names
from dragoman.observe.exposition import Sample

_STAT: Final = Path("/proc/self/stat")
_BOOT: Final = Path("/proc/stat")
_FDS: Final = Path("/proc/self/fd")


def process_samples() -> Iterator[Sample]:
    """CPU time and open files; memory and start where the system tells."""
    used = os.times()
    yield Sample(names.PROCESS_CPU, (), used.user + used.system)
    yield Sample(names.PROCESS_MAX_FDS, (), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    if not _STAT.exists():
        return
    # The name of the program stands in brackets and may hold anything; what follows is numbers.
    stat = _STAT.read_text(errors="replace").rpartition(")")[2].split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    booted = next(line for line in _BOOT.read_text().splitlines() if line.startswith("btime "))
    yield Sample(names.PROCESS_RSS, (), int(stat[21]) * page)
    yield Sample(names.PROCESS_START, (), int(booted.split()[1]) + int(stat[19]) / ticks)
    yield Sample(names.PROCESS_FDS, (), sum(1 for _ in _FDS.iterdir()))
