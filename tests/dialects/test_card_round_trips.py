"""One card in, every dialect's card out: what a dialect can express is not lost on the way through it.

A card that came in the dialect in which it is shown keeps every member. Of any other card it keeps what it has a place
for, and never loses what all have: the name, the skills' ids, and (save in a record of five members) description and
version.
"""

from typing import Any, Final

import pytest
from hypothesis import given

from dragoman.dialects import DIALECTS
from dragoman.dialects.cards import read_any_card
from dragoman.dialects.dialect import Dialect, Loss
from dragoman.model.agent import AgentCard, Extension, Provider, RateLimits, Skill
from tests.dialects.cards import CARDS, differences_of_cards, real_cards, written

EVERY = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.slug)
REAL: Final = [(dialect, card) for dialect in DIALECTS.values() for card in real_cards(dialect)]
EVERY_CARD = pytest.mark.parametrize(("dialect", "card"), REAL, ids=lambda value: getattr(value, "slug", "card"))
LOSSES: Final = [
    (dialect, loss)
    for dialect in DIALECTS.values()
    for loss in dialect.losses
    if loss.facet.startswith(("card:", "skill:"))
]
EVERY_LOSS = pytest.mark.parametrize(
    ("dialect", "loss"), LOSSES, ids=lambda value: value.slug if isinstance(value, Dialect) else value.facet
)
FULL: Final = AgentCard(
    id="full",
    name="Full",
    description="Has everything",
    version="2.1-beta",
    skills=(
        Skill(
            id="s",
            name="S",
            description="Does s",
            input_schema={"type": "object", "title": "in"},
            output_schema={"type": "object", "title": "out"},
            input_modes=("image/png",),
            output_modes=("image/png",),
            tags=("t",),
            examples=("e", {"e": 1}),
            scopes=("x",),
            idempotent=True,
            signed=True,
            metadata={"m": 1},
        ),
    ),
    scopes_required=("x",),
    limits=RateLimits(requests_per_minute=1, requests_per_hour=2, concurrent_requests=3),
    memory=True,
    long_running=True,
    signed=True,
    extended=True,
    default_skill="s",
    pricing={"per_call": 1},
    labels=("l",),
    tags=("t",),
    input_modes=("image/png",),
    output_modes=("image/png",),
    extensions=(Extension(uri="urn:x"),),
    provider=Provider(name="P", url="https://p.test", contact="me@p.test"),
    links={"documentation": "https://p.test/d", "icon": "https://p.test/i", "privacy": "https://p.test/p"},
    keys=({"kty": "OKP"},),
    aliases=("other",),
    metadata={"m": 1},
)
# A card that has everything its dialect asks for, by dialect; and what the hub must say for itself on any card.
COMPLETE: Final = {
    slug: next(card for card in real_cards(dialect) if len(card.get("skills", "any")) and "description" in card)
    for slug, dialect in DIALECTS.items()
}
HUBS_OWN: Final = frozenset(
    {"url", "endpoint", "supportedInterfaces", "additionalInterfaces", "capabilities", "securitySchemes"}
    | {"authSchemes", "registeredAt"}
)
BARE: Final = AgentCard(id="bare", name="Bare", description="d", skills=(Skill(id="s", name="s", description="s"),))


def _declared(dialect: Dialect) -> set[str]:
    return {loss.facet for loss in dialect.losses}


def _without_ours(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name not in HUBS_OWN}


def _core(card: AgentCard) -> dict[str, Any]:
    return {
        "name": card.name,
        "card:description": card.description,
        "card:version": card.version,
        "skills": [skill.id for skill in card.skills],
    }


@pytest.mark.req("X-02")
@EVERY
@given(card=CARDS)
def test_a_card_comes_back_from_a_dialect_as_it_was_save_what_that_declares(dialect: Dialect, card: AgentCard) -> None:
    got = dialect.read_card(written(dialect, card))
    assert differences_of_cards(card, got) <= _declared(dialect)
    assert (got.name, [skill.id for skill in got.skills]) == (card.name, [skill.id for skill in card.skills])
    if dialect.slug != "directory":
        assert (got.description, got.version) == (card.description, card.version)


@EVERY_LOSS
def test_what_is_declared_as_lost_from_a_card_is_lost(dialect: Dialect, loss: Loss) -> None:
    lost = {
        facet
        for card in (FULL, BARE)
        for facet in differences_of_cards(card, dialect.read_card(written(dialect, card)))
    }
    assert loss.facet in lost


@pytest.mark.req("X-02")
@EVERY_CARD
def test_a_card_shown_in_its_own_dialect_keeps_what_nobody_else_knows(dialect: Dialect, card: dict[str, Any]) -> None:
    vendor = {"anything": None, "numbers": [1.5, 2**70], "ü": "✓"}
    shown = written(dialect, dialect.read_card({**card, "x-vendor": vendor}))
    assert shown["x-vendor"] == vendor
    # What is served can be registered and served again, and is still the same.
    again = written(dialect, dialect.read_card(shown))
    assert _without_ours(again) == _without_ours(shown)


@pytest.mark.req("X-02")
@pytest.mark.parametrize(("slug", "card"), COMPLETE.items())
def test_a_complete_card_shown_in_its_own_dialect_changes_only_where_it_leads(slug: str, card: dict[str, Any]) -> None:
    dialect = DIALECTS[slug]
    shown = written(dialect, dialect.read_card(card))
    assert {name for name, value in card.items() if shown.get(name) != value} <= HUBS_OWN


@pytest.mark.req("X-02")
@pytest.mark.req("X-11")
@EVERY_CARD
@pytest.mark.parametrize("other", DIALECTS.values(), ids=lambda other: f"in {other.slug}")
def test_a_card_of_any_dialect_is_shown_in_any_other_and_keeps_what_all_have(
    dialect: Dialect, card: dict[str, Any], other: Dialect
) -> None:
    read = dialect.read_card(card)
    shown = written(other, read)
    there = read_any_card(shown)
    assert there.original is not None and there.original.dialect == other.slug  # known by its keys alone
    back = dialect.read_card(written(dialect, there))
    lost = {"card:description", "card:version"} & _declared(other)
    for name, value in _core(read).items():
        if name in lost or not value:
            continue
        assert _core(there)[name] == value
        if name not in _declared(dialect):
            assert _core(back)[name] == value
