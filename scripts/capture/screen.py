"""One terminal of 100 columns and 40 lines: tmux with a socket and an environment of its own.

Each window is a bash whose prompt is `$ `. Whenever it is about to prompt, it notes the exit code of what ran before in
a file of its window; so a command has ended when that file has grown and the prompt is on the screen.
"""

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

COLUMNS: Final = 100
LINES: Final = 40
LIMIT_S: Final = 30.0
POLL_S: Final = 0.02
PROMPT: Final = "$"


class Stuck(Exception):
    """What was waited for did not come; the screen as it was then."""


class Screen:
    """The windows of one tmux server."""

    def __init__(self, socket: str, folder: Path, env: Mapping[str, str]) -> None:
        """Start it; `folder` is where the windows' shells begin, `env` all they know."""
        self._socket = socket
        self._ended = folder.parent / "ended"
        self._folder = folder
        note = f"""printf '%s\\n' $? >>"{self._ended}.${{TMUX_PANE#%}}" """
        self._env = {**env, "PROMPT_COMMAND": note}
        self.main = self._pane("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES))

    def window(self) -> str:
        """Another window."""
        return self._pane("new-window", "-d")

    def run(self, pane: str, line: str, *, asks: str = "", answer: str = "") -> int:
        """Type a line, answer what it asks, and wait for its end: its exit code."""
        before = len(self._codes(pane))
        self.type(pane, line)
        if asks:
            self.wait(pane, lambda: asks in self.shown(pane))
            self.type(pane, answer)
        return self.ended(pane, before)

    def ended(self, pane: str, before: int) -> int:
        """The exit code of the command that runs, once it and `before` others have ended."""
        self.wait(pane, lambda: len(self._codes(pane)) > before and self.shown(pane).endswith(PROMPT))
        return self._codes(pane)[-1]

    def interrupt(self, pane: str) -> int:
        """Ctrl-C for what runs there: its exit code."""
        before = len(self._codes(pane))
        self._tmux("send-keys", "-t", pane, "C-c")
        return self.ended(pane, before)

    def type(self, pane: str, line: str) -> None:
        """A line, and Enter."""
        self._tmux("send-keys", "-t", pane, "-l", line)
        self._tmux("send-keys", "-t", pane, "Enter")

    def clear(self, pane: str) -> None:
        """Nothing but the prompt, and no lines above it."""
        self._tmux("send-keys", "-t", pane, "C-l")
        self.wait(pane, lambda: self._visible(pane) == PROMPT)
        self._tmux("clear-history", "-t", pane)

    def shown(self, pane: str) -> str:
        """All that stands there, with what has scrolled away; lines that were wrapped are whole."""
        text = self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane)
        return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()

    def wait(self, pane: str, done: Callable[[], bool]) -> None:
        """Return once it is done. Raises Stuck."""
        last = time.monotonic() + LIMIT_S
        while not done():
            if time.monotonic() > last:
                raise Stuck(self.shown(pane))
            time.sleep(POLL_S)

    def close(self) -> None:
        """End all of it."""
        try:
            for pane in self._tmux("list-panes", "-a", "-F", "#{pane_id}").split():
                self._tmux("send-keys", "-t", pane, "C-c")
            running = ("list-panes", "-a", "-F", "#{pane_current_command}")
            self.wait(self.main, lambda: set(self._tmux(*running).split()) == {"bash"})
        finally:
            self._tmux("kill-server")

    def _visible(self, pane: str) -> str:
        return self._tmux("capture-pane", "-p", "-t", pane).strip()

    def _codes(self, pane: str) -> list[int]:
        file = self._ended.with_name(f"{self._ended.name}.{pane.removeprefix('%')}")
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def _pane(self, *words: str) -> str:
        shell = "exec env PS1='$ ' bash --norc --noprofile -i"  # sh keeps a PS1 of its own to itself
        pane = self._tmux(*words, "-c", str(self._folder), "-P", "-F", "#{pane_id}", shell).strip()
        self.wait(pane, lambda: self._visible(pane) == PROMPT)
        return pane

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-L", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, check=True).stdout
