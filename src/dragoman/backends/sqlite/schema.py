"""Brings a database file to the schema this code knows, one numbered migration after the other.

`pre` migrations are safe while older code still runs on the file, `post` ones only afterwards.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.sql import SQL, statements

FOLDER: Final = Path(__file__).with_name("migrations")
_NAME: Final = re.compile(r"(\d{4})_(pre|post)_(\w+)\.sql")


class SchemaTooNew(Exception):
    """The file was written by a newer version."""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]


def migrations(folder: Path = FOLDER) -> list[Migration]:
    """All migrations, oldest first; ValueError for a file whose name is none, or a gap."""
    found: list[Migration] = []
    for expected, path in enumerate(sorted(folder.glob("*.sql")), start=1):
        match = _NAME.fullmatch(path.name)
        if match is None or int(match[1]) != expected:
            raise ValueError(f"{path.name} is not migration {expected:04}_pre_… or {expected:04}_post_….")
        script = tuple(statements(path.read_text("utf-8")))
        found.append(Migration(version=expected, name=path.stem, statements=script))
    return found


def migrate(connection: Connection, steps: Sequence[Migration], applied_at: int) -> int:
    """Apply what is missing, each step whole or not at all; the version reached.

    Raises SchemaTooNew when the file knows more steps than this code.
    """
    connection.execute(SQL["create_schema_version"])
    have = number(connection, SQL["schema_version"]) or 0
    if have > len(steps):
        raise SchemaTooNew(f"The data has schema {have}, this version knows {len(steps)}. Run the newer version.")
    for step in steps[have:]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in step.statements:
                connection.execute(statement).fetchall()
            connection.execute(SQL["add_schema_version"], (step.version, step.name, applied_at))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return len(steps)
