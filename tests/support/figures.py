"""What a process takes of its machine: memory and files; and of a hub that counts them, its asyncio tasks."""

import os
import re
import resource
import signal
import time
from pathlib import Path
from typing import Final

from tests.support.hub import HubProcess
from tests.support.planted_streams import TASKS

PAGE_BYTES: Final = resource.getpagesize()
PATIENCE_S: Final = 10.0
STEP_S: Final = 0.02


def rss_bytes(pid: int) -> int:
    """The memory that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


def open_files(pid: int) -> int:
    """How many files and sockets a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names are enough, and there are thousands


def asyncio_tasks(hub: HubProcess) -> int:
    """How many asyncio tasks a hub has that was started as `counts_tasks`."""
    before = len(_told(hub))
    os.kill(hub.pid, signal.SIGUSR1)
    until = time.monotonic() + PATIENCE_S
    while len(told := _told(hub)) == before:
        assert time.monotonic() < until, "the hub does not count its tasks"
        time.sleep(STEP_S)  # the only way to wait for what another process writes
    return int(told[-1])


def raise_file_limit() -> None:
    """Have as many files as this process may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _told(hub: HubProcess) -> list[str]:
    return re.findall(rf"^{TASKS} (\d+)$", hub.log.read_text(errors="replace"), re.MULTILINE)
