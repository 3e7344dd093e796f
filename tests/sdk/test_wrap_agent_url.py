"""Agents somewhere else, wrapped by their URL: called in the dialect they speak, with questions, streams and failures
passed on.
"""

import asyncio
from collections.abc import Iterator

import pytest

from dragoman import A2AClient, Agent
from dragoman.dialects import DIALECTS
from dragoman.errors import AgentError, AgentUnavailable, BadParams
from tests.support.matrix import agent_of
from tests.support.ports import free_port
from tests.support.run import run
from tests.support.speaking import FAILURE, QUESTION, StubAgent
from tests.support.telling import FIRST, SECOND, telling_agent

# The others show no card of their own: nobody could know their skills.
CARDED = ("a2a-1.0", "a2a-0.3", "agentvault", "dotted")


@pytest.fixture(scope="module", params=CARDED)
def stub(request: pytest.FixtureRequest) -> Iterator[StubAgent]:
    with agent_of(DIALECTS[request.param])() as stub:
        yield stub


def test_its_card_is_read_once_and_its_skills_are_offered(stub: StubAgent) -> None:
    agent = Agent.wrap(stub.url)
    assert "echo" in agent.skills
    tried = run(agent.test.call("echo", {"text": "hello, wörld"}))
    assert tried.result == "hello, wörld"
    looked = [path for method, path, _, _ in stub.requests if method == "GET"]
    assert looked
