"""The chain of agents behind a call: known from the call it belongs to, never from the wire. A circle is refused."""

from typing import Final

from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.errors import CallLoop
from dragoman.model.task import Task

MAX_DEPTH: Final = 16


def chain_of(caller: Caller, agent: Agent, parent: Task | None, max_depth: int = MAX_DEPTH) -> tuple[str, ...]:
    """The agents that wait for this call, oldest first; `parent` is the call that it belongs to.

    Raises CallLoop where it would come back to one of them or grow too long.
    """
    chain: tuple[str, ...] = ()
    if parent is not None:
        chain = (*parent.chain, parent.agent_id)
    elif caller.agent_id is not None:
        chain = (caller.agent_id,)
    return without_loop(chain, agent, max_depth)


def without_loop(chain: tuple[str, ...], agent: Agent, max_depth: int = MAX_DEPTH) -> tuple[str, ...]:
    """The chain of a call to this agent. Raises CallLoop, showing the chain."""
    if chain and agent.id in chain:
        shown = " → ".join((*chain, agent.id))
        raise CallLoop(
            f"{shown} is a loop; a call may not come back to an agent that waits for it. Call another, or answer.",
            chain=[*chain, agent.id],
        )
    if len(chain) > max_depth:
        shown = " → ".join((*chain, agent.id))
        raise CallLoop(
            f"The chain of calls is deeper than {max_depth}: {shown}. Answer instead of calling on.",
            chain=[*chain, agent.id],
            max_depth=max_depth,
        )
    return chain


def is_believed(parent: Task, child: Task) -> bool:
    """Whether a call belongs to the one that it names: its chain goes on from there, or it is one of its steps."""
    if child.tenant != parent.tenant:
        return False
    if parent.asked.then:
        return child.caller_id == parent.caller_id and child.id.startswith(f"{parent.id}-")
    return child.chain == (*parent.chain, parent.agent_id)
