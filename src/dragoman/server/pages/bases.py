"""The base of an agent, seen by one who only looks: that it is there, and where its card is."""

from dragoman.hub.handle import Hub
from dragoman.model.answers import Card
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import AgentNotFound
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import GetCard
from dragoman.server.pages.page import Page, json_reply


def pages(hub: Hub) -> tuple[Page, ...]:
    """The pages below `/agents/{agent}`."""

    async def name_of(request: HttpRequest, caller: Caller, arrival: Arrival) -> str:
        answer = await hub.handle(caller, GetCard(agent=request.params["agent"], public=True), arrival)
        assert isinstance(answer, Card)  # noqa: S101 - what is asked for here
        return answer.agent.card.name

    async def status(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        name = await name_of(request, caller, arrival)
        return json_reply(200, status_of(name, f"/agents/{request.params['agent']}/.well-known/agent-card"))

    async def health(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        return json_reply(200, {"status": "healthy", "agent": await name_of(request, caller, arrival)})

    async def no_base(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        # Clients that join a relative path to a base without its final slash end up here.
        raise AgentNotFound("Write the agent's base with its final slash: /agents/{id}/ and then the card's path.")

    return (
        Page(method="GET", path="/agents/{agent}", answer=status, strangers=True),
        Page(method="GET", path="/agents/{agent}/health", answer=health, strangers=True),
        Page(method="GET", path="/agents/.well-known/agent-card.json", answer=no_base, public=True),
        Page(method="GET", path="/agents/.well-known/agent.json", answer=no_base, public=True),
    )


def status_of(name: str, card_path: str) -> dict[str, str]:
    """The status of an agent, or of the hub as one."""
    return {"message": f"{name} is running", "status": "running", "protocol": "A2A", "agent_card_url": card_path}
