"""A list of findings: one line each, with a mark, what it is about, and what was found.

On a terminal marks are signs, columns are aligned within a group, and what does not fit goes on below its column. In a
pipe marks are words and columns are tab-separated.
"""

import enum
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from dragoman.cli.output import BOLD, DIM, GREEN, RED, YELLOW, Output, one_line, visible

GAP: Final = 3
INDENT: Final = 3  # a blank, the mark, a blank
NARROWEST: Final = 24
SEPARATOR: Final = " · "


class Mark(enum.Enum):
    """What a finding is: its sign, its word, and its colour."""

    GOOD = ("✔", "ok", GREEN)
    NOTE = ("!", "note", YELLOW)
    FAULT = ("✘", "fault", RED)
    FACT = ("·", "fact", DIM)


class Finding(NamedTuple):
    """One line; findings of one group are aligned. `red` is the column that is not as it should be."""

    mark: Mark
    subject: str
    cells: tuple[str, ...]
    group: str = ""
    red: int | None = None


def show_findings(output: Output, findings: Sequence[Finding]) -> None:
    """Print the list."""
    if not output.human:
        for one in findings:
            print("\t".join([one.mark.value[1], one.subject, *(one_line(cell) for cell in one.cells)]))
        return
    subject = max((len(one.subject) for one in findings), default=0) + 2
    wide = shutil.get_terminal_size().columns
    for _, group in groupby(findings, key=lambda one: one.group or one.subject):
        lines = list(group)
        columns = max(len(one.cells) for one in lines)
        widths = [
            max((len(visible(one.cells[at])) for one in lines if len(one.cells) > at + 1), default=0)
            for at in range(columns - 1)
        ]
        before: tuple[Mark, str] | None = None
        for one in lines:
            again = before == (one.mark, one.subject)
            _show(output, one, "" if again else one.subject, subject, widths, wide)
            before = (one.mark, one.subject)


def show_end(output: Output, verdict: str, style: str, next_step: str) -> None:
    """Print what it comes to, and what to do next."""
    print(output.paint(visible(verdict) if output.human else verdict, style, sys.stdout))
    print(f"{output.paint('next:', BOLD, sys.stdout)} {next_step}")


def _show(output: Output, one: Finding, name: str, subject: int, widths: Sequence[int], wide: int) -> None:
    sign, _, color = one.mark.value
    cells = [visible(one_line(cell)) for cell in one.cells]
    mark = output.paint(sign, color, sys.stdout) if name else " "
    shown = f" {mark} {name.ljust(subject)}"
    at = INDENT + subject
    for index, cell in enumerate(cells):
        is_last = index == len(cells) - 1
        style = RED if one.red == index else DIM if is_last and index > 0 else ""
        pieces = _wrapped(cell, max(NARROWEST, wide - at)) if is_last else [cell]
        for line, piece in enumerate(pieces):
            padding = "\n" + " " * at if line else ""
            shown += padding + (output.paint(piece, style, sys.stdout) if style else piece)
        if not is_last:
            shown += " " * (widths[index] - len(cell) + GAP)
            at += widths[index] + GAP
    print(shown.rstrip())


def _wrapped(text: str, width: int) -> list[str]:
    """The text in lines of that width; one that lists things breaks between them, where each fits."""
    things = text.split(SEPARATOR)
    if max(map(len, things)) + len(SEPARATOR) > width:
        return textwrap.wrap(text, width) or [""]
    lines = [things[0]]
    for thing in things[1:]:
        if len(lines[-1]) + len(SEPARATOR) + len(thing) > width:
            lines.append(thing)
        else:
            lines[-1] += SEPARATOR + thing
    return lines
