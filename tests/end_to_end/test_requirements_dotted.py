"""What one who only looks sees at the hub's root and at an agent's base."""

import pytest

from tests.end_to_end.world import fresh, join
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent


@pytest.mark.req("D-15")
@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "application/json, text/html;q=0.5"])
def test_the_root_and_an_agents_base_tell_how_they_are(hub: HubProcess, agent: PlatformAgent, accept: str) -> None:
    name = join(hub, agent, name=fresh("Echo"))["id"]
    card = hub.get(f"/v1/a2a/agents/{name}/card").json
    for base in ("", f"/agents/{name}"):
        for path in (f"{base}/", base or "/"):
            reply = hub.get(path, {"Accept": accept, "Authorization": ""})
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            status = reply.json
            assert (status["status"], status["protocol"]) == ("running", "A2A")
            assert status["message"].startswith(f"{card['name'] if base else 'Dragoman'} is running")
            assert hub.get(status["agent_card_url"], {"Authorization": ""}).json["url"].endswith(f"{base}/")
        health = hub.get(f"{base}/health", {"Accept": accept, "Authorization": ""})
        assert (health.status, health.json["status"]) == (200, "healthy")
        assert health.json["agent"] == (card["name"] if base else "dragoman")


@pytest.mark.req("D-15")
def test_an_agent_that_is_not_there_has_neither(hub: HubProcess) -> None:
    for path in ("/agents/nobody", "/agents/nobody/", "/agents/nobody/health"):
        assert hub.get(path).status == 404
