"""The pytest fixture `dragoman_hub`: a whole hub for one test, in a thread of its own.

def test_my_agent(dragoman_hub):
    dragoman_hub.add(agent)
    assert dragoman_hub.client().sync.call(agent.id, "web_search", {"query": "tides"})["results"]

Tests that are coroutines may use `async with testing.hub()` instead: then handlers run in the test's own loop.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from dragoman.sdk.testing.hubs import ThreadedHub


@pytest.fixture
def dragoman_hub() -> "Generator[ThreadedHub]":
    """A hub that this test has to itself; needs `dragoman[hub]`."""
    # Loaded with every pytest of an environment that has dragoman: nothing is imported before it is asked for.
    from dragoman.sdk.testing.hubs import hub_in_thread

    with hub_in_thread() as hub:
        yield hub
