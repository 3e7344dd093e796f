"""`agents`, `keys`, `register`, `config` and `version`: what they ask and what they show."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import dragoman
from tests.cli.stub_hub import KEY_ID, StubHub
from tests.cli.terminal import environment, on_terminal, piped
from tests.support.ports import free_port


def test_an_agent_is_paused_and_resumed(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("agents", "pause", "agt_echo", env=env).out == "agt_echo\tpaused\n"
    assert hub.agents["agt_echo"]["status"] == "paused"
    assert piped("agents", "resume", "agt_echo", env=env).out == "agt_echo\tactive\n"
    assert hub.agents["agt_echo"]["status"] == "active"


def test_removing_an_agent_asks_on_a_terminal(hub: StubHub, env: dict[str, str]) -> None:
    ran = on_terminal("agents", "rm", "agt_echo", env=env, keys="n\n")
    assert (ran.code, "agt_echo" in hub.agents) == (1, True)
    assert "Remove agt_echo (Echo)? [y/N]" in ran.out
    ran = on_terminal("agents", "rm", "agt_echo", env=env, keys="y\n")
    assert (ran.code, "agt_echo" in hub.agents) == (0, False)


def test_removing_an_agent_elsewhere_needs_yes(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("agents", "rm", "agt_echo", env=env, stdin="y\n").code == 2
    assert "agt_echo" in hub.agents
    assert piped("agents", "rm", "agt_echo", "--yes", env=env).out == "agt_echo\tremoved\n"


def test_an_agent_is_shown_with_its_skills_and_their_schemas(hub: StubHub, env: dict[str, str]) -> None:
    shown = piped("agents", "show", "agt_editor", env=env).out
    assert "id\tagt_editor\n" in shown
    assert "skill\tsummarize\tmax_length: integer, default 500\n" in shown
    assert json.loads(piped("agents", "show", "agt_editor", "--json", env=env).out)["card"]["id"] == "agt_editor"


def test_the_versions_of_a_card_are_listed(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("agents", "versions", "agt_echo", env=env).out == "1.0.0\n0.9.0\n"


def test_a_new_key_is_on_stdout_alone(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("keys", "create", "--name", "ci", "--scope", "a2a:call", "--allow", "agt_echo:*", env=env)
    fields = dict(line.split("\t") for line in ran.out.splitlines())
    assert list(fields) == ["key", "signing_secret"]
    assert fields["key"] not in ran.err
    assert fields["signing_secret"] not in ran.err
    body = hub.last("/v1/keys").body
    assert body == {"name": "ci", "scopes": ["a2a:call"], "allow": ["agt_echo:*"]}


def test_the_wire_is_shown_without_secrets(hub: StubHub, env: dict[str, str]) -> None:
    hub.token = "a-token-of-the-operator-0123456789"
    ran = piped("keys", "create", "--name", "ci", "-v", env={**env, "DRAGOMAN_TOKEN": hub.token})
    assert ran.code == 0
    assert "> POST " in ran.err
    assert "< HTTP 201 in " in ran.err
    for secret in (hub.token, *(line.split("\t")[1] for line in ran.out.splitlines())):
        assert secret not in ran.err


def test_a_key_ends_after_a_duration_or_at_a_time(hub: StubHub, env: dict[str, str]) -> None:
    piped("keys", "create", "--name", "ci", "--expires", "90d", env=env)
    end = datetime.fromisoformat(hub.last("/v1/keys").body["expires_at"])
    assert timedelta(days=89) < end - datetime.now(UTC) < timedelta(days=91)
    piped("keys", "create", "--name", "ci", "--expires", "2030-01-01T00:00:00Z", env=env)
    assert hub.last("/v1/keys").body["expires_at"] == "2030-01-01T00:00:00Z"


@pytest.mark.req("P-62")
def test_a_key_is_rotated_and_revoked_by_a_unique_beginning(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("keys", "rotate", "k7f", "--overlap", "2h", env=env).code == 0
    assert hub.last(f"/v1/keys/{KEY_ID}/rotate").body == {"overlap_s": 7200}
    assert piped("keys", "revoke", "k7f", "--yes", env=env).out == f"{KEY_ID}\n"
    assert hub.keys[KEY_ID]["revoked_at"]


def test_an_agent_is_registered_by_url(hub: StubHub, env: dict[str, str]) -> None:
    words = ("--as", "a2a-1.0", "--id", "agt_mine", "--tag", "a", "--tag", "b", "--open")
    ran = piped("register", "http://127.0.0.1:9753", *words, env=env)
    assert hub.last("/v1/a2a/registry").body == {
        "url": "http://127.0.0.1:9753", "dialect": "a2a-1.0", "id": "agt_mine", "tags": ["a", "b"], "open": True,
    }  # fmt: skip
    assert "id\tagt_mine\n" in ran.out
    assert "token\tap_once\n" in ran.out
    assert "shown this once" in ran.err


def test_an_agent_is_registered_by_a_card_from_file_or_stdin(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    card = {"name": "Mine", "endpoint": "http://127.0.0.1:1/a2a"}
    (tmp_path / "card.json").write_text(json.dumps(card))
    for place, stdin in (("card.json", ""), ("-", json.dumps(card))):
        assert piped("register", place, env=env, stdin=stdin, cwd=tmp_path).code == 0
        assert hub.requests[-1].body == {"agent_card": card}


def test_settings_are_shown_with_their_sources(tmp_path: Path) -> None:
    env = environment(tmp_path, DRAGOMAN_PORT="8800", DRAGOMAN_ADMIN_TOKEN="0123456789abcdef" * 2)
    (tmp_path / "hub.toml").write_text('\nhost = "0.0.0.0"\n')
    ran = piped("config", "show", "--changed", "--config", f"{tmp_path}/hub.toml", env=env)
    assert ran.out.splitlines() == [
        f"host\t0.0.0.0\t{tmp_path}/hub.toml:2",
        "port\t8800\tDRAGOMAN_PORT",
        "admin_token\t***\tDRAGOMAN_ADMIN_TOKEN",
    ]
    assert "log.level\tinfo\tdefault" in piped("config", "show", "--all", env=env).out
    assert "log.level" not in piped("config", "show", env=env).out


def test_an_unknown_variable_is_warned_of(tmp_path: Path) -> None:
    ran = piped("config", "show", env=environment(tmp_path, DRAGOMAN_ALOW_NETWORKS="private"))
    assert ran.code == 0
    assert ran.err == ("warning: unknown setting DRAGOMAN_ALOW_NETWORKS: did you mean DRAGOMAN_ALLOW_NETWORKS?\n")


def test_settings_of_a_running_hub_are_asked_for(hub: StubHub, env: dict[str, str]) -> None:
    document = json.loads(piped("config", "show", "--hub", hub.url, "--json", env=env).out)
    assert document["items"][0] == {"setting": "host", "value": "0.0.0.0", "source": "flag --host"}


def test_version_shows_what_is_here_and_the_hubs_if_it_answers(hub: StubHub, env: dict[str, str]) -> None:
    shown = json.loads(piped("version", "--json", env=env).out)
    assert (shown["dragoman"], shown["hub"]) == (dragoman.__version__, "9.9.9")
    assert "hub" in shown["extras"]
    alone = piped("version", "--hub", f"http://127.0.0.1:{free_port()}", "--json", env=env)
    assert (alone.code, json.loads(alone.out)["hub"]) == (0, None)
