"""The TypeScript SDK, built once: a copy of its folder beside the peers, with what it needs to build.

`built()` makes `.peers/typescript` on first use (DRAGOMAN_TEST_PEERS names another folder) and again when a file of
`sdk-typescript` changes; its packages are installed again only when the lock changes. `installed(FOLDER)` does the same
for a folder that has only packages. Two workers never build at once: the second waits at a lock.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "sdk-typescript"
MADE: Final = frozenset({"node_modules", "dist"})
BUILD_TIMEOUT_S: Final = 300.0


class TypescriptUnavailable(Exception):
    """The SDK could not be built; the message says what to do."""


def built() -> Path:
    """The folder with the built SDK, its tests and its examples. Raises TypescriptUnavailable."""
    with _place("typescript") as place:
        files = sorted(path for path in SOURCE.rglob("*") if path.is_file() and not _is_made(path))
        wanted = _hash(files)
        if _stamp(place) != wanted:
            _copy(files, place)
            _install(place)
            for step in ("build", "build:tests"):
                _run([_program("npm"), "run", "--silent", step], place)
            (place / ".stamp").write_text(wanted)
    return place


def installed(recipe: Path) -> Path:
    """The folder with the packages that `recipe` locks. Raises TypescriptUnavailable."""
    with _place(f"typescript-{recipe.name}") as place:
        files = sorted(path for path in recipe.iterdir() if path.is_file())
        wanted = _hash(files)
        if _stamp(place) != wanted:
            for file in files:
                shutil.copy(file, place)
            _install(place)
            (place / ".stamp").write_text(wanted)
    return place


def node() -> str:
    """The program that runs JavaScript. Raises TypescriptUnavailable."""
    return _program("node")


@contextlib.contextmanager
def _place(name: str) -> Generator[Path]:
    """A folder that nobody else builds in at the same time."""
    home = Path(os.environ.get("DRAGOMAN_TEST_PEERS") or ROOT / ".peers").resolve()
    place = home / name
    place.mkdir(parents=True, exist_ok=True)
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def _copy(files: Iterable[Path], place: Path) -> None:
    """What is in the folder now, and nothing that was there before; installed packages stay."""
    for old in place.iterdir():
        if old.name == "node_modules" or old.name == ".installed":
            continue
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    for file in files:
        target = place / file.relative_to(SOURCE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)


def _install(place: Path) -> None:
    wanted = _hash([place / "package-lock.json"])
    stamp = place / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        _run([_program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], place)
        stamp.write_text(wanted)


def _run(command: list[str], place: Path) -> None:
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TypescriptUnavailable(f"{' '.join(command)} did not end well: {error}") from error
    if done.returncode != 0:
        raise TypescriptUnavailable(
            f"{' '.join(command)} failed in {place}:\n{done.stdout}{done.stderr}\n"
            "next: mend what it says; or, if packages are missing, see that a package registry can be reached, "
            "or point DRAGOMAN_TEST_PEERS at a folder where they exist."
        )


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise TypescriptUnavailable(
            f"There is no {name} on the PATH, so the TypeScript SDK cannot be tested.\n"
            "next: install Node.js 20 or newer, which brings both node and npm."
        )
    return found


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.parent.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _stamp(place: Path) -> str:
    stamp = place / ".stamp"
    return stamp.read_text() if stamp.exists() else ""


def _is_made(path: Path) -> bool:
    return not MADE.isdisjoint(path.relative_to(SOURCE).parts)
