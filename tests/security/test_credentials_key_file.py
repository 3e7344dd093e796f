"""The operator's key file, at agents that demand a key or a token; the published AgentVault server among them."""

import json
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import KeyManager
from tests.end_to_end.world import fresh, refused, tracebacks
from tests.support.hub import HubProcess
from tests.support.locked_agent import LockedAgent, locked_agent
from tests.support.peers import PeerProcess

PEER = "agentvault-0.2.1"
SECRET = "planted-key-of-a-service-77c1"


@contextmanager
def hub_with(folder: Path, keys: Path) -> Generator[HubProcess]:
    hub = HubProcess(folder / "data").start({"DRAGOMAN_KEY_FILE": str(keys)})
    try:
        yield hub
        assert tracebacks(hub) == []
        assert SECRET not in hub.log.read_text()
    finally:
        hub.stop()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[HubProcess]:
    with hub_with(tmp_path_factory.mktemp("hub"), keys) as hub:
        yield hub


def card_of(agent: LockedAgent) -> dict[str, Any]:
    """A card that names a key; without a service of its own, its id is the name of it."""
    key: dict[str, Any] = {"apiKeySecurityScheme": {"location": "header", "name": "X-Service-Key"}}
    return agent.card(securitySchemes={"k": key})


def shows_key(headers: Any) -> bool:
    return headers.get("x-service-key") == SECRET


def credential(hub: HubProcess, agent: str) -> Any:
    return hub.get(f"/v1/agents/{agent}").json["credential"]


FULL = pytest.mark.full


@pytest.mark.req("V-10", "V-38")
@pytest.mark.parametrize(
    ("scheme", "how"),
    [
        ("oauth2", "key file"),
        pytest.param("apiKey", "key file", marks=FULL),
        pytest.param("apiKey", "credentials", marks=FULL),
        pytest.param("oauth2", "credentials", marks=FULL),
    ],
)
def test_a_published_agent_that_is_protected_is_called(
    hub: HubProcess, keys: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, how: str
) -> None:
    monkeypatch.setenv("PEER_SECRET", SECRET)
    service = fresh("Peers-Echo")
    manager = KeyManager(keys)
    if how == "key file":
        manager.set_key(service, SECRET)
        manager.set_oauth(service, "peer", SECRET)
    with PeerProcess(PEER, "agentvault_agent.py", "--protect", scheme, "--service", service) as peer:
        card = {**fetched(f"{peer.url}agent-card.json"), "humanReadableId": f"peers/{service}"}
        name = hub.register(card, id=fresh("peer"))["id"]
        if how == "credentials":
            refused(hub.call("echo", {"text": "hi"}, name), 502, "AGENT_ERROR")
            given = {
                "apiKey": {"type": "apiKey", "token": SECRET},
                # Its card says where tokens are.
                "oauth2": {"type": "oauth2", "client_id": "peer", "client_secret": SECRET},
            }
            assert hub.request("PATCH", f"/v1/agents/{name}", {"credentials": given[scheme]}).status == 200
        for _ in range(2):
            reply = hub.call("echo", {"text": "hi"}, name)
            assert reply.status == 200, reply.body
            assert "hi" in reply.body.decode()
        seen = fetched(f"{peer.url}seen")
    shown = credential(hub, name)
    assert seen["tokens"] == (1 if scheme == "oauth2" else 0)
    assert (seen["refused"] == 0) is (how == "key file")
    assert (shown["type"], shown.get("from")) == (scheme, "key file" if how == "key file" else None)


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


@pytest.mark.req("V-10")
def test_a_key_goes_to_the_first_origin_alone_whatever_card_names_it(hub: HubProcess, keys: Path) -> None:
    name = fresh("weather")
    KeyManager(keys).set_key(name, SECRET)
    with locked_agent(shows_key) as first, locked_agent(lambda _: True) as thief:
        hub.register(card_of(first), id=name)
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        assert credential(hub, name) == {"set": True, "type": "apiKey", "origin": first.url, "from": "key file"}
        # The agent moves.
        hub.register(card_of(thief), id=name)
        error = refused(hub.call("talk", {"text": "hi"}, name), 503, "AGENT_UNAVAILABLE")
        assert error["details"]["reason"] == "credential_suspended"
        assert thief.requests == []
        assert thief.url in credential(hub, name)["suspended"]
        # It is still bound after a restart, and comes back with its address.
        hub.stop()
        hub.start({"DRAGOMAN_KEY_FILE": str(keys)})
        assert hub.call("talk", {"text": "hi"}, name).status == 503
        hub.register(card_of(first), id=name)
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        assert thief.requests == []


@pytest.mark.req("V-10")
@pytest.mark.parametrize("scopes", [("a2a:register",), ("a2a:register", "a2a:admin")])
def test_only_agents_of_administrators_get_a_key_of_the_file(
    hub: HubProcess, keys: Path, scopes: tuple[str, ...]
) -> None:
    name = fresh("mine")
    KeyManager(keys).set_key(name, SECRET)
    key = hub.new_key(*scopes)
    with locked_agent(lambda _: True) as agent:
        reply = hub.post("/v1/a2a/registry", {"agent_card": card_of(agent), "id": name}, token=key)
        assert reply.status == 201, reply.body
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        assert SECRET not in str(agent.requests)
    # Nor does anybody become an administrator by a name.
    for taken in ("admin", "operator", "anonymous"):
        made = hub.post("/v1/keys", {"name": "x", "scopes": ["a2a:register"], "agent_id": taken})
        assert made.status == 400, made.body


def test_a_key_that_was_changed_in_the_file_is_read_again_when_the_old_one_is_refused(
    hub: HubProcess, keys: Path
) -> None:
    name = fresh("weather")
    KeyManager(keys).set_key(name, "the-old-one")
    with locked_agent(lambda headers: "x-service-key" in headers) as agent:
        hub.register(card_of(agent), id=name)
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        agent.takes = shows_key
        KeyManager(keys).set_key(name, SECRET)
        assert hub.call("talk", {"text": "hi"}, name).status == 200
        assert [headers["x-service-key"] for headers, _ in agent.requests] == ["the-old-one", "the-old-one", SECRET]


def test_a_broken_key_file_is_told_to_the_owner_and_its_path_to_nobody(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text("[]")
    with hub_with(tmp_path, keys) as hub, locked_agent(lambda _: True) as agent:
        name = hub.register(card_of(agent), id="weather")["id"]
        reply = hub.call("talk", {"text": "hi"}, name)
        refused(reply, 503, "AGENT_UNAVAILABLE")
        assert str(keys) not in reply.body.decode()
        assert credential(hub, name) == {"set": False, "problem": "The hub's key file cannot be read."}
        assert str(keys) in hub.log.read_text()
