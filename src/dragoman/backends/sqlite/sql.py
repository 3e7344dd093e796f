"""The statements of `queries.sql` by name. Nothing here builds SQL."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_MARK: Final = "-- name: "


def parse(text: str) -> dict[str, str]:
    """Each statement under its name, without its comments; ValueError if two have one name."""
    found: dict[str, str] = {}
    for name, lines in _sections(text):
        if name in found:
            raise ValueError(f"Two statements are named {name}.")
        found[name] = "\n".join(line for line in lines if not line.startswith("--")).strip().rstrip(";")
    return found


def statements(script: str) -> list[str]:
    """The single statements of a migration, each ended by a semicolon at the end of its line."""
    lines = (line for line in script.splitlines() if not line.lstrip().startswith("--"))
    return [part.strip(" \n;") for part in "\n".join(lines).split(";\n") if part.strip(" \n;")]


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    for section in ("\n" + text).split("\n" + _MARK)[1:]:
        name, *lines = section.splitlines()
        yield name.strip(), lines


SQL: Final[Mapping[str, str]] = parse(Path(__file__).with_name("queries.sql").read_text("utf-8"))
