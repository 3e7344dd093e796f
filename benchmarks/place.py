"""Where the benchmarks run: the checkout, scratch folders on its disk, and the two cores."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results"
SCRATCH: Final = ROOT / "benchmarks" / ".work"


class Void(Exception):
    """The run proves nothing: a wrong answer, a missing row, a peer that did not start. No figure is reported."""


@contextlib.contextmanager
def scratch(name: str) -> Generator[Path]:
    """A folder for as long as the block runs, on the checkout's disk: where /tmp is memory, a sync costs nothing."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=SCRATCH))
    # A server that drops its rights must still reach its own files in here.
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Read once, before this process confines itself to one of them.
CORES: Final[list[int]] = sorted(os.sched_getaffinity(0))
SERVER_CORE: Final = CORES[0]
LOAD_CORE: Final = CORES[min(1, len(CORES) - 1)]


def pin(pid: int, core: int) -> None:
    """Confine a process and its threads to one core; threads and children started later inherit it."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end between the listing and the call.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(task.name), {core})
