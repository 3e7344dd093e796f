"""Agent cards for the tests of every dialect: real ones of each, made-up ones of none, and how two differ."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from dragoman.dialects.dialect import Dialect
from dragoman.model.agent import AgentCard, Extension, Provider, RateLimits, Skill
from tests.dialects.goldens import FOLDER, agent_of, parted, place_of

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
# Where an agent is called, how one proves who one is, and what is offered beside answers: that is the hub's to say.
CARD_FIELDS: Final = (
    *("id", "description", "version", "limits", "scopes_required", "memory", "long_running", "signed", "extended"),
    *("default_skill", "pricing", "labels", "tags", "input_modes", "output_modes", "extensions", "provider", "links"),
    *("keys", "aliases", "metadata"),
)
SKILL_FIELDS: Final = (
    *("name", "description", "input_schema", "output_schema", "input_modes", "output_modes", "tags", "examples"),
    *("scopes", "idempotent", "signed", "metadata"),
)

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
OBJECTS = st.dictionaries(WORDS, st.integers() | WORDS | st.none() | st.lists(st.integers(), max_size=2), max_size=2)
MODES = st.lists(st.sampled_from(["text/plain", "application/json", "image/png"]), unique=True, max_size=2).map(
    lambda found: tuple(found)
)


def _tuple(each: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(each, min_size=least, max_size=2, unique_by=str).map(lambda found: tuple(found))


SKILLS = st.builds(
    Skill,
    id=NAMES,
    name=WORDS,
    description=WORDS,
    input_schema=st.none() | st.just({"type": "object", "properties": {"q": {"type": "string"}}}),
    output_schema=st.none() | st.just({"type": "object", "required": ["a"]}),
    input_modes=MODES,
    output_modes=MODES,
    tags=_tuple(WORDS),
    examples=_tuple(WORDS | OBJECTS),
    scopes=_tuple(WORDS),
    idempotent=st.booleans(),
    signed=st.booleans(),
    metadata=OBJECTS.map(lambda each: each or None),
)
CARDS = st.builds(
    AgentCard,
    id=NAMES,
    name=WORDS,
    description=WORDS,
    version=st.from_regex(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}", fullmatch=True),
    skills=st.lists(SKILLS, min_size=1, max_size=3, unique_by=lambda skill: skill.id).map(lambda found: tuple(found)),
    scopes_required=_tuple(WORDS),
    limits=st.builds(
        RateLimits,
        requests_per_minute=st.none() | st.integers(1, 10**9),
        requests_per_hour=st.none() | st.integers(1, 10**9),
        concurrent_requests=st.none() | st.integers(1, 10**9),
    ),
    memory=st.booleans(),
    long_running=st.booleans(),
    signed=st.booleans(),
    extended=st.booleans(),
    default_skill=st.none() | NAMES,
    pricing=st.none() | st.just({"per_call": 1}),
    labels=_tuple(NAMES),
    tags=_tuple(WORDS),
    input_modes=MODES,
    output_modes=MODES,
    extensions=_tuple(
        st.builds(
            Extension,
            uri=st.just("urn:x"),
            description=st.none() | WORDS,
            required=st.booleans(),
            params=st.none() | st.just({"a": 1}),
        )
    ),
    provider=st.none()
    | st.builds(
        Provider, name=WORDS, url=st.none() | st.just("https://x.test"), contact=st.none() | st.just("me@x.test")
    ),
    links=st.dictionaries(
        st.sampled_from(["documentation", "icon", "privacy", "terms"]), st.just("https://x.test/d"), max_size=2
    ).map(lambda found: found or None),
    keys=_tuple(st.just({"kty": "OKP"})),
    aliases=_tuple(NAMES),
    metadata=OBJECTS.map(lambda each: each or None),
)


def real_cards(dialect: Dialect) -> list[dict[str, Any]]:
    """The cards of a dialect's own examples and golden files that can be used."""
    found = [json.loads(path.read_text()) for path in sorted((EXAMPLES / dialect.name).glob("agent-card*.json"))]
    for path in sorted((FOLDER / dialect.name).glob("card-*.txt")):
        given, expected = parted(path)
        if not expected.startswith("BadParams"):
            found.append(json.loads(given))
    assert found, dialect.slug
    return found


def written(dialect: Dialect, card: AgentCard) -> Any:
    """The card as the hub serves it in a dialect, over JSON."""
    assert dialect.write_card is not None
    return msgspec.json.decode(msgspec.json.encode(dialect.write_card(agent_of(card), place_of(card))))


def differences_of_cards(sent: AgentCard, got: AgentCard) -> set[str]:
    """What is not the same on two cards: `card:` and the field, `skill:` and the field."""
    found = {f"card:{name}" for name in CARD_FIELDS if getattr(sent, name) != getattr(got, name)}
    again = {skill.id: skill for skill in got.skills}
    for skill in sent.skills:
        other = again.get(skill.id, Skill(id="", name=""))
        found |= {f"skill:{name}" for name in SKILL_FIELDS if getattr(skill, name) != getattr(other, name)}
    return found
