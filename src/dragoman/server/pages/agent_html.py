"""One agent as a page for people: what it is called, what it can do, where its cards are and how it is called."""

from collections.abc import Iterator
from html import escape
from typing import Final

from dragoman.model.agent import Agent, Skill, Trust
from dragoman.server.pages.sheet import code, link, sheet

_CARDS: Final = (
    ("/.well-known/agent-card.json", "A2A 1.0 and 0.3"),
    ("/.well-known/agent-card", "dotted"),
    ("/agent-card.json", "envelope"),
    ("/agentvault/agent-card.json", "AgentVault"),
)

_TRUST: Final = {
    Trust.UNVERIFIED: "card not verified",
    Trust.ENDPOINT: "card served by its own endpoint",
    Trust.SIGNED: "card signed by its maker",
}


def agent_html(agent: Agent, base: str) -> str:
    """The page of an agent whose base is at that path, written without its final slash."""
    card = agent.card
    return sheet(
        card.name,
        (
            f'<h1>{escape(card.name)} <span class="state good">running</span></h1>',
            f'<p class="soft">version {escape(card.version)} · {escape(card.id)} · {_TRUST[agent.trusted]}</p>',
            f"<p>{escape(card.description)}</p>",
            "<h2>Skills</h2>",
            *_skills(card.skills),
            "<h2>Cards</h2>",
            "<ul>",
            *(f"<li>{link(base + path, path)} {escape(name)}</li>" for path, name in _CARDS),
            "</ul>",
            "<h2>Calling it</h2>",
            f"<p>Every JSON-RPC dialect is spoken at {code(f'POST {base}/')}</p>",
        ),
    )


def _skills(skills: tuple[Skill, ...]) -> Iterator[str]:
    if not skills:
        yield "<p>It publishes none: send it a message.</p>"
        return
    yield "<table><tr><th>skill</th><th>what it does</th></tr>"
    for skill in skills:
        yield f"<tr><td>{code(skill.id)}</td><td>{escape(skill.description)}</td></tr>"
    yield "</table>"
