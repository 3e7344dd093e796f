"""Which hub is meant, and which token it is shown: what was given, the environment, the data directory."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import A2AClient, errors
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.client.settings import DEFAULT_HUB, hub_url, is_hub_url, is_loopback, tokens_for
from tests.support.speaking import StubAgent, json_answer, serving

LOCAL = "http://127.0.0.1:8700"


def keep(folder: Path, token: str, mode: int = 0o600) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "admin-token"
    file.write_text(token + "\n")
    file.chmod(mode)


def test_the_hub_is_the_one_given_else_that_of_the_environment_else_this_machines() -> None:
    environ = {"DRAGOMAN_URL": "https://hub.example"}
    assert hub_url("http://given", environ) == "http://given"
    assert hub_url(None, environ) == "https://hub.example"
    assert hub_url(None, {}) == DEFAULT_HUB
    assert hub_url(None, {"DRAGOMAN_URL": ""}) == DEFAULT_HUB


@pytest.mark.parametrize("url", ["http://h", "https://h:8443/prefix", "http://[::1]:8700"])
def test_a_hub_is_at_a_plain_url(url: str) -> None:
    assert is_hub_url(url)


@pytest.mark.parametrize("url", ["", "hub.example", "ftp://h", "http://", "http://h:0", "http://h:x", "http://h?a=1"])
def test_anything_else_is_refused_when_the_client_is_made(url: str) -> None:
    assert not is_hub_url(url)
    if url:
        with pytest.raises(errors.BadParams, match="is no URL of a hub"):
            A2AClient(url)


@pytest.mark.parametrize(("url", "local"), [
    (LOCAL, True), ("http://localhost:1", True), ("http://[::1]", True), ("http://127.9.9.9", True),
    ("http://10.0.0.1", False), ("http://localhost.example", False), ("http://[x", False),
])  # fmt: skip
def test_which_addresses_are_this_machine(url: str, local: bool) -> None:
    assert is_loopback(url) is local


def test_the_token_of_the_environment_comes_before_that_of_the_data_directory(tmp_path: Path) -> None:
    keep(tmp_path, "ap_kept")
    environ = {"DRAGOMAN_DATA": str(tmp_path)}
    assert tokens_for(LOCAL, {**environ, "DRAGOMAN_TOKEN": "ap_set"}).usable == ["ap_set"]
    assert tokens_for(LOCAL, environ).usable == ["ap_kept"]


def test_the_token_of_the_data_directory_is_shown_to_this_machine_alone(tmp_path: Path) -> None:
    keep(tmp_path, "ap_kept")
    assert tokens_for("https://hub.example", {"DRAGOMAN_DATA": str(tmp_path)}) == ([], [])


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_that_others_can_read_is_not_used(mode: int, tmp_path: Path) -> None:
    keep(tmp_path, "ap_kept", mode)
    found = tokens_for(LOCAL, {"DRAGOMAN_DATA": str(tmp_path)})
    assert found.usable == []
    assert "may be read by others" in found.refused[0]


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of the test's own, and no other setting."""
    for name in ("DRAGOMAN_URL", "DRAGOMAN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    return tmp_path


def refusing_all_but(token: str) -> Any:
    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if headers.get("authorization") == f"Bearer {token}":
            return json_answer({"agents": [], "total": 0, "next_cursor": None})
        return json_answer({"error": {"code": "AUTHORIZATION_ERROR", "message": "Send a valid key"}}, 401)

    return handle


async def ask(url: str) -> int:
    async with A2AClient(url) as client:
        return len([agent async for agent in client.discover()])


def test_of_two_hubs_of_this_user_the_one_that_listens_gets_its_own_token(only: Path) -> None:
    keep(only, "ap_serve")
    keep(only / "dev", "ap_dev")
    with serving(StubAgent("hub"), refusing_all_but("ap_dev")) as stub:
        assert asyncio.run(ask(stub.url)) == 0
    assert [headers["authorization"] for _, _, headers, _ in stub.requests] == ["Bearer ap_serve", "Bearer ap_dev"]


def test_a_refused_token_file_is_named_when_the_hub_wants_a_token(only: Path) -> None:
    keep(only, "ap_kept", 0o644)
    with serving(StubAgent("hub"), refusing_all_but("ap_kept")) as stub, pytest.raises(errors.NotAuthenticated) as said:
        asyncio.run(ask(stub.url))
    assert "may be read by others" in str(said.value)


def test_the_environment_is_read_when_a_client_is_made(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_URL", "https://first.example/")
    client = A2AClient()
    monkeypatch.setenv("DRAGOMAN_URL", "https://second.example")
    assert (client.url, A2AClient().url) == ("https://first.example", "https://second.example")


def test_a_secret_is_never_shown(only: Path) -> None:
    http = HubHttp(LOCAL, "ap_very_secret")
    http.use_token("ap_also_secret")
    assert "secret" not in repr(vars(http)) + repr(A2AClient(LOCAL, "ap_very_secret"))
