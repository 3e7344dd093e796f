"""The demo agent's process, as `dragoman dev` sees it: started beside the hub, ended with it.

Its standard input is a pipe that we hold: it closes when this process ends, even by kill -9, and the agent ends then.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from dragoman.cli.demo.editor import AGENT_ID, PORT
from dragoman.model.json import JsonObject, is_object

END_S: Final = 5.0


class DemoAgent:
    """A running `python -m dragoman.cli.demo.editor` that registers itself at a hub."""

    def __init__(self, hub: str, token_file: Path | None) -> None:
        """Take what it needs to register; nothing is started yet."""
        self._command = [sys.executable, "-m", "dragoman.cli.demo.editor", "--port", str(PORT), "--hub", hub]
        if token_file is not None:
            self._command += ["--token-file", str(token_file)]
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._said: JsonObject = {}

    def __enter__(self) -> Self:
        """Start it; it waits for the hub by itself."""
        # A session of its own: Ctrl-C is for the hub, which then ends the agent when no call needs it any more.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        return self

    def __exit__(self, *raised: object) -> None:
        """End it: by closing its input, then politely, then by force."""
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

    def when_ready(self, then: Callable[[], None]) -> None:
        """Call `then` once it is registered, or has failed to; returns at once, so that the hub can serve it."""
        self._listener = threading.Thread(target=self._listen, args=(then,), name="demo-agent", daemon=True)
        self._listener.start()

    @property
    def port(self) -> int | None:
        """Where it listens, once it is registered."""
        port = self._said.get("port")
        return port if isinstance(port, int) and "error" not in self._said else None

    def lines(self) -> list[str]:
        """What to tell about it: where it listens, or why it cannot be called."""
        if self.port is None:
            return [f"{AGENT_ID} is not there: {self._said.get('error', 'it ended')}"]
        line = f"{AGENT_ID}  platform  http://localhost:{self.port}"
        return [line if self.port == PORT else f"{line}  (port {PORT} is in use)"]

    def _listen(self, then: Callable[[], None]) -> None:
        output = self._process.stdout if self._process is not None else None
        line = output.readline() if output is not None else ""
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        self._said = said if is_object(said) else {}
        then()
