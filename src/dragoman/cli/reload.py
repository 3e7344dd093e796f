"""`--reload`: run a command again whenever a file of some folders changes.

The command is a process of its own. It is asked to end (SIGTERM), which lets running calls finish, and is started anew
when it has; one that ended by itself, say with a syntax error, is started anew at the next change. Files are compared
by time and size, so nothing needs to be installed.

    watch ──change──▶ SIGTERM ──ended──▶ start ──▶ watch …
"""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from dragoman.cli.output import say
from dragoman.ports.clock import Clock, SystemClock

LOOK_S: Final = 0.3
ENDINGS: Final = (".py", ".md", ".toml", ".yaml", ".yml", ".json", ".env", ".sql")
IGNORED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
MOST_FILES: Final = 10_000
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of Linux

Snapshot = Mapping[Path, tuple[int, int]]


def run_reloading(command: Sequence[str], folders: Sequence[Path], environ: Mapping[str, str] | None = None) -> int:
    """Run the command, again after each change, until a signal; then its exit code."""
    return asyncio.run(Reloading(command, folders, SystemClock(), environ).run())


def this_program() -> list[str]:
    """How to start this program once more."""
    script = sys.argv[0]
    return [sys.executable, script] if Path(script).name == "dragoman" else [sys.executable, "-m", "dragoman"]


def snapshot(folders: Sequence[Path]) -> Snapshot:
    """When each file was last changed, and how large it is: at most 10,000 of them."""
    found: dict[Path, tuple[int, int]] = {}
    for path in _files(folders):
        try:
            about = path.stat()
        except OSError:
            continue  # it has gone meanwhile
        found[path] = (about.st_mtime_ns, about.st_size)
        if len(found) >= MOST_FILES:
            break
    return found


class Reloading:
    """A process and the files it is made of."""

    def __init__(
        self, command: Sequence[str], folders: Sequence[Path], clock: Clock, environ: Mapping[str, str] | None = None
    ) -> None:
        self._command = command
        self._folders = folders
        self._clock = clock
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Start, watch, start again; returns after a signal, when the process has ended."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            while True:
                seen = snapshot(self._folders)
                process = await self._start()
                changed = await self._watch(process, seen)
                if changed is None:
                    return await process.wait()
                say(f"{changed} changed: starting again")
                if process.returncode is None:
                    process.terminate()
                await process.wait()
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    async def _start(self) -> asyncio.subprocess.Process:
        # A session of its own: Ctrl-C comes to us alone, and is passed on once.
        process = await asyncio.create_subprocess_exec(
            *self._command, env=self._environ, start_new_session=True, preexec_fn=_end_with_parent
        )
        self._process = process
        return process

    async def _watch(self, process: asyncio.subprocess.Process, seen: Snapshot) -> str | None:
        """The name of a file that changed; None when we are to end."""
        told = False
        while not self._stopping.is_set():
            if process.returncode is not None and not told:
                told = True
                say(f"it ended with {process.returncode}; it starts again when a file changes")
            now = snapshot(self._folders)
            if now != seen:
                return _difference(seen, now)
            await self._pause()
        return None

    async def _pause(self) -> None:
        """Wait a little, or until a signal."""
        async with asyncio.TaskGroup() as group:
            over = {group.create_task(self._stopping.wait()), group.create_task(self._clock.sleep(LOOK_S))}
            _, waiting = await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()

    def _signalled(self, number: int) -> None:
        self._stopping.set()
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for root, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if name not in IGNORED and not _is_apart(Path(root) / name))
            yield from (Path(root) / name for name in sorted(names) if name.endswith(ENDINGS))


def _is_apart(folder: Path) -> bool:
    """Hidden folders and environments hold nobody's sources."""
    return folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()


def _difference(before: Snapshot, after: Snapshot) -> str:
    paths = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    return paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"


def _end_with_parent() -> None:
    """In the new process: have it asked to end when this one dies, in whatever way."""
    if sys.platform == "linux":
        # Only here, and only where there is such a thing.
        import ctypes

        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
