"""An agent of the published SDK, wrapped by its URL, and called at a hub in three dialects."""

from collections.abc import Callable, Iterator

import pytest

from dragoman import Agent
from dragoman.sdk.testing.hubs import ThreadedHub, hub_in_thread
from tests.frameworks.world import CALLERS
from tests.support.peers import echo_agent
from tests.support.speaking import Caller, Content

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def hub() -> Iterator[ThreadedHub]:
    with echo_agent() as peer, hub_in_thread() as running:
        running.add(Agent.wrap(peer.url, id="agt_far_away"))
        yield running


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.slug)
def test_an_agent_of_the_published_sdk_is_called_in_every_dialect(
    caller: Callable[[str, str], Caller], hub: ThreadedHub
) -> None:
    seen = caller(hub.url, "").call("agt_far_away", Content(text="hello, wörld"))
    assert seen.state == "completed", seen
    assert "".join(each.text or "" for each in seen.content) == "hello, wörld"
