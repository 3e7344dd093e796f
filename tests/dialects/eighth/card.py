"""The eighth dialect's card: `{"eighth": 1, "id", "name", "about", "version", "skills", "at"}`."""

from typing import Annotated, Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.jsonrpc import bad_field
from dragoman.dialects.text import shown_text
from dragoman.model.agent import Agent, AgentCard, Endpoint, Original, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import JsonObject

SLUG: Final = "eighth"
FEATURES: Final = frozenset(
    {Feature.ANSWERS, Feature.GET, Feature.CANCEL, Feature.CONTINUE, Feature.PARTS, Feature.INLINE}
)
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class EighthCard(msgspec.Struct, frozen=True, kw_only=True):
    """The card's members."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    name: Word
    at: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    skills: Annotated[list[Word], msgspec.Meta(min_length=1, max_length=100)]
    about: str = ""
    version: Word = "1.0.0"


def owns_card(card: JsonObject) -> bool:
    """Whether a card has this shape."""
    return "eighth" in card


def read_card(card: JsonObject) -> AgentCard:
    """The canonical card. Raises BadParams."""
    try:
        read = msgspec.convert(card, EighthCard)
    except msgspec.ValidationError as error:
        problem = bad_field(error, "agent_card")
    else:
        return AgentCard(
            id=read.id,
            name=shown_text(read.name, 128),
            description=shown_text(read.about, 4096),
            version=read.version,
            skills=tuple(Skill(id=word, name=word) for word in read.skills),
            endpoints=(Endpoint(dialect=SLUG, url=read.at, features=FEATURES),),
            original=Original(dialect=SLUG, body=msgspec.json.encode(card)),
        )
    raise BadParams(problem.message, **problem.details)


def write_card(agent: Agent, place: Place) -> JsonObject:
    """The card as the hub shows it."""
    card = agent.card
    return {
        "eighth": 1,
        "id": card.id,
        "name": card.name,
        "about": card.description,
        "version": card.version,
        "skills": [skill.id for skill in card.skills],
        "at": f"{place.hub_url}/eighth",
    }
