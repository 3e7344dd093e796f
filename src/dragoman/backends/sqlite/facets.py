"""What an agent is found by: facets (kind, value), words, and the shelves on which searches look.

One facet is looked up in `agent_facet`. Several of them, and words, are looked up in a full-text index, where each
facet is a word of its own and the number of a row tells how good the agent is.

    shelf 0  active or unreachable      shelf 2  those of 0 that anyone may see (open, not private)
    shelf 1  paused or quarantined      shelf 3  those of 1 that anyone may see

A removed agent stands on no shelf. Pure; search.py and agents.py do the reading and writing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from dragoman.model.agent import Agent, AgentCard, AgentStatus

Facet = tuple[str, str]

ALL: Final[Facet] = ("all", "")
FINDABLE: Final = 0
PAUSED: Final = 1
PUBLIC: Final = 2  # added to either
MAX_WORDS: Final = 16
NOT_FOUND: Final = frozenset({AgentStatus.PAUSED, AgentStatus.QUARANTINED})  # unless they are asked for

BEST: Final = 5.0
RANK_SHIFT: Final = 40  # an agent's number is below that many bits
WORST_RANK: Final = 8191
MOST_ROW: Final = WORST_RANK + 1 << RANK_SHIFT

_WORD: Final = re.compile(r"\w+")


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for at once: agents of a tenant on these shelves that have all of it, and one of `any_of`."""

    tenant: str
    shelves: Sequence[int]
    all_of: Sequence[Facet]
    any_of: Sequence[Facet]
    without: Facet | None
    words: Sequence[str]


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


def found_by(agent: Agent) -> str:
    """The words of the index under which an agent's places and facets are."""
    places = [place(agent.tenant, shelf) for shelf in shelves(agent)]
    return " ".join((*places, *(token(facet) for facet in facets(agent) if facet != ALL)))


def place(tenant: str, shelf: int) -> str:
    """A shelf of a tenant as one word of the index; it ends in a digit, so stemming leaves it alone."""
    return f"t{tenant.encode().hex()}x{shelf}"


def token(facet: Facet) -> str:
    """A facet as one word of the index; no place is called so."""
    kind, value = facet
    return f"{kind}x{value.encode().hex()}x0"


def row_of(rating: float, number: int) -> int:
    """Where an agent stands in the index: the better the rating the lower, then in the order of numbers."""
    return _rank(rating) << RANK_SHIFT | number


def first_row(rating: float, *, beyond: bool = False) -> int:
    """Before the first place of agents of that rating; `beyond`: of those whose rating is worse."""
    return _rank(rating) + int(beyond) << RANK_SHIFT


def _rank(rating: float) -> int:
    # To three decimals: ratings have one.
    return min(max(int((BEST - rating) * 1000 + 0.5), 0), WORST_RANK)


def words_of(text: str) -> list[str]:
    """The words that are asked for."""
    return _WORD.findall(text)[:MAX_WORDS]


def expression(looked: Looked) -> str:
    """The index's own expression for what is looked for."""
    places = " OR ".join(f'"{place(looked.tenant, shelf)}"' for shelf in looked.shelves)
    needed = [f"({places})", *(f'"{token(facet)}"' for facet in looked.all_of)]
    if looked.any_of:
        needed.append("({})".format(" OR ".join(f'"{token(facet)}"' for facet in looked.any_of)))
    found = f"found_by : ({' AND '.join(needed)})"
    if looked.words:
        # Quoted, so that no word of a caller is read as an operator.
        each = " AND ".join(f'"{word}"' for word in looked.words)
        found = f"{found} AND words : ({each})"
    return found if looked.without is None else f'({found}) NOT found_by : "{token(looked.without)}"'
