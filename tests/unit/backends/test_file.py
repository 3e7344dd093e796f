"""The file: one process at a time, readable by its owner alone, brought up to date step by step."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.backends.sqlite import SchemaTooNew, StoreInUse, schema
from dragoman.backends.sqlite.connection import connect
from dragoman.backends.sqlite.lock import FileLock
from dragoman.backends.sqlite.schema import Migration
from dragoman.backends.sqlite.sql import parse
from dragoman.backends.sqlite.sql import statements as split_statements
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, new_task, opening
from tests.support.run import run
from tests.unit.backends.conftest import Running, Statements, look

HOLDER = """
import sys
from pathlib import Path
from dragoman.backends.sqlite.lock import FileLock
FileLock(Path(sys.argv[1])).acquire()
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.read()
"""


def test_a_second_process_is_refused_and_told_who_has_the_file(store: Running, path: Path) -> None:
    path.parent.mkdir()

    async def scenario() -> None:
        async with store():
            pass

    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreInUse) as refused:
            run(scenario())
        assert refused.value.pid == holder.pid
        assert str(holder.pid) in str(refused.value)
        # The lock goes with its holder, however it ends.
        holder.kill()
        holder.wait(10)
    run(scenario())


def test_a_store_that_is_closed_lets_go_of_the_file(store: Running, path: Path) -> None:
    async def scenario() -> None:
        async with store():
            with pytest.raises(StoreInUse):
                FileLock(path).acquire()

    run(scenario())
    lock = FileLock(path)
    lock.acquire()
    lock.release()


def test_only_the_owner_may_read_the_files(store: Running, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.put_sealed("a", b"b")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            assert modes == dict.fromkeys(("hub.db", "hub.db-wal", "hub.db-shm", "hub.db.lock"), 0o600)
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    run(scenario())


def test_commits_are_durable_and_checkpoints_the_stores_own(store: Running, statements: Statements) -> None:
    async def scenario() -> None:
        async with store():
            writer, *readers = statements.connections
            for pragma, value in (("synchronous", 2), ("wal_autocheckpoint", 0), ("journal_mode", "wal")):
                assert writer.execute(f"PRAGMA {pragma}").fetchall() == [(value,)]
            kept_from_writing = [reader.execute("PRAGMA query_only").fetchall() for reader in readers]
            assert kept_from_writing == [[(1,)], [(1,)], [(0,)]]  # the last one makes checkpoints

    run(scenario())


def test_the_schema_is_made_once_and_noted(store: Running, path: Path, clock: ManualClock) -> None:
    async def scenario() -> None:
        for _ in range(2):
            async with store() as running:
                await running.open(opening(new_task(clock)))

    run(scenario())
    known = [(step.version, step.name) for step in schema.migrations()]
    assert known[:2] == [(1, "0001_pre_first"), (2, "0002_pre_dialects")]
    assert look(path, "SELECT version, name FROM schema_version") == known
    assert look(path, "SELECT count(*), max(number) FROM task") == [(2, 2)]


def test_a_file_of_a_newer_version_is_refused_and_left_alone(store: Running, path: Path) -> None:
    async def scenario() -> None:
        async with store():
            pass

    run(scenario())
    connection = connect(path)
    connection.execute("INSERT INTO schema_version VALUES (99, 'later', 0)")
    connection.close()
    for _ in range(2):
        with pytest.raises(SchemaTooNew):
            run(scenario())


def test_a_migration_is_whole_or_not_at_all(tmp_path: Path) -> None:
    connection = connect(tmp_path / "a.db")
    good = Migration(version=1, name="good", statements=("CREATE TABLE a (x)",))
    bad = Migration(version=2, name="bad", statements=("CREATE TABLE b (x)", "CREATE TABLE a (x)"))
    with pytest.raises(Exception, match="already exists"):
        schema.migrate(connection, [good, bad], 0)
    tables = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    assert tables == [("a",), ("schema_version",)]
    mended = Migration(version=2, name="mended", statements=("CREATE TABLE b (x)",))
    assert schema.migrate(connection, [good, mended], 0) == 2
    connection.close()


def test_migrations_are_numbered_without_a_gap(tmp_path: Path) -> None:
    (tmp_path / "0001_pre_one.sql").write_text("-- why\nCREATE TABLE a (x);\n-- and\nCREATE TABLE b (x);\n")
    (tmp_path / "0002_post_two.sql").write_text("DROP TABLE a;\n")
    found = schema.migrations(tmp_path)
    assert [(step.version, step.name, len(step.statements)) for step in found] == [
        (1, "0001_pre_one", 2),
        (2, "0002_post_two", 1),
    ]
    for name in ("0004_pre_gap.sql", "0003_sometime_x.sql"):
        (tmp_path / name).write_text("")
        with pytest.raises(ValueError, match=name):
            schema.migrations(tmp_path)
        (tmp_path / name).unlink()


def test_statements_are_told_apart_by_name() -> None:
    text = "-- A preface.\n\n-- name: one\n-- Says 1.\nSELECT\n  1;\n\n-- name: two\n-- Says 2.\nSELECT 2;\n"
    assert parse(text) == {"one": "SELECT\n  1", "two": "SELECT 2"}
    assert split_statements("SELECT 1;\n-- a remark;\nSELECT 2;\n") == ["SELECT 1", "SELECT 2"]
    with pytest.raises(ValueError, match="one"):
        parse("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n")


def test_a_restart_gives_no_number_twice(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        tasks = [new_task(clock) for _ in range(6)]
        for task in tasks:
            async with store() as running:
                await running.open(opening(task))
        async with store() as running:
            for task in tasks:
                assert await running.load(ALICE, task.id) == task
                assert len(await running.events(task.id, 0, 10)) == 1

    run(scenario())
