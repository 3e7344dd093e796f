"""Hand a request to an agent that has no address: it is laid into the agent's mailbox, where the agent fetches it.

Only for agents that report by themselves: nothing but the words is kept, and a mailbox has no answer of its own.
"""

from typing import Final

from dragoman.model.agent import Agent, Endpoint
from dragoman.model.errors import AgentUnavailable
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.store import Mailboxes

TAKEN: Final = HttpReply(status=202)  # what a receiver says that has only taken a message


async def mailed(request: HttpRequest, agent: Agent, endpoint: Endpoint, boxes: Mailboxes) -> HttpReply:
    """The mailbox's answer: once the message is on disk, that it was taken. Raises AgentUnavailable."""
    if Feature.REPORTS not in endpoint.features:
        raise AgentUnavailable(f"{agent.id} has no address.", agent_id=agent.id)
    await boxes.put_mail(agent.tenant, agent.id, request.body)
    return TAKEN
