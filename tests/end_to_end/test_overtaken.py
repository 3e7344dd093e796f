"""An agent whose reports overtake its own word that it took the task: each counts as what it is."""

from typing import Any

import pytest

from tests.end_to_end.every_dialect import Everyone, Known
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.speaking import QUESTION, Content


def hasty(everyone: Everyone) -> Known:
    """An agent that reports before it answers the assignment."""
    known = everyone.another("envelope")
    assert isinstance(known.stub, EnvelopeAgent)
    known.stub.hasty = True
    return known


@pytest.mark.req("E-24")
def test_that_a_task_was_sent_is_on_record_though_its_end_came_first(everyone: Everyone) -> None:
    hub, agent = everyone.hub, hasty(everyone)
    assert everyone.caller("envelope").call(agent.id, Content(text="at once")).state == "completed"
    (call,) = hub.get(f"/v1/calls?agent={agent.id}").json["items"]
    events: list[dict[str, Any]] = hub.get(f"/v1/calls/{call['id']}/events").json["items"]
    assert [event["event"] for event in events].count("sent") == 1


@pytest.mark.parametrize("slug", ["agentvault", "platform", "a2a-1.0"])
def test_a_question_stands_though_the_word_that_it_works_came_after_it(everyone: Everyone, slug: str) -> None:
    agent, caller = hasty(everyone), everyone.caller(slug)
    first = caller.call(agent.id, Content(text="ask"))
    assert QUESTION in (first.message or ""), first
