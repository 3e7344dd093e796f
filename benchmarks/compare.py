"""A second checkout to run beside this one: the only way to claim an improvement."""

import contextlib
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.place import ROOT, Void

SETUP_TIMEOUT_S: Final = 600.0


@contextlib.contextmanager
def checkout(commit: str, folder: Path) -> Generator[tuple[str, Path]]:
    """A worktree of that commit with its own environment, and the name its hub goes by; both go when the block ends."""
    short = _git("rev-parse", "--short=10", "--verify", f"{commit}^{{commit}}").strip()
    place = folder / f"checkout-{short}"
    _git("worktree", "add", "--quiet", "--detach", str(place), short)
    try:
        print(f"setting up {short}")
        _run([str(place / "scripts" / "setup")], cwd=place)
        yield f"hub@{short}", place
    finally:
        _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> str:
    return _run(["git", *arguments], cwd=ROOT)


def _run(command: Sequence[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SETUP_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Void(f"{' '.join(command)} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout
