"""A call as it goes on: the agent's words on stdout as they come, a bar of its progress on stderr.

On a terminal both may be the same lines. So the bar is drawn only while the cursor stands at the beginning of a line,
and stays where it was when words follow it.
"""

import shutil
import sys
from typing import Final, TextIO

from dragoman.cli.output import Output, say, visible
from dragoman.ports.clock import Clock

FRAME_S: Final = 0.1
QUIET_S: Final = 1.0
LINE_S: Final = 10.0
LABEL: Final = 24
WIDEST: Final = 40
CLEAR: Final = "\r\x1b[K"


class Live:
    """What is shown of one call while it runs."""

    def __init__(self, output: Output, clock: Clock, *, words: bool) -> None:
        """Show nothing yet; `words`: the agent's pieces are shown, and not only its progress."""
        self._output = output
        self._clock = clock
        self._words = words
        self._began = clock.monotonic()
        self._share: float | None = None
        self._message = ""
        self._drawn = False
        self._at_start = True
        self._told_at = self._began
        self.said = ""  # all words shown so far

    async def run(self) -> None:
        """Keep the bar moving until this is cancelled."""
        while True:
            await self._clock.sleep(FRAME_S)
            if self._message or self._share is not None or self._clock.monotonic() - self._began > QUIET_S:
                self._draw()

    def progress(self, share: float | None, message: str | None) -> None:
        """The agent told how far it is."""
        self._share = share if share is not None else self._share
        self._message = message or self._message
        self._draw()

    def piece(self, text: str) -> None:
        """The agent said something."""
        if not self._words or not text:
            return
        if self._drawn and sys.stderr.isatty() and sys.stdout.isatty():
            _write(sys.stderr, "\n" if self._share is not None else CLEAR)
            self._drawn = False
        _write(sys.stdout, visible(text) if self._output.human else text)
        self.said += text
        self._at_start = text.endswith("\n") or not sys.stdout.isatty()

    def close(self) -> None:
        """It is over: the bar goes, and the agent's last line is ended."""
        if self._drawn and sys.stderr.isatty():
            _write(sys.stderr, CLEAR)
        self._drawn = False
        if self.said and not self.said.endswith("\n"):
            _write(sys.stdout, "\n")

    def _draw(self) -> None:
        if self._output.quiet or self._output.json:
            return
        now = self._clock.monotonic()
        if not sys.stderr.isatty():
            if now - self._told_at >= LINE_S:
                self._told_at = now
                say(" ".join(word for word in (self._message or "waiting for the agent", self._percent()) if word))
            return
        if self._at_start:
            _write(sys.stderr, CLEAR + self._bar(now - self._began))
            self._drawn = True

    def _bar(self, seconds: float) -> str:
        label = visible(" ".join((self._message or "waiting for the agent").split()))
        minutes, second = divmod(int(seconds), 60)
        clock = f"{minutes // 60}:{minutes % 60:02}:{second:02}"
        wide = shutil.get_terminal_size().columns
        shown = f"{label[: LABEL - 1]}…" if len(label) > LABEL else label
        if self._share is None:
            return f" {shown}  {clock}"[: wide - 1]
        room = max(5, min(WIDEST, wide - LABEL - 20))
        filled = round(self._share * room * 2)
        bar = "━" * (filled // 2) + ("╸" if filled % 2 else "")
        return f" {shown:<{LABEL}} {bar:<{room}} {self._percent():>5}  {clock}"[: wide - 1]

    def _percent(self) -> str:
        return "" if self._share is None else f"{self._share * 100:.0f} %"


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
