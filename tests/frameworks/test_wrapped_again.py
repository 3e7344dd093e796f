"""A conversation goes on in another process: what the hub knows of it is what the framework's object is told."""

import pytest

from tests.frameworks.world import FrameworkProcess, agent_id
from tests.support.hub import HubProcess
from tests.support.run import run

pytestmark = pytest.mark.full


@pytest.mark.parametrize("framework", ["google-adk", "llama-index", "smolagents", "autogen"])
def test_a_conversation_outlives_the_process_that_began_it(framework: str, hub: HubProcess) -> None:
    async def said(process: FrameworkProcess) -> str:
        async with process.client() as client:
            talker = agent_id(framework, "talker")
            return (await client.call(talker, message="hello", conversation_id="outlives")).text

    for number in (1, 2):
        with FrameworkProcess(framework, hub) as process:
            assert run(said(process)) == f"you said hello as number {number}"
