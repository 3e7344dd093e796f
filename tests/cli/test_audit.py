"""`dragoman audit verify` and `dragoman forget`, against a real hub and its file."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.terminal import environment, on_terminal, piped, plain
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent

WORD = "a-word-to-be-forgotten"


@pytest.fixture(scope="module")
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as served:
        yield served


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, agent: PlatformAgent) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("audit") / "data", auth="none") as running:
        name = running.register(agent.card())["id"]
        for number in range(30):
            running.call("echo", {"n": number, "said": WORD}, name, context={"conversation_id": f"conv_{number % 3}"})
        yield running


@pytest.fixture
def env(tmp_path: Path, hub: HubProcess) -> dict[str, str]:
    return environment(tmp_path, DRAGOMAN_URL=hub.url)


def test_a_whole_audit_is_told_by_the_hub_and_by_its_file(hub: HubProcess, env: dict[str, str]) -> None:
    for more in ((), ("--data", str(hub.data))):
        ran = piped("audit", "verify", *more, env=env)
        assert (ran.code, ran.out.startswith("whole: ")) == (0, True), ran.err
        assert "signed by the hub up to row" in ran.err
        told = json.loads(piped("audit", "verify", "--json", *more, env=env).out)
        assert (told["ok"], told["broken"]) == (True, None)
        assert told["calls"] >= 30
    shown = on_terminal("audit", "verify", env=env)
    assert (shown.code, "100%" in shown.out) == (0, True)
    assert piped("audit", "verify", "--from", "1h", env=env).code == 0


def test_its_rows_are_exported(hub: HubProcess, env: dict[str, str], tmp_path: Path) -> None:
    for kind, more in (("hub", ()), ("file", ("--data", str(hub.data)))):
        file = tmp_path / f"{kind}.jsonl"
        assert piped("audit", "verify", "--export", str(file), *more, env=env).code == 0
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        assert [row["n"] for row in rows] == list(range(1, len(rows) + 1))
        assert rows[0]["action"] == "audit.begun"
        again = piped("audit", "verify", "--export", str(file), *more, env=env)
        assert (again.code, "cannot be written" in again.err) == (2, True)


def test_a_changed_row_is_named_and_ends_with_1(agent: PlatformAgent, tmp_path: Path) -> None:
    with running_hub(tmp_path / "data", auth="none") as running:
        name = running.register(agent.card())["id"]
        running.call("echo", {}, name)
        with closing(sqlite3.connect(tmp_path / "data" / "hub.db")) as file, file:
            file.execute("UPDATE audit SET principal = 'nobody' WHERE n = 2")
        env = environment(tmp_path, DRAGOMAN_URL=running.url)
        for more in ((), ("--data", str(running.data))):
            ran = piped("audit", "verify", *more, env=env)
            assert (ran.code, ran.out.startswith("broken at row 2: ")) == (1, True), ran.out + ran.err
    ran = piped("audit", "verify", "--data", str(tmp_path / "nowhere"), env=env)
    assert (ran.code, "there is no file" in ran.err) == (1, True)


def test_a_conversation_is_forgotten_and_the_audit_stays_whole(hub: HubProcess, env: dict[str, str]) -> None:
    asked = piped("forget", "--context", "conv_0", env=env)
    assert (asked.code, "--yes" in asked.err) == (2, True)
    shown = on_terminal("forget", "--context", "conv_0", env=env, keys="y\n")
    assert (shown.code, "what was written in 10 calls?" in plain(shown.out)) == (0, True)
    assert "Backups made before keep the content." in plain(shown.out)
    ran = piped("forget", "--context", "conv_1", "--yes", "--json", env=env)
    assert json.loads(ran.out) == {
        "forgotten": 10,
        "cancelled": 0,
        "note": "Backups made before keep the content.",
        "next_cursor": None,
    }
    for conversation, there in (("conv_0", False), ("conv_1", False), ("conv_2", True)):
        for item in hub.get(f"/v1/calls?conversation={conversation}").json["items"]:
            assert (WORD in hub.get(f"/v1/calls/{item['id']}").body.decode()) is there
    assert piped("audit", "verify", env=env).code == 0


def test_whose_is_said_in_one_way(env: dict[str, str]) -> None:
    assert piped("forget", env=env).code == 2
    assert piped("forget", "--context", "a", "--caller", "b", env=env).code == 2
    nothing = piped("forget", "--caller", "nobody", "--yes", env=env)
    assert (nothing.code, nothing.out, "no call matches" in nothing.err) == (0, "0\n", True)
