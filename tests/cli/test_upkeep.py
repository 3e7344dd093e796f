"""`dragoman backup`, `restore` and `migrate`: a hub's data, beside it and without it."""

import json
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.backends.sqlite import schema
from tests.cli.terminal import environment, on_terminal, piped, plain
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import platform_agent


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    with running_hub(tmp_path / "data", auth="none") as running:
        yield running


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, DRAGOMAN_DATA=str(tmp_path / "data"))


def test_a_running_hub_is_backed_up_and_restored(hub: HubProcess, env: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    stopped = threading.Event()
    with platform_agent() as agent:
        name = hub.register(agent.card())["id"]
        before = {hub.call("echo", {}, name).json["call_id"] for _ in range(20)}

        def busy() -> None:
            while not stopped.is_set():
                hub.call("echo", {}, name)

        writing = threading.Thread(target=busy)
        writing.start()
        ran = piped("backup", str(copy), env=env)
        stopped.set()
        writing.join()
        after = hub.call("echo", {}, name).json["call_id"]
    assert (ran.code, ran.out) == (0, f"{copy}\n"), ran.err
    assert f"only with {tmp_path}/data/root.key, which it does not hold" in ran.err
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.glob("*copy*")} == {"copy.db"}, "one file, and nothing left beside it"
    with sqlite3.connect(copy) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    opened.close()

    ran = piped("restore", str(copy), "--yes", env=env)
    assert (ran.code, "is in use by pid" in ran.err, "next: stop the hub first" in ran.err) == (2, True, True)
    hub.stop()
    ran = piped("restore", str(copy), env=env)
    assert (ran.code, "--yes" in ran.err) == (2, True), "it asks, and there is nobody to ask"
    shown = on_terminal("restore", str(copy), env=env, keys="y\n")
    assert (shown.code, "100%" in shown.out) == (0, True)
    assert "hub.db.before-restore" in plain(shown.out)
    hub.start()
    assert {hub.get(f"/v1/calls/{call_id}").status for call_id in before} == {200}
    assert hub.get(f"/v1/calls/{after}").status == 404


def test_a_backup_overwrites_nothing_and_needs_something_to_copy(env: dict[str, str], tmp_path: Path) -> None:
    ran = piped("backup", "copy.db", env=env, cwd=tmp_path)
    assert (ran.code, f"there is no file {tmp_path}/data/hub.db" in ran.err) == (1, True)
    assert piped("migrate", env=env).code == 0
    assert json.loads(piped("backup", "copy.db", "--json", env=env, cwd=tmp_path).out)["bytes"] > 0
    ran = piped("backup", "copy.db", env=env, cwd=tmp_path)
    assert (ran.code, "copy.db exists" in ran.err) == (2, True)


def test_a_restore_needs_a_whole_file_and_its_root_key(hub: HubProcess, env: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert piped("backup", str(copy), env=env).code == 0
    hub.stop()
    key = tmp_path / "data" / "root.key"
    held = key.read_text()
    key.write_text(held.strip()[::-1])
    ran = piped("restore", str(copy), "--yes", env=env)
    assert (ran.code, "is not the one that" in ran.err) == (2, True)
    key.unlink()
    ran = piped("restore", str(copy), "--yes", env=env)
    assert (ran.code, f"there is no {key}" in ran.err) == (2, True)
    key.touch(0o600)
    key.write_text(held)
    raw = bytearray(copy.read_bytes())
    raw[4096:8192] = bytes(4096)
    for name, content in (("broken.db", bytes(raw)), ("text.db", b"no database at all" * 99), ("gone.db", None)):
        place = tmp_path / name
        if content is not None:
            place.write_bytes(content)
        ran = piped("restore", str(place), "--yes", env=env)
        assert (ran.code, "Traceback" in ran.err) == (1, False), name
    assert not list((tmp_path / "data").glob("*before-restore*")), "what is there stays untouched"
    assert piped("restore", str(copy), "--yes", "-q", env=env).code == 0


def test_pending_migrations_are_told_and_applied(env: dict[str, str], tmp_path: Path) -> None:
    every = [step.name for step in schema.migrations()]
    ran = piped("migrate", "--check", env=env)
    assert (ran.code, ran.out.split()) == (0, every), "without data there is nothing that is behind"
    data = tmp_path / "data"
    data.mkdir(0o700)
    with sqlite3.connect(data / "hub.db", isolation_level=None) as opened:
        schema.migrate(opened, schema.migrations()[:2], 0)
    opened.close()
    ran = piped("migrate", "--check", env=env)
    assert (ran.code, ran.out.split()) == (1, every[2:])
    assert piped("migrate", "--pre", env=env).out == "", "the next one is a post migration"
    assert json.loads(piped("migrate", "--json", env=env).out)["items"][0] == {"version": 3, "name": every[2]}
    ran = piped("migrate", "--check", env=env)
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to do\n")


def test_with_postgresql_there_is_another_way(env: dict[str, str]) -> None:
    for words in (("backup", "x.db"), ("restore", "x.db", "--yes"), ("migrate", "--check")):
        ran = piped(*words, env={**env, "DRAGOMAN_STORE": "postgresql://hub@db/hub"})
        assert (ran.code, "keeps its data in PostgreSQL" in ran.err, "docs/operations.md" in ran.err) == (2, True, True)
