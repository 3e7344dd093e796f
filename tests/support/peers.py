"""Peers: strangers' software in environments of its own, and the processes that run it.

Each `tests/peers/NAME.txt` is a requirements file with hashes. `peer_python(NAME)` makes `.peers/NAME` from it on first
use (DRAGOMAN_TEST_PEERS names another folder) and again when the file changes. Two workers never build the same one:
the second waits at a lock. Nothing of a peer is importable from our own environment.

`python -m tests.support.peers` makes them beforehand, which is what scripts/test does; but not those whose
`tests/peers/NAME.in` has a line that begins with `# full`: only tests with that mark need them.
"""

import contextlib
import fcntl
import hashlib
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO, Final, Literal, Self

from tests.support.ports import free_port

ROOT: Final = Path(__file__).parents[2]
RECIPES: Final = ROOT / "tests" / "peers"
INSTALL_TIMEOUT_S: Final = 300.0
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 5.0
FULL: Final = "# full"

Mode = Literal["echo", "slow", "fail", "ask"]


class PeerUnavailable(Exception):
    """A peer could not be installed or did not start; the message says what to do."""


def peer_names() -> list[str]:
    """Every peer that has a recipe."""
    return sorted(path.stem for path in RECIPES.glob("*.txt"))


def everyday_names() -> list[str]:
    """Those that the normal set needs."""
    texts = {name: (RECIPES / f"{name}.in").read_text() for name in peer_names()}
    return [name for name, text in texts.items() if not any(line.startswith(FULL) for line in text.splitlines())]


def peer_python(name: str) -> Path:
    """The interpreter of that peer's environment, made first if need be.

    Raises PeerUnavailable when there is no such recipe or its packages cannot be installed.
    """
    recipe = RECIPES / f"{name}.txt"
    if not recipe.exists():
        raise PeerUnavailable(f"There is no peer {name!r}. There is: {', '.join(peer_names())}.")
    home = Path(os.environ.get("DRAGOMAN_TEST_PEERS") or ROOT / ".peers").resolve()
    home.mkdir(parents=True, exist_ok=True)
    place = home / name
    wanted = hashlib.sha256(recipe.read_bytes() + sys.version.encode()).hexdigest()
    stamp = place / ".stamp"
    # The lock goes with its holder, also on kill -9; the wait is bounded by the holder's INSTALL_TIMEOUT_S.
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            install(recipe, place)
            stamp.write_text(wanted)
    return place / "bin" / "python"


def install(recipe: Path, place: Path) -> None:
    """A fresh environment with exactly the packages of the recipe, hashes checked."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    python = place / "bin" / "python"
    shutil.rmtree(place, ignore_errors=True)
    steps = (
        [uv, "venv", "--quiet", "--python", sys.executable, str(place)],
        [uv, "pip", "install", "--quiet", "--require-hashes", "--python", str(python), "-r", str(recipe)],
    )
    for step in steps:
        try:
            # Away from the repository: uv would hold the peer to our own constraints.
            done = subprocess.run(
                step, cwd=tempfile.gettempdir(), capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerUnavailable(_advice(recipe, str(error))) from error
        if done.returncode != 0:
            raise PeerUnavailable(_advice(recipe, done.stderr.strip()))


def _advice(recipe: Path, reason: str) -> str:
    return (
        f"The packages of {recipe.relative_to(ROOT)} could not be installed: {reason}\n"
        "next: run scripts/setup, see that a package index can be reached, and run the test again; "
        "or point DRAGOMAN_TEST_PEERS at a folder where the environments exist."
    )


class PeerProcess:
    """A peer's program that listens on a free port of 127.0.0.1 from `start` until `stop`."""

    listens = True  # False for one that only connects to others
    environment: Mapping[str, str] | None = None  # instead of our own

    def __init__(self, name: str, program: str, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._command = [str(peer_python(name)), str(RECIPES / program), "--port", str(self.port), *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None
        self._unread = b""

    @property
    def pid(self) -> int:
        """The process id, for tests that stop or kill it themselves."""
        if self._process is None:
            raise PeerUnavailable("The peer was not started.")
        return self._process.pid

    def start(self) -> Self:
        """Start it and wait until it accepts connections; PeerUnavailable when it does not within 30 s."""
        # A file, not a pipe: nobody reads it meanwhile, and a full pipe would stop the peer.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - stop() closes it
        # Standard input stays open as long as we live: the program ends when it closes.
        self._process = subprocess.Popen(
            [*self._command, "--with-parent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=self.environment,
        )
        try:
            self.await_line("ready")
            if self.listens:
                socket.create_connection(("127.0.0.1", self.port), START_TIMEOUT_S).close()
        except PeerUnavailable:
            self.stop()
            raise
        return self

    def await_line(self, line: str, within_s: float = START_TIMEOUT_S) -> None:
        """Wait until it says this line; what it said before is dropped. Raises PeerUnavailable when it does not."""
        if self._process is None:
            raise PeerUnavailable("The peer was not started.")
        output = self._process.stdout
        assert output is not None, "started with a pipe"
        deadline = time.monotonic() + within_s
        wanted = f"{line}\n".encode()
        while wanted not in self._unread:
            heard = _read_within(output, deadline - time.monotonic())
            if not heard:
                raise PeerUnavailable(f"{' '.join(self._command)} did not say {line!r}. It said: {self._said()}")
            self._unread += heard
        self._unread = self._unread.partition(wanted)[2]

    def stop(self) -> None:
        """End it: politely, then by force; harmless when it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
        for file in (process.stdin, process.stdout, self._complaints):
            if file is not None:
                file.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def _said(self) -> str:
        if self._complaints is None:
            return ""
        self._complaints.seek(0)
        return self._complaints.read().decode(errors="replace").strip()


def _read_within(output: IO[bytes], seconds: float) -> bytes:
    """What it said next; nothing when it ended or kept silent for so long."""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        return os.read(output.fileno(), 65536) if selector.select(max(0.0, seconds)) else b""


@contextlib.contextmanager
def echo_agent(mode: Mode = "echo", *, delay_s: float = 2.0) -> Generator[PeerProcess]:
    """The published SDK's agent with the one skill `echo`, running; `url` is its endpoint and the base of its card."""
    with PeerProcess("a2a-1.3.0", "echo_agent.py", "--mode", mode, "--delay", str(delay_s)) as peer:
        yield peer


def main() -> int:
    """Make the environment of every peer of the normal set."""
    for name in everyday_names():
        try:
            peer_python(name)
        except PeerUnavailable as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
