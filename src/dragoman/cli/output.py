"""Where words go: the answer to stdout, everything else to stderr; for people on a terminal, for programs otherwise.

Text of strangers is shown without control characters on a terminal: an agent's answer must not move the cursor, set a
title or answer a prompt. Into a pipe it goes as it is. Tables are in `table.py`.
"""

import json
import os
import re
import sys
from typing import Final, TextIO

from dragoman.cli.fault import Fault
from dragoman.model.json import Json

# C0 save tab and line feed, DEL, C1, and the marks that turn the direction of text around.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
RED, YELLOW, GREEN, DIM, BOLD = "31", "33", "32", "2", "1"


class Output:
    """What the common options say about showing things."""

    def __init__(self, *, json: bool = False, quiet: bool = False, verbose: int = 0, color: bool = True) -> None:
        """Take the options; `color` false forbids it whatever the environment says."""
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
        self._color = color

    @property
    def human(self) -> bool:
        """Whether a person reads stdout."""
        return sys.stdout.isatty()

    def colored(self, stream: TextIO) -> bool:
        """Whether a stream may be coloured: --no-color, NO_COLOR, FORCE_COLOR and TERM=dumb, in this order."""
        if not self._color or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") != "0":
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def answer(self, text: str) -> None:
        """A text of the answer, on stdout, exactly once terminated."""
        print(visible(text) if self.human else text)

    def document(self, value: Json) -> None:
        """A JSON document of the answer, on stdout."""
        self.answer(json.dumps(value, indent=2, ensure_ascii=False))

    def line(self, value: Json) -> None:
        """One of several JSON objects, on a line of its own, at once."""
        print(json.dumps(value, ensure_ascii=False), flush=True)

    def note(self, text: str) -> None:
        """A remark, on stderr; dropped by -q."""
        if not self.quiet:
            say(_seen(text))

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """The text in a style, where the stream may be coloured."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.colored(stream or sys.stderr) else text

    def fault(self, fault: Fault) -> None:
        """A failure, on stderr: two lines for people, one JSON document with --json."""
        if self.json:
            say(json.dumps(fault.document(), ensure_ascii=False))
            return
        say(f"{self.paint(fault.label, RED)}{_seen(fault.message)}")
        for line in fault.lines:
            say(f"  {_seen(line)}")
        say(f"{self.paint('next:', BOLD)} {_seen(fault.next)}")

    def warning(self, text: str) -> None:
        """Something that is probably not meant, on stderr."""
        if not self.quiet:
            say(f"{self.paint('warning:', YELLOW)} {_seen(text)}")


def say(text: str) -> None:
    """One or more lines on stderr, as they are."""
    print(text, file=sys.stderr, flush=True)


def _seen(text: str) -> str:
    return visible(text) if sys.stderr.isatty() else text


def visible(text: str) -> str:
    """The text without what a terminal would obey."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """The text without tabs and line ends, for a field of a row."""
    return " ".join(text.split())
