"""Every framework's client understands every framework's agent, once the hub is between them.

What happens without the hub is measured beside it and not judged, save that a framework must understand itself: else
the program here uses it wrongly.
"""

from collections.abc import Generator
from datetime import UTC, datetime

import pytest

from tests.end_to_end.world import tracebacks
from tests.interop.frameworks import CLIENTS, SERVERS, Framework
from tests.interop.pairs import Clients, fault_in
from tests.interop.table import Note, Pair, page
from tests.support.hub import HubProcess, running_hub
from tests.support.peers import PeerProcess

AGENTS_ALONE = {server.peer for server in SERVERS} - {client.peer for client in CLIENTS}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    """A hub without keys, as on a developer's machine: these clients bring none."""
    with running_hub(tmp_path_factory.mktemp("interop") / "data", auth="none") as hub:
        yield hub
    assert tracebacks(hub) == []


@pytest.fixture(scope="module")
def clients() -> Generator[Clients]:
    with Clients() as running:
        yield running


@pytest.mark.full
@pytest.mark.req("X-16")
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_every_client_understands_the_agent_through_the_hub(
    hub: HubProcess, clients: Clients, note_pair: Note, server: Framework
) -> None:
    at_the_hub, alone = dict[str, str](), dict[str, str]()
    with PeerProcess(server.peer, server.program) as agent:
        url = agent.url + server.path
        joined = hub.post("/v1/a2a/registry", {"url": url})
        assert joined.status in (200, 201), joined.body
        for client in CLIENTS:
            alone[client.peer] = clients.fault(client, server, url)
            at_the_hub[client.peer] = clients.fault(client, server, f"{hub.url}/agents/{joined.json['id']}/")
            note_pair(server, client, alone[client.peer], at_the_hub[client.peer])
    assert {peer: fault for peer, fault in at_the_hub.items() if fault} == {}
    if server.peer not in AGENTS_ALONE:
        assert alone[server.peer] == "", "a framework must understand itself"


# -- the table itself


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"text": "You said: hi there"}, ""),
        ({"text": "You said: hi thereYou said: hi there"}, "the answer more than once"),
        ({"text": "hi there"}, "another text than the answer"),
        ({"text": "You said: hi"}, "another text than the answer"),
        ({"text": " "}, "an empty answer"),
        ({"error": "Refused: http://127.0.0.1:4711/x, no"}, "Refused: URL, no"),
    ],
)
def test_an_answer_counts_only_whole_and_once(said: dict[str, str], fault: str) -> None:
    assert fault_in(said, SERVERS[-1], "hi there") == fault


def test_a_page_names_versions_and_faults() -> None:
    found = {
        (server.name, client.name): Pair(server.name, client.name, "Refused: `no`" if server is SERVERS[0] else "", "")
        for server in SERVERS
        for client in CLIENTS
    }
    shown = page(found, datetime(2026, 1, 2, tzinfo=UTC))
    pairs = len(SERVERS) * len(CLIENTS)
    assert f"## Through the hub\n\n{pairs} of {pairs} pairs work." in shown
    assert f"## Without it\n\n{pairs - len(CLIENTS)} of {pairs} pairs work." in shown
    assert f"| {SERVERS[0].name} |" + " no: 1 |" * len(CLIENTS) in shown
    assert "1. `Refused: 'no'`" in shown
    assert "Measured on 2026-01-02" in shown
