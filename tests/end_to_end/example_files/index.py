"""The index of the examples as data: one line per file, and what its words about the outcome promise."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
_SECTION: Final = re.compile(r"^## (\w+) \(\w+\.md\): (\d+) files$", re.MULTILINE)
_STATUS: Final = re.compile(r"\b([1-5]\d\d)\b(?: ([A-Z]+(?:_[A-Z]+)+))?")
_LIKE: Final = re.compile(r"\bas ([a-z0-9-]+)\b")
_ADDED: Final = re.compile(r"\(we add ([^)]*)\)")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One file, and what the index says of it."""

    dialect: str
    file: str
    direction: str
    where: str
    outcome: str
    source: str

    @property
    def key(self) -> str:
        """The file with its folder."""
        return f"{self.dialect}/{self.file}"

    @property
    def body(self) -> Any:
        """What the file holds."""
        return example(self.dialect, self.file)

    @property
    def paths(self) -> list[str]:
        """Where it is sent or found, without the method."""
        return self.where.partition(" ")[2].split(", ")

    @property
    def outcomes(self) -> list[tuple[int, str | None]]:
        """Each HTTP status that the index names, with the code that stands beside it."""
        return [(int(found[1]), found[2]) for found in _STATUS.finditer(self.outcome)]

    @property
    def like(self) -> Any:
        """The example whose form the answer has."""
        found = _LIKE.search(self.outcome)
        assert found is not None, f"{self.key}: the index names no other file"
        return example(self.dialect, f"{found[1]}.json")

    @property
    def added(self) -> frozenset[str]:
        """What answers have beyond the file, by the index."""
        found = _ADDED.search(self.outcome)
        return frozenset(re.findall(r"`(\w+)`", found[1])) if found else frozenset()


def example(dialect: str, file: str) -> Any:
    """What one file holds."""
    return json.loads((EXAMPLES / dialect / file).read_text())


def line_of(key: str) -> Line:
    """The line of one file."""
    return next(line for line in read_index()[0] if line.key == key)


@cache
def read_index() -> tuple[list[Line], dict[str, int]]:
    """Every line of the index, and how many files it says each dialect has."""
    words = (EXAMPLES / "README.md").read_text()
    sections = list(_SECTION.finditer(words))
    ends = [section.start() for section in sections[1:]] + [len(words)]
    lines: list[Line] = []
    for section, end in zip(sections, ends, strict=True):
        for row in words[section.end() : end].splitlines():
            if row.startswith("|") and not row.startswith(("|---", "| file |")):
                lines.append(_line(section[1], row, lines))
    return lines, {section[1]: int(section[2]) for section in sections}


def _line(dialect: str, row: str, before: list[Line]) -> Line:
    file, direction, where, outcome, source = (cell.strip() for cell in row.strip("|").split("|"))
    if where == "same":
        where = before[-1].where
    return Line(dialect=dialect, file=file, direction=direction, where=where, outcome=outcome, source=source)
