"""Faults that show in a single line, by rules; and brackets that nobody closes."""

import re
from typing import Final

from dragoman.cli.demo.terminal.line_rules import Rules
from dragoman.cli.demo.terminal.remarks import Remark

LONGEST_LINE: Final = 500  # longer ones were written by a program
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_STRINGS: Final = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?\*/", re.DOTALL
)


def look_at_lines(code: str, rules: Rules, *, comment: str) -> list[Remark]:
    """What the rules see, line by line; comments are left out."""
    remarks: list[Remark] = []
    for number, line in enumerate(code.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith(comment) or len(stripped) > LONGEST_LINE:
            continue
        remarks += [Remark(number, fault, instead) for sign, fault, instead in rules if sign.search(stripped)]
    return remarks


def unclosed(code: str) -> list[Remark]:
    """Brackets that are opened and never closed, or closed and never opened."""
    plain = _STRINGS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), code)
    opened: list[tuple[str, int]] = []
    line = 1
    for character in plain:
        if character == "\n":
            line += 1
        elif character in "([{":
            opened.append((character, line))
        elif character in ")]}":
            if not opened or opened[-1][0] != _PAIRS[character]:
                return [Remark(line, f"this {character} closes nothing", "Look for the bracket that it should match")]
            opened.pop()
    return [Remark(at, f"this {bracket} is never closed", "Close it") for bracket, at in opened[-1:]]
