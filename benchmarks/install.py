"""`install`: what `pip install dragoman` brings, alone and with the hub, and how long that takes.

Built as a wheel and installed by pip into fresh environments, from the package index that pip is set up for; pip's own
cache is left out, so the time holds the downloads.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import report
from benchmarks.place import ROOT, Void
from benchmarks.rounds import Options

TIMEOUT_S: Final = 600.0
MB: Final = 1e6
VARIANTS: Final = {"dragoman": "", "dragoman[hub]": "[hub]"}
# What each install may have at most: packages, MB. Our own code is 3.4 MB of each.
BOUNDS: Final = {"dragoman": (10, 13.0), "dragoman[hub]": (30, 65.0)}


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """One install: how many packages, how much on disk, how long it took."""

    packages: int
    megabytes: float
    seconds: float
    help_ms: float


def run(options: Options, folder: Path) -> dict[str, Any]:
    """Install each variant once; what is kept of it."""
    wheel = build_wheel(ROOT, folder)
    found = {name: install(wheel, extra, folder / (extra or "base").strip("[]")) for name, extra in VARIANTS.items()}
    rows = [
        (name, str(each.packages), f"{each.megabytes:.1f}", f"{each.seconds:.1f}", f"{each.help_ms:.0f}", _bound(name))
        for name, each in found.items()
    ]
    report.table(("", "packages", "MB", "seconds", "--help (ms)", "goal below"), rows)
    return {name: msgspec.to_builtins(each) for name, each in found.items()}


def build_wheel(root: Path, folder: Path) -> Path:
    """The wheel of a checkout."""
    _done([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(root)])
    return next(folder.glob("dragoman-*.whl"))


def install(wheel: Path, extra: str, place: Path) -> Installed:
    """Install a wheel, with an extra or without, into a fresh environment there."""
    _done([sys.executable, "-m", "venv", "--without-pip", str(place)])
    python = place / "bin" / "python"
    site = Path(_done([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    began = time.perf_counter()
    _done(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-cache-dir"),
            *("--disable-pip-version-check", f"{wheel}{extra}"),
        ]
    )
    seconds = time.perf_counter() - began
    packages = len(list(site.glob("*.dist-info")))
    size = sum(each.stat().st_size for each in site.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    return Installed(packages=packages, megabytes=size / MB, seconds=seconds, help_ms=_help_ms(place))


def _help_ms(place: Path) -> float:
    """The quickest of a few: the first one compiles what it imports."""
    took: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        _done([str(place / "bin" / "dragoman"), "--help"])
        took.append((time.perf_counter() - began) * 1e3)
    return min(took)


def _bound(name: str) -> str:
    packages, megabytes = BOUNDS[name]
    return f"{packages} packages, {megabytes:g} MB"


def _done(command: list[str]) -> str:
    # Away from the checkout: what is imported must be what is installed.
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise Void(f"{shutil.which(command[0]) or command[0]} failed: {done.stderr[-1000:]}")
    return done.stdout
