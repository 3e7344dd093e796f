"""An agent that connects out, in a process of its own: it can be killed, and started again.

Everything that a handler begins and ends is a line in a file that outlives the process: `begin`, process, call, time.
Runs alone: `python -m tests.support.connected_agent FILE CONCURRENCY`; the hub is that of the environment.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from dragoman import Agent, Context
from tests.support.hub import ROOT, HubProcess

AGENT: Final = "agt_marker"
PATIENCE_S: Final = 20.0
STEP_S: Final = 0.01


class Mark(NamedTuple):
    """One line of the file: what a handler did, in which process, for which call, and when."""

    what: str
    pid: int
    call_id: str
    at: float


def make_agent(file: Path, concurrency: int = 10) -> Agent:
    """The agent."""
    agent = Agent("Marker", concurrency=concurrency)
    marks = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def mark(what: str, ctx: Context) -> None:
        os.write(marks, f"{what} {os.getpid()} {ctx.call_id} {time.monotonic()}\n".encode())

    @agent.skill
    async def mark_it(number: int, takes_s: float, ctx: Context) -> dict[str, Any]:
        """Leaves a mark, and answers with the call's id"""
        mark("begin", ctx)
        await asyncio.sleep(takes_s)
        mark("end", ctx)
        return {"number": number, "call_id": ctx.call_id}

    @agent.skill
    async def count(to: int, hold_at: int, release: str, ctx: Context) -> None:
        """Counts, and holds in the midst until a file is there"""
        mark("begin", ctx)
        for number in range(to):
            if number == hold_at:
                await ctx.progress(0.5, "holds")
                await asyncio.to_thread(_until_there, Path(release))
            await ctx.stream(f"{number} ")
        mark("end", ctx)

    @agent.skill
    async def question(ctx: Context) -> str:
        """Asks twice"""
        mark("begin", ctx)
        first = await ctx.ask("What?")
        second = await ctx.ask("What else?")
        return f"{first} and {second}"

    @agent.skill
    async def wait(ctx: Context) -> str:
        """Waits for ever"""
        mark("begin", ctx)
        try:
            await asyncio.Event().wait()
        finally:
            mark("end", ctx)
        return "never"

    del mark_it, count, question, wait
    return agent


def _until_there(file: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not file.exists() and time.monotonic() < until:
        time.sleep(STEP_S)  # the only way to wait for what another process writes


class AgentProcess:
    """The agent from `start` to `kill` or `stop`; its marks outlive it."""

    def __init__(self, hub: HubProcess, marks: Path, *, concurrency: int = 10, token: str = "") -> None:
        self._hub = hub
        self._file = marks
        self._concurrency = concurrency
        self._token = token or hub.token or ""
        self._process: subprocess.Popen[bytes] | None = None
        self.log = marks.with_suffix(".log")

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "the agent was not started"
        return self._process.pid

    def begin(self) -> Self:
        """Start it, and do not wait."""
        command = [sys.executable, "-m", "tests.support.connected_agent", str(self._file), str(self._concurrency)]
        environ = {**os.environ, "DRAGOMAN_URL": self._hub.url, "DRAGOMAN_TOKEN": self._token}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=environ, start_new_session=True
            )
        return self

    def start(self) -> Self:
        """Start it, and wait until it is connected."""
        before = self.log.read_text().count(f"{AGENT} is connected to ") if self.log.exists() else 0
        self.begin()
        until = time.monotonic() + PATIENCE_S
        while self.log.read_text().count(f"{AGENT} is connected to ") == before:
            assert self._process is not None and self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, f"it does not connect: {self.log.read_text()}"
            time.sleep(STEP_S)  # the only way to wait for what another process writes
        return self

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def ended(self, within_s: float = 40.0) -> int:
        """Wait for its end; its exit code."""
        assert self._process is not None
        code = self._process.wait(within_s)
        self._process = None
        return code

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        if self._process is None:
            return 0
        self.signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(10)

    def marks(self) -> list[Mark]:
        """What its handlers did so far."""
        if not self._file.exists():
            return []
        lines = [line.split() for line in self._file.read_text().splitlines()]
        return [Mark(what, int(pid), call_id, float(at)) for what, pid, call_id, at in lines]


if __name__ == "__main__":
    make_agent(Path(sys.argv[1]), int(sys.argv[2])).start()
