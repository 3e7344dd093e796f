"""`GET /`: that the hub runs, as JSON for programs and as a page for people.

The page shows agents to whoever may see them, and says how to begin. It has no script and fetches nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final
from urllib.parse import quote

import msgspec

from dragoman import __version__
from dragoman.hub.handle import Hub
from dragoman.model.agent import Agent, AgentStatus, Via
from dragoman.model.answers import AgentPage
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import NotAuthenticated
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.operations import Discover
from dragoman.server.pages.bases import status_of
from dragoman.server.pages.html import html_reply, prefers_html
from dragoman.server.pages.page import Page, json_reply
from dragoman.server.pages.sheet import block, code, link, sheet

MOST_AGENTS: Final = 100
MOST_SKILLS: Final = 12
PURPOSE: Final = "Agents call each other here, whatever protocol each speaks."
USUAL: Final = ("http://localhost:8700", "http://127.0.0.1:8700")  # where commands look by themselves
DEMO_SKILL: Final = "brief"
_MADE: Final = "dragoman new my-agent\ndragoman run my-agent/agent.py"


def pages(hub: Hub, draining: Callable[[], bool]) -> tuple[Page, ...]:
    """The page at the root."""

    async def root(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        if not prefers_html(request):
            status = json_reply(200, status_json(request.hub, draining=draining()))
            return msgspec.structs.replace(status, headers={**status.headers, b"vary": b"accept"})
        try:
            seen = await hub.handle(caller, Discover(limit=MOST_AGENTS), arrival)
        except NotAuthenticated:
            return html_reply(status_html(request.hub, None, draining=draining()))
        assert isinstance(seen, AgentPage)  # noqa: S101 - what a search answers
        return html_reply(status_html(request.hub, seen.agents, draining=draining(), total=seen.total))

    return (Page(method="GET", path="/", answer=root, strangers=True),)


def status_json(hub_url: str, *, draining: bool) -> JsonObject:
    """The status for programs."""
    return {
        **status_of("Dragoman", "/.well-known/agent-card"),
        "name": "dragoman",
        "version": __version__,
        "status": "draining" if draining else "running",
        "message": f"Dragoman is running: {PURPOSE[0].lower()}{PURPOSE[1:]}",
        "links": {"api": f"{hub_url}/openapi.json", "docs": f"{hub_url}/docs", "ready": f"{hub_url}/readyz"},
    }


def status_html(hub_url: str, agents: Sequence[Agent] | None, *, draining: bool, total: int = 0) -> str:
    """The status for people; without agents for whoever may not see them."""
    state = "draining" if draining else "running"
    body = [
        f'<h1>Dragoman <span class="state{"" if draining else " good"}">{state}</span></h1>',
        f'<p class="soft">version {escape(__version__)} · {escape(hub_url)}</p>',
        f"<p>{PURPOSE}</p>",
        f"<nav>{link('/docs', 'API')}{link('/llms.txt', 'API as plain text')}"
        f"{link('/openapi.json', 'OpenAPI')}{link('/readyz', 'readiness')}</nav>",
        "<h2>Agents</h2>",
        *(_agents(agents, total) if agents is not None else _closed()),
        "<h2>Try</h2>",
        *_commands(hub_url, agents),
    ]
    return sheet("Dragoman", body)


def _closed() -> Iterator[str]:
    yield "<p>This hub shows its agents to callers with a token:</p>"
    yield block("export DRAGOMAN_TOKEN=…\ndragoman agents ls")


def _agents(agents: Sequence[Agent], total: int) -> Iterator[str]:
    if not agents:
        yield "<p>There is none yet. Make one, or register one by its URL.</p>"
        return
    yield '<div class="wide"><table><tr><th>agent</th><th>dialect</th><th>state</th><th>skills</th></tr>'
    for agent in agents:
        yield (
            f"<tr><td>{link(_base(agent), agent.id)}"
            f'<br><span class="soft">{escape(agent.card.description or agent.card.name)}</span></td>'
            f"<td>{escape(_dialect(agent))}</td><td>{_state(agent)}</td><td>{_skills(agent)}</td></tr>"
        )
    yield "</table></div>"
    if total > len(agents):
        yield f'<p class="soft">{total - len(agents)} more: {code("dragoman agents ls")}</p>'


def _base(agent: Agent) -> str:
    return f"/agents/{quote(agent.id, safe='')}/"


def _dialect(agent: Agent) -> str:
    return agent.card.endpoints[0].dialect if agent.card.endpoints else "none"


def _state(agent: Agent) -> str:
    active = agent.status is AgentStatus.ACTIVE
    connected = active and any(each.via is Via.CONNECTED for each in agent.card.endpoints)
    return f'<span class="state{" good" if active else ""}">{"connected" if connected else agent.status.value}</span>'


def _skills(agent: Agent) -> str:
    shown = [code(skill.id) for skill in agent.card.skills[:MOST_SKILLS]]
    more = len(agent.card.skills) - len(shown)
    return " ".join([*shown, f'<span class="soft">and {more} more</span>'] if more else shown)


def _commands(hub_url: str, agents: Sequence[Agent] | None) -> Iterator[str]:
    if hub_url not in USUAL:
        yield "<p>Tell the commands where this hub is:</p>"
        yield block(f"export DRAGOMAN_URL={hub_url}")
    if agents and any(agent.card.skill(DEMO_SKILL) for agent in agents):
        yield "<p>One call through three dialects, with the demo agents:</p>"
        yield block(f"dragoman call {DEMO_SKILL} --input topic=tides --stream")
    yield "<p>An agent of your own, in six lines of Python:</p>"
    yield block(_MADE)
    yield "<p>An agent that runs already, whatever it speaks:</p>"
    yield block("dragoman register http://HOST:PORT")
