"""Loops are refused by the chain that the hub itself knows."""

import msgspec
import pytest

from dragoman.hub.chain import MAX_DEPTH, chain_of, is_believed
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


def test_whoever_belongs_to_no_call_begins_a_chain() -> None:
    assert chain_of(B_CALLS, agent("a"), None) == ("b",)


def test_a_chain_has_a_longest_length_and_is_shown() -> None:
    deep = msgspec.structs.replace(TASK, agent_id="b", chain=tuple(f"a{n}" for n in range(MAX_DEPTH)))
    with pytest.raises(CallLoop) as caught:
        chain_of(B_CALLS, agent("z"), deep)
    assert caught.value.chain == [*deep.chain, "b", "z"]
    assert chain_of(B_CALLS, agent("z"), deep, MAX_DEPTH + 1) == (*deep.chain, "b")


def test_a_call_belongs_to_the_one_it_names_only_if_its_chain_goes_on_from_there() -> None:
    below = msgspec.structs.replace(TASK, id="t2", agent_id="c", chain=("a", "b"), parent_id=A_TO_B.id)
    assert is_believed(A_TO_B, below)
    assert not is_believed(A_TO_B, msgspec.structs.replace(below, chain=("x",)))
    assert not is_believed(A_TO_B, msgspec.structs.replace(below, tenant="other"))
