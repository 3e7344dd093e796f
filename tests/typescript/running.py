"""Programs in Node: an agent that goes on until it is ended, and one that runs to its end."""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple, Self

from tests.support.hub import HubProcess
from tests.typescript.building import built, node

AGENT: Final = "agt_ts_marker"
START_S: Final = 20.0
STOP_S: Final = 10.0
RUN_S: Final = 60.0


class Mark(NamedTuple):
    """What a handler did, in which process, for which call, under which attempt."""

    what: str
    pid: int
    call_id: str
    attempt: int


class NodeAgent:
    """The agent of `test/programs/marker.ts` in a process of its own: it can be killed, and started again."""

    def __init__(self, hub: HubProcess, marks: Path, concurrency: int = 10) -> None:
        self._hub = hub
        self._file = marks
        self._go = marks.with_name(f"{marks.name}.go")
        self._command = [node(), str(built() / "dist/test/programs/marker.js"), str(marks), str(concurrency)]
        self._process: subprocess.Popen[str] | None = None
        self._complaints: IO[str] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    def start(self) -> Self:
        """Start it, and wait until the hub has taken it."""
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it outlives this function
        self._process = subprocess.Popen(
            self._command, env=environment(self._hub), stdout=subprocess.PIPE, stderr=self._complaints, text=True
        )
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            heard = selector.select(START_S)
        said = self._process.stdout.readline() if heard else ""
        if said != "ready\n":
            complaint = self.said()
            self.kill()
            raise AssertionError(f"the agent did not get ready: {said}{complaint}")
        return self

    def said(self) -> str:
        """What it said on standard error."""
        assert self._complaints is not None
        self._complaints.seek(0)
        return self._complaints.read()

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal; SIGTERM lets it finish what it does."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL."""
        self.signal(signal.SIGKILL)
        self.ended()

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.signal()
        return self.ended()

    def hold(self) -> None:
        """Let what is told in two halves wait after the first."""
        self._go.unlink(missing_ok=True)

    def go_on(self) -> None:
        """Let it go on."""
        self._go.touch()

    def marks(self, what: str = "begin") -> list[Mark]:
        """What its handlers did, in all its processes."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        read = [Mark(name, int(pid), call_id, int(attempt)) for name, pid, call_id, attempt in map(str.split, lines)]
        return [mark for mark in read if mark.what == what]

    def ended(self) -> int:
        """Its exit code, once it has ended; 0 where it does not run."""
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            return process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)
            raise
        finally:
            assert process.stdout is not None and self._complaints is not None
            process.stdout.close()
            self._complaints.close()


def environment(hub: HubProcess) -> dict[str, str]:
    """An environment that names this hub, and no other."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return {**clean, "DRAGOMAN_URL": hub.url, **({"DRAGOMAN_TOKEN": hub.token} if hub.token else {})}


def ran(*words: str | Path, env: Mapping[str, str], cwd: Path) -> str:
    """What a program in Node said, once it ended well."""
    done = subprocess.run(
        [node(), *map(str, words)], env=env, cwd=cwd, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def started(program: Path, env: Mapping[str, str]) -> Generator[None]:
    """A program that goes on, for the block; SIGTERM ends it, and it ends well."""
    process = subprocess.Popen([node(), program], env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield
    finally:
        process.terminate()
        _, said = process.communicate(timeout=STOP_S)
    assert (process.returncode, said) == (0, "")
