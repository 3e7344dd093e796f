"""Credentials from the command line: out of a file, never out of the arguments."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.terminal import piped
from tests.end_to_end.world import fresh
from tests.support.hub import HubProcess, running_hub
from tests.support.locked_agent import Authority, LockedAgent, locked_agent

SECRET = "planted-in-a-file-3b9d"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
        yield hub


@pytest.fixture
def env(hub: HubProcess) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "DRAGOMAN_URL": hub.url, "DRAGOMAN_TOKEN": hub.token or ""}


def shows(headers: Mapping[str, str]) -> bool:
    return headers.get("authorization") == f"Bearer {SECRET}"


@pytest.fixture
def agent() -> Iterator[LockedAgent]:
    with locked_agent(shows) as agent:
        yield agent


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps({"type": "bearer", "token": SECRET}))
    return file


def test_an_agent_is_registered_with_the_credential_of_a_file(
    hub: HubProcess, env: dict[str, str], agent: LockedAgent, key_file: Path
) -> None:
    name = fresh("cli")
    ran = piped("register", agent.url, "--id", name, "--key-file", str(key_file), "-v", env=env)
    assert ran.code == 0, ran.err
    assert SECRET not in ran.out + ran.err
    assert hub.call("talk", {"text": "hi"}, name).status == 200
    shown = piped("agents", "show", name, env=env)
    assert f"credential\tbearer for {agent.url}\n" in shown.out
    assert SECRET not in shown.out


def test_a_credential_is_entered_again_after_its_agent_has_moved(
    hub: HubProcess, env: dict[str, str], agent: LockedAgent, key_file: Path
) -> None:
    name = fresh("cli")
    hub.register(agent.card(), id=name)
    assert piped("agents", "credentials", name, env=env).out == "none is set\n"
    entered = piped("agents", "credentials", name, "--key-file", str(key_file), env=env)
    assert (entered.code, entered.out) == (0, f"bearer for {agent.url}\n"), entered.err
    with locked_agent(shows) as moved:
        hub.register(moved.card(), id=name)
        said = piped("agents", "credentials", name, env=env).out
        assert said == (
            f"bearer for {agent.url}; suspended: stored for {agent.url}, "
            f"and the agent is at {moved.url} now: enter it again\n"
        )
        piped("agents", "credentials", name, "--key-file", "-", env=env, stdin=key_file.read_text())
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        as_json = piped("agents", "credentials", name, "--json", env=env).out
    assert json.loads(as_json) == {"id": name, "credential": {"set": True, "type": "bearer", "origin": moved.url}}


def test_certificates_are_named_by_their_files(hub: HubProcess, env: dict[str, str], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("alice")
    for name, text in (("a.crt", certificate), ("a.key", key), ("ca.crt", authority.pem)):
        (tmp_path / name).write_text(text)
    file = tmp_path / "mtls.json"
    beside = {"certificate_file": "a.crt", "key_file": "a.key", "ca_file": "ca.crt"}
    file.write_text(json.dumps({"type": "mtls", **beside}))
    name = fresh("cli")
    with locked_agent(lambda _: True, tls=authority.serving()) as agent:
        ran = piped("register", agent.url, "--id", name, "--key-file", str(file), env=env)
        assert ran.code == 0, ran.err
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        assert set(agent.peers) == {"alice"}


@pytest.mark.parametrize("text", ["not json " + SECRET, f'["{SECRET}"]'])
def test_a_file_that_holds_no_credential_is_not_quoted(
    env: dict[str, str], agent: LockedAgent, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    ran = piped("register", agent.url, "--key-file", str(file), env=env)
    assert ran.code == 2
    assert "holds no credential" in ran.err
    assert SECRET not in ran.err
    missing = piped("register", agent.url, "--key-file", str(tmp_path / "none"), env=env)
    assert (missing.code, "cannot be read" in missing.err) == (2, True)
