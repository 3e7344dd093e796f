"""Ways: what a card decides of a call is found once, and anew as soon as the agent is another."""

import msgspec
import pytest

from dragoman.hub.validate import Schemas
from dragoman.hub.ways import Ways
from dragoman.model.agent import Agent, AgentCard, Endpoint, Extension, Skill
from dragoman.model.errors import SkillNotFound
from dragoman.model.fit import Feature
from tests.unit.hub.flow_parts import agent

PARTS = frozenset({Feature.PARTS, Feature.INLINE})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def ways() -> Ways:
    return Ways(schemas=Schemas(), can_call=lambda endpoint: endpoint.dialect == "platform")


def with_card(card: AgentCard) -> Agent:
    return msgspec.structs.replace(agent(), card=card)


def card(*, features: frozenset[Feature] = PARTS, schema: bool = False, dialect: str = "platform") -> AgentCard:
    skill = Skill(id="forecast", name="Forecast", input_schema=SCHEMA if schema else None)
    endpoint = Endpoint(dialect=dialect, url="http://agent.example/", features=features)
    return AgentCard(id="weather", name="Weather", skills=(skill,), endpoints=(endpoint,))


def test_a_way_is_found_once_for_the_same_agent() -> None:
    known, target = ways(), with_card(card())
    assert known.of(target, "forecast") is known.of(target, "forecast")


def test_an_agent_that_was_changed_has_another_way() -> None:
    known, before = ways(), with_card(card())
    assert not known.of(before, "forecast").signed
    after = with_card(msgspec.structs.replace(before.card, signed=True))
    assert known.of(after, "forecast").signed
    assert known.of(after, "forecast").agent is after


def test_two_versions_of_a_card_are_never_taken_for_each_other() -> None:
    known, old = ways(), with_card(card())
    new = with_card(msgspec.structs.replace(card(schema=True), version="2.0.0"))
    for _ in range(2):
        assert known.of(new, "forecast").compiled.input is not None
        assert known.of(old, "forecast").verbatim


def test_a_skill_that_is_not_there_is_refused_each_time() -> None:
    known, target = ways(), with_card(card())
    for _ in range(2):
        with pytest.raises(SkillNotFound):
            known.of(target, "serch")


def test_an_agent_that_the_hub_does_not_speak_to_has_no_endpoint() -> None:
    assert ways().of(with_card(card(dialect="other")), None).endpoint is None


@pytest.mark.parametrize("features", [frozenset({Feature.PARTS}), frozenset[Feature]()])
def test_only_who_takes_parts_and_files_gets_them_as_they_are(features: frozenset[Feature]) -> None:
    assert ways().of(with_card(card()), None).verbatim
    assert not ways().of(with_card(card(features=features)), None).verbatim
    assert not ways().of(with_card(card(schema=True)), None).verbatim


def test_a_required_extension_is_a_demand() -> None:
    wanted = (Extension(uri="urn:x", required=True),)
    assert not ways().of(with_card(card()), None).demanding
    assert ways().of(with_card(msgspec.structs.replace(card(), extensions=wanted)), None).demanding
