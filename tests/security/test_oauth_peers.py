"""Strangers' clients with tokens of the hub: AgentVault's own, the published A2A SDK, and our client without a hub."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman import A2AClient, KeyManager
from tests.end_to_end.agentvault_world import mount, text
from tests.end_to_end.world import fresh, tracebacks
from tests.support.agents import agentvault, dotted
from tests.support.hub import HubProcess, running_hub
from tests.support.oauth import client_of, token_for
from tests.support.peers import RECIPES, peer_python
from tests.support.run import run
from tests.support.sdk_caller import CLIENTS, SdkCaller, SdkClient
from tests.support.speaking import Content, StubAgent

PATIENCE_S: Final = 60.0


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("peers") / "data") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture
def vault(hub: HubProcess) -> Iterator[tuple[str, StubAgent]]:
    with agentvault.agent(fresh("peer")) as stub:
        yield hub.register(stub.card, id=fresh("oauth"), dialect="agentvault")["id"], stub


def client(hub: HubProcess, agent: str, pair: tuple[str, str], *steps: dict[str, Any]) -> list[Any]:
    """The published AgentVault client, as one that has an OAuth client and no key."""
    card = f"http://localhost:{hub.port}{mount(agent)}agent-card.json"
    done = subprocess.run(
        [str(peer_python("agentvault-0.2.1")), str(RECIPES / "agentvault_client.py"), card, "oauth2"],
        input="".join(f"{json.dumps(step)}\n" for step in steps),
        env={
            "PATH": os.environ["PATH"],
            "AGENTVAULT_OAUTH_DRAGOMAN_CLIENT_ID": pair[0],
            "AGENTVAULT_OAUTH_DRAGOMAN_CLIENT_SECRET": pair[1],
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.req("V-37", "V-13", "V-09")
def test_the_agentvault_client_gets_a_token_and_works_with_it(hub: HubProcess, vault: tuple[str, StubAgent]) -> None:
    agent, _ = vault
    said = text("hello")["parts"]
    pair = client_of(hub.new_key("a2a:call"))
    sent, task, heard, again = client(
        hub, agent, pair, {"do": "send", "parts": said}, {"do": "wait"}, {"do": "listen"}, {"do": "get"}
    )
    assert (task["id"], task["state"]) == (sent["id"], "COMPLETED")
    assert task["messages"][0]["parts"] == said
    assert heard["events"][-1]["state"] == "COMPLETED"
    assert again["id"] == sent["id"]


@pytest.mark.full
@pytest.mark.req("V-37", "V-13")
def test_the_agentvault_client_is_told_what_is_wrong_with_its_client(
    hub: HubProcess, vault: tuple[str, StubAgent]
) -> None:
    agent, stub = vault
    send = {"do": "send", "parts": text("hello")["parts"]}
    client_id, _ = client_of(hub.new_key("a2a:call"))
    (wrong,) = client(hub, agent, (client_id, hub.new_key("a2a:call")), send)
    assert wrong["raised"] == "A2AAuthenticationError" and "invalid_client" in wrong["message"]
    # The card asks for a scope that this key lacks.
    (poor,) = client(hub, agent, client_of(hub.new_key("a2a:receive")), send)
    assert poor["raised"] == "A2AAuthenticationError" and "invalid_scope" in poor["message"]
    assert not [request for request in stub.requests if request[0] == "POST" and "tasks/send" in str(request[3])]


@pytest.mark.parametrize(
    "sdk",
    [
        pytest.param(each, marks=() if str(each) == "a2a-1.3.0 JSONRPC" else pytest.mark.full)
        for each in CLIENTS
        if not each.mount
    ],
    ids=str,
)
def test_the_published_sdks_work_with_a_token(hub: HubProcess, sdk: SdkClient) -> None:
    with dotted.agent() as stub:
        agent = hub.register(stub.card, id=fresh("oauth"), dialect="dotted")["id"]
        token = token_for(hub, hub.new_key("a2a:call"), scope="a2a:call")
        caller = SdkCaller(sdk, f"http://localhost:{hub.port}", token)
        try:
            seen = caller.call(agent, Content(text="hello"))
            assert (seen.state, seen.error) == ("completed", None)
            assert caller.get(agent, seen).task_id == seen.task_id
        finally:
            caller.close()


def _sdk_told(peer: str, program: str, *words: str) -> dict[str, str]:
    """What a published SDK came to with a credential that it put where the card says."""
    command = [str(peer_python(peer)), str(RECIPES / program), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, str] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("scheme", [pytest.param("bearer", marks=pytest.mark.full), "apiKey", "oauth2"])
@pytest.mark.parametrize(
    ("peer", "program", "completed"),
    [
        ("a2a-1.3.0", "a2a_credentials_v10.py", "TASK_STATE_COMPLETED"),
        pytest.param("a2a-0.3.26", "a2a_credentials_v03.py", "completed", marks=pytest.mark.full),
    ],
)
def test_the_published_sdks_show_what_the_card_asks_for(
    hub: HubProcess, peer: str, program: str, completed: str, scheme: str
) -> None:
    with dotted.agent() as stub:
        agent = hub.register(stub.card, id=fresh("schemes"), dialect="dotted")["id"]
        base, key = f"http://localhost:{hub.port}/agents/{agent}/", hub.new_key("a2a:call")
        assert _sdk_told(peer, program, base, scheme, key) == {"state": completed}
        if scheme != "oauth2":
            assert "raised" in _sdk_told(peer, program, base, scheme, key[:-1] + ("y" if key[-1] == "x" else "x"))


@pytest.mark.req("V-28")
def test_our_own_client_gets_a_token_of_the_hub(hub: HubProcess, vault: tuple[str, StubAgent], tmp_path: Path) -> None:
    agent, _ = vault
    keys = KeyManager(tmp_path / "keys.json")
    keys.set_oauth("dragoman", *client_of(hub.new_key("a2a:call")))
    card = f"http://localhost:{hub.port}{mount(agent)}agent-card.json"

    assert "hello" in run(A2AClient.direct(card, keys=keys).call(message="hello")).text
