"""The base of an agent, seen by one who only looks: that it is there, and where its card is.

A browser gets a page for people, whoever else asks gets JSON.
"""

import msgspec

from dragoman.hub.handle import Hub
from dragoman.model.agent import Agent
from dragoman.model.answers import Card
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import AgentNotFound
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import GetCard
from dragoman.server.pages.agent_html import agent_html
from dragoman.server.pages.html import html_reply, prefers_html
from dragoman.server.pages.page import Page, json_reply


def pages(hub: Hub, *, at_root: bool = False) -> tuple[Page, ...]:
    """The pages below `/agents/{agent}`; with `at_root` also those of the one agent whose base is the root."""

    async def agent_of(request: HttpRequest, caller: Caller, arrival: Arrival) -> Agent:
        answer = await hub.handle(caller, GetCard(agent=request.params["agent"], public=True), arrival)
        assert isinstance(answer, Card)  # noqa: S101 - what is asked for here
        return answer.agent

    async def status(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        agent = await agent_of(request, caller, arrival)
        base = request.url.partition("?")[0].rstrip("/")
        if prefers_html(request):
            return html_reply(agent_html(agent, base))
        shown = json_reply(200, status_of(agent.card.name, f"{base}/.well-known/agent-card"))
        return msgspec.structs.replace(shown, headers={**shown.headers, b"vary": b"accept"})

    async def health(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        return json_reply(200, {"status": "healthy", "agent": (await agent_of(request, caller, arrival)).card.name})

    async def no_base(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        # Clients that join a relative path to a base without its final slash end up here.
        raise AgentNotFound("Write the agent's base with its final slash: /agents/{id}/ and then the card's path.")

    looks = ("/agents/{agent}", "/") if at_root else ("/agents/{agent}",)
    return (
        *(Page(method="GET", path=base, answer=status, strangers=True) for base in looks),
        *(Page(method="GET", path=f"{base.rstrip('/')}/health", answer=health, strangers=True) for base in looks),
        Page(method="GET", path="/agents/.well-known/agent-card.json", answer=no_base, public=True),
        Page(method="GET", path="/agents/.well-known/agent.json", answer=no_base, public=True),
    )


def status_of(name: str, card_path: str) -> dict[str, str]:
    """The status of an agent, or of the hub as one."""
    return {"message": f"{name} is running", "status": "running", "protocol": "A2A", "agent_card_url": card_path}
