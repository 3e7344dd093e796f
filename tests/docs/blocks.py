"""The code blocks of the project's own pages, each with the file it says it is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """One fenced block; `file` is what the comment right above it names."""

    page: str
    line: int
    language: str
    text: str
    file: str | None


def blocks() -> Iterator[Block]:
    """Every block of every page."""
    for page in PAGES:
        text = page.read_text()
        for found in _BLOCK.finditer(text):
            yield Block(
                page=str(page.relative_to(ROOT)),
                line=text.count("\n", 0, found.start()) + 1,
                language=found["language"],
                text=found["text"],
                file=found["file"],
            )


def command_lines(block: Block) -> Iterator[str]:
    """The lines of a shell block that call `dragoman`, continuation lines joined, comments and pipes cut off."""
    if block.language not in ("bash", "sh", "console"):
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "console" and not line.startswith("$ "):
            continue  # what was answered
        words = line.removeprefix("$ ").strip()
        command = re.match(r"(?:\S*/)?dragoman\s+(.*)", words)
        if command is not None:
            yield command[1]
