"""`--env-file`: settings in a file, as NAME=value lines in the shell's own quoting."""

import os
import shlex
from pathlib import Path

from dragoman.cli.fault import wrong_usage


def add_environment(file: Path) -> None:
    """Put the file's settings into the environment; what is set there already stays. Raises Fault."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise wrong_usage(f"{file} cannot be read: {error}", next="--env-file FILE") from error
    for number, line in enumerate(text.splitlines(), 1):
        named = _read(line)
        if named is None:
            raise wrong_usage(
                f"{file}, line {number} is no NAME=value", next="quote values that have spaces: NAME='a b'"
            )
        for name, value in named.items():
            os.environ.setdefault(name, value)


def _read(line: str) -> dict[str, str] | None:
    """What a line sets; nothing for an empty one or a comment, None for what makes no sense."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None  # a quotation mark is missing
    if words[:1] == ["export"]:
        del words[0]
    if not words:
        return {}
    name, equals, value = words[0].partition("=")
    return {name: value} if len(words) == 1 and equals and name.isidentifier() and "\0" not in value else None
