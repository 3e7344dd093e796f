"""A copy of a database in use is of one moment, and a writer never makes it begin again."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.backends.sqlite import schema, upkeep
from dragoman.backends.sqlite.connection import connect, prepare

ROWS = 2000


def rows_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute("SELECT count(*) FROM sealed").fetchall()[0][0]


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A database of some thousand pages."""
    path = tmp_path / "hub.db"
    with closing(connect(path)) as database:
        prepare(database, reads_only=False)
        schema.migrate(database, schema.migrations(), 0)
        database.execute("BEGIN")
        for number in range(ROWS):
            database.execute("INSERT INTO sealed (name, value) VALUES (?1, ?2)", (f"n{number}", bytes(4000)))
        database.execute("COMMIT")
    return path


def test_what_is_written_meanwhile_is_not_in_the_copy_and_holds_nothing_up(used: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with closing(connect(used)) as writer:

        def progress(done: int, total: int) -> None:
            told.append((done, total))
            assert len(told) < 100, "it begins again and again"
            writer.execute("INSERT INTO sealed (name, value) VALUES (?1, ?2)", (f"late{len(told)}", b""))

        upkeep.copy_out(used, tmp_path / "copy.db", progress)
    assert len(told) > 4
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]
    assert rows_of(tmp_path / "copy.db") == ROWS
    assert rows_of(used) == ROWS + len(told)


def test_a_copy_that_fails_leaves_nothing_behind(used: Path, tmp_path: Path) -> None:
    def fails(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upkeep.copy_out(used, tmp_path / "copy.db", fails)
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"hub.db"}


def test_a_file_of_a_newer_version_is_not_taken(used: Path) -> None:
    with closing(connect(used)) as database:
        database.execute("INSERT INTO schema_version (version, name, applied_at) VALUES (99, 'later', 0)")
    with pytest.raises(upkeep.NoDatabase, match="newer version"):
        upkeep.check(used)
    with pytest.raises(upkeep.SchemaTooNew):
        upkeep.pending(used)
