"""The chain of agents behind a call: known from its parent, never from the wire. A circle is refused."""

from typing import Final

from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.errors import CallLoop
from dragoman.model.task import Task

MAX_DEPTH: Final = 16


def chain_of(caller: Caller, agent: Agent, parent: Task | None) -> tuple[str, ...]:
    """The agents that wait for this call, oldest first.

    Raises CallLoop where it would come back to one of them or grow too long. A parent counts only if the caller is
    the agent that it was given to; a trusted operator's word is taken, to find loops.
    """
    chain: tuple[str, ...] = ()
    if parent is not None and (parent.agent_id == caller.agent_id or caller.admin):
        chain = (*parent.chain, parent.agent_id)
    elif caller.agent_id is not None:
        chain = (caller.agent_id,)
    return without_loop(chain, agent)


def without_loop(chain: tuple[str, ...], agent: Agent) -> tuple[str, ...]:
    """The chain of a call to this agent. Raises CallLoop, showing the chain."""
    if agent.id in chain:
        shown = " → ".join((*chain, agent.id))
        raise CallLoop(
            f"{shown} is a loop; a call may not come back to an agent that waits for it.", chain=[*chain, agent.id]
        )
    if len(chain) > MAX_DEPTH:
        raise CallLoop(f"The chain of calls is deeper than {MAX_DEPTH}.", chain=list(chain))
    return chain
