"""A command that goes on until it is told to stop: what it says is read as it comes."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

from dragoman.model.json import JsonObject
from tests.cli.terminal import COMMAND

START_S = 30.0
END_S = 20.0


class Running:
    """A process whose stderr is read as it comes."""

    def __init__(self, *words: str, env: dict[str, str], cwd: Path | None = None) -> None:
        aside = subprocess.DEVNULL
        self.process = subprocess.Popen(
            [COMMAND, *words], env=env, cwd=cwd, stdin=aside, stdout=aside, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def said(self, text: str, *, times: int = 1) -> str:
        """The last line with that text, once there are so many."""
        with self._news:
            found = self._news.wait_for(lambda: sum(text in line for line in self.lines) >= times, START_S)
        assert found, self.lines
        return [line for line in self.lines if text in line][-1]

    def fact(self, message: str) -> JsonObject:
        """The log line of that name, once it is there."""
        return json.loads(self.said(f'"message": "{message}"'))

    def facts(self, message: str, count: int) -> list[str]:
        """The values of the log lines of that name, once there are so many."""
        self.said(f'"message": "{message}"', times=count)
        marked = [json.loads(line) for line in self.lines if f'"message": "{message}"' in line]
        return [str(line["value"]) for line in marked]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(END_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        self._reader.join(END_S)
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextlib.contextmanager
def running(*words: str, env: dict[str, str], cwd: Path | None = None) -> Generator[Running]:
    process = Running(*words, env=env, cwd=cwd)
    try:
        yield process
    finally:
        process.close()


def ports_of(lines: list[str]) -> list[int]:
    """The ports that some lines name."""
    return [int(port) for line in lines for port in re.findall(r"http://localhost:(\d+)", line)]


def is_closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
