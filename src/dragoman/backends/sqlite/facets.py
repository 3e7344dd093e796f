"""What an agent is found by: facets (kind, value), words, and the shelves on which searches look.

    shelf 0  active or unreachable      shelf 2  those of 0 that anyone may see (open, not private)
    shelf 1  paused or quarantined      shelf 3  those of 1 that anyone may see

A removed agent stands on no shelf. Pure; search.py and agents.py do the reading and writing.
"""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.model.agent import Agent, AgentCard, AgentStatus

Facet = tuple[str, str]

ALL: Final[Facet] = ("all", "")
FINDABLE: Final = 0
PAUSED: Final = 1
PUBLIC: Final = 2  # added to either
MAX_WORDS: Final = 16
NOT_FOUND: Final = frozenset({AgentStatus.PAUSED, AgentStatus.QUARANTINED})  # unless they are asked for

_WORD: Final = re.compile(r"\w+")


def shelves(agent: Agent) -> tuple[int, ...]:
    """Where an agent stands."""
    if agent.status is AgentStatus.REMOVED:
        return ()
    shelf = PAUSED if agent.status in NOT_FOUND else FINDABLE
    return (shelf, shelf + PUBLIC) if agent.open and not agent.private else (shelf,)


def facets(agent: Agent) -> list[Facet]:
    """All an agent is found by, each once."""
    return sorted({ALL, ("owner", agent.owner_id), ("status", agent.status.value), *_card_facets(agent)})


def _card_facets(agent: Agent) -> Iterator[Facet]:
    card = agent.card
    for skill in card.skills:
        yield ("skill", skill.id)
        yield ("skill", skill.name)
        for tag in skill.tags:
            yield ("tag", tag)
    for tag in (*card.tags, *agent.tags):
        yield ("tag", tag)
    for endpoint in card.endpoints:
        yield ("dialect", endpoint.dialect)
    for capability in capabilities(card):
        yield ("capability", capability)


def capabilities(card: AgentCard) -> Iterator[str]:
    """The card's flags that are set, by name, and its free words."""
    flags = {
        "streaming": card.streaming,
        "push": card.push,
        "memory": card.memory,
        "long_running": card.long_running,
        "signed": card.signed,
        "extended": card.extended,
    }
    yield from (name for name, is_set in flags.items() if is_set)
    yield from card.labels


def words(agent: Agent) -> str:
    """The text that a free search looks through."""
    card = agent.card
    said = [card.id, card.name, card.description, *card.tags, *agent.tags, *card.labels, *agent.aliases]
    for skill in card.skills:
        said += [skill.id, skill.name, skill.description, *skill.tags]
    return "\n".join(said)


def place(tenant: str, shelf: int) -> str:
    """A shelf of a tenant as one word of the text index; it ends in a digit, so stemming leaves it alone."""
    return f"t{tenant.encode().hex()}x{shelf}"


def match_expression(text: str, tenant: str, shelf: int) -> str | None:
    """The text index's own expression for "all these words on that shelf"; None if there is no word in the text."""
    asked = _WORD.findall(text)[:MAX_WORDS]
    if not asked:
        return None
    # Quoted, so that no word of a caller is read as an operator.
    each = " AND ".join(f'"{word}"' for word in asked)
    return f'place : "{place(tenant, shelf)}" AND words : ({each})'
