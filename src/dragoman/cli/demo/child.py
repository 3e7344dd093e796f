"""The demo agents' process, as `dragoman dev` sees it: started beside the hub, ended with it.

Its standard input is a pipe that we hold: it closes when this process ends, even by kill -9, and the agents end then.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from dragoman.model.json import Json, JsonObject, is_array, is_object

END_S: Final = 8.0


class DemoAgents:
    """A running `python -m dragoman.cli.demo`."""

    def __init__(self, data: Path) -> None:
        """Take where they may keep their calls; nothing is started yet."""
        self._command = [sys.executable, "-m", "dragoman.cli.demo", "--data", str(data)]
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._said: list[JsonObject] = []

    def __enter__(self) -> Self:
        """Start them; they wait until they are told where the hub is."""
        # A session of its own: Ctrl-C is for the hub, which then ends the agents when no call needs them any more.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        return self

    def __exit__(self, *raised: object) -> None:
        """End them: by closing their input, then politely, then by force."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for end in (process.terminate, process.kill):
            try:
                process.wait(END_S)
                break
            except subprocess.TimeoutExpired:
                end()
        process.wait(END_S)
        if self._listener is not None:
            self._listener.join(END_S)
        if process.stdout is not None:
            process.stdout.close()

    def join(self, hub: str, token: str | None, then: Callable[[], None]) -> None:
        """Have them join a hub that listens, and call `then` when they have, or could not; returns at once."""
        self._listener = threading.Thread(target=self._listen, args=(hub, token, then), name="demo-agents", daemon=True)
        self._listener.start()

    @property
    def ready(self) -> bool:
        """Whether all of them can be called."""
        return bool(self._said) and not any("error" in agent for agent in self._said)

    def lines(self) -> list[str]:
        """What to tell about each: where it is, or why it cannot be called."""
        if not self._said:
            return ["they are not there: their process ended"]
        width = max(len(str(agent["id"])) for agent in self._said)
        dialects = max(len(str(agent["dialect"])) for agent in self._said)
        return [f"{agent['id']:{width}}  {agent['dialect']:{dialects}}  {_where(agent)}" for agent in self._said]

    def _listen(self, hub: str, token: str | None, then: Callable[[], None]) -> None:
        process = self._process
        if process is not None and process.stdin is not None and process.stdout is not None:
            try:
                process.stdin.write(json.dumps({"hub": hub, "token": token}) + "\n")
                process.stdin.flush()
                self._said = _agents(process.stdout.readline())
            except (OSError, ValueError):
                pass  # it has ended, or we have
        then()


def _agents(line: str) -> list[JsonObject]:
    try:
        said: Json = json.loads(line)
    except ValueError:
        return []
    listed = said.get("agents") if is_object(said) else None
    return [each for each in listed if is_object(each)] if is_array(listed) else []


def _where(agent: JsonObject) -> str:
    if "error" in agent:
        return f"is not there: {agent['error']}"
    if "port" not in agent:
        return "connected"
    instead = "" if agent["port"] == agent["wanted"] else f"  (port {agent['wanted']} is in use)"
    return f"http://localhost:{agent['port']}{instead}"
