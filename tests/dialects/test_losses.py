"""What a platform's caller sees of states that the platform has no word for, and of its own card.

That nothing undeclared gets lost is shown for every dialect in test_round_trips.py and test_card_round_trips.py.
"""

import json
from typing import Any

import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.dialects.platform.answers import AWAITING, STATES
from dragoman.model.http import HttpRequest
from dragoman.model.states import FINAL, TaskState
from tests.dialects.goldens import AT, HUB, agent_of, place_of, task_of
from tests.dialects.manual import page_of, section_of, table_of

PLATFORM = DIALECTS["platform"]
PLAIN = {"queued": "submitted", "running": "working", "completed": "completed", "failed": "failed"} | {
    "cancelled": "canceled"
}


def _shown(state: TaskState) -> dict[str, Any]:
    assert PLATFORM.read is not None
    asked = HttpRequest(method="GET", url="/", id="1", at=AT, route="status", params={"call": "x"}, hub=HUB)
    changes: dict[str, Any] = {"state": state.value}
    if state in FINAL:
        changes["ended_at"] = "2026-01-12T10:00:01Z"
    shown: dict[str, Any] = json.loads(PLATFORM.read(asked).reply(task_of(changes)).body)
    return shown


def test_every_state_has_a_word_and_two_share_one_only_where_that_is_declared() -> None:
    assert set(STATES) == set(TaskState)
    declared = {loss.facet.removeprefix("state:") for loss in PLATFORM.losses if loss.facet.startswith("state:")}
    assert {state.value for state, word in STATES.items() if PLAIN[word] != state.value} == declared


@pytest.mark.parametrize("state", list(TaskState))
def test_a_state_that_is_lost_leaves_the_trace_that_was_declared(state: TaskState) -> None:
    shown = _shown(state)
    assert shown["status"] == STATES[state]
    assert shown.get("awaiting") == AWAITING.get(state)
    assert ("error" in shown) is (STATES[state] == "failed")
    assert ("result" in shown) is (STATES[state] == "completed")
    if state is TaskState.REJECTED:
        assert shown["error"]["details"]["reason"] == "rejected"


def test_a_platform_card_keeps_every_member_on_its_way_through_the_hub() -> None:
    card = {
        "$schema": "https://agentplatform.com/schemas/agent-card/v1",
        "id": "agt_x",
        "name": "X",
        "description": "d",
        "version": "1",
        "skills": [{"name": "s", "description": "d", "unknown": [1, 2**70]}],
        "endpoint": "http://agent.test/",
        "vendor": {"anything": None, "floats": 1.5},
    }
    assert PLATFORM.write_card is not None
    read = PLATFORM.read_card(card)
    shown = PLATFORM.write_card(agent_of(read), place_of(read))
    assert shown == {**card, "endpoint": f"{HUB}/v1/agents/agt_x/a2a"}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)
def test_the_manual_says_of_each_dialect_exactly_what_it_declares(dialect: Dialect) -> None:
    assert section_of(page_of(dialect).read_text()) == table_of(dialect), "python -m tests.dialects.manual"
