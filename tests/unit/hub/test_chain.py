"""Loops are refused by the chain that the hub itself knows."""

import msgspec
import pytest

from dragoman.hub.chain import MAX_DEPTH, chain_of
from dragoman.model.agent import Agent, AgentCard
from dragoman.model.call import Caller
from dragoman.model.errors import CallLoop
from dragoman.model.http import EPOCH
from tests.unit.model.test_lifecycle import TASK


def agent(name: str) -> Agent:
    return Agent(
        card=AgentCard(id=name, name=name),
        uuid=name,
        tenant="default",
        owner_id="o",
        registered_at=EPOCH,
        updated_at=EPOCH,
    )


B_CALLS = Caller(tenant="default", id="b", agent_id="b")
A_TO_B = msgspec.structs.replace(TASK, agent_id="b", chain=("a",))


def test_an_agent_that_waits_is_not_called_again() -> None:
    with pytest.raises(CallLoop) as caught:
        chain_of(B_CALLS, agent("a"), A_TO_B)
    assert caught.value.details["chain"] == ["a", "b", "a"]
    assert chain_of(B_CALLS, agent("c"), A_TO_B) == ("a", "b")


def test_an_agent_does_not_call_itself() -> None:
    with pytest.raises(CallLoop):
        chain_of(B_CALLS, agent("b"), None)


def test_a_parent_that_was_given_to_somebody_else_does_not_count() -> None:
    stranger = Caller(tenant="default", id="x", agent_id="x")
    assert chain_of(stranger, agent("a"), A_TO_B) == ("x",)


def test_a_chain_has_a_longest_length() -> None:
    deep = msgspec.structs.replace(TASK, agent_id="b", chain=tuple(f"a{n}" for n in range(MAX_DEPTH)))
    with pytest.raises(CallLoop):
        chain_of(B_CALLS, agent("z"), deep)
