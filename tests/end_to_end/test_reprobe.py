"""An agent that starts to speak another dialect is looked at again by the hub itself, and understood."""

from tests.end_to_end.bare_agents import bare_agent
from tests.end_to_end.test_probe import call, endpoint_of, speaks_03, speaks_10
from tests.end_to_end.world import eventually, fresh
from tests.support.hub import HubProcess


def test_after_three_calls_that_it_does_not_understand_an_agent_is_looked_at_again(hub: HubProcess) -> None:
    with bare_agent(speaks_10) as bare:
        agent = hub.register(None, url=bare.url, id=fresh())["id"]
        bare.answer = speaks_03
        for _ in range(2):
            assert hub.call("default", {"text": "hi"}, agent).status == 502
        assert endpoint_of(hub, agent) == "a2a-1.0"
        assert hub.call("default", {"text": "hi"}, agent).status == 502
        eventually(lambda: endpoint_of(hub, agent) == "a2a-0.3" or None, "the hub has looked again")
        assert call(hub, agent) == "hello"
