"""Cards are data: bounded, with nothing in them that people cannot see, whatever dialect they come in."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from dragoman.dialects.text import shown_text
from dragoman.model.json import is_array, is_object
from tests.end_to_end.world import failing_paths, fresh, refused, skill
from tests.support.card_maker import CardMaker, card_maker
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent

# A zero-width space, an override of the direction, a tag and a control: what people do not see, and models do.
HIDING: Final = "\u200b\u202e\U000e0041\x07"
HIDDEN: Final = set(HIDING)
UNSEEN: Final = (
    *("\x00", "\x1b", "\x7f", "\x9b", "\u00ad", "\u061c", "\u200b", "\u200d", "\u200f", "\u2028", "\u202e", "\u2060"),
    *("\u2066", "\u2069", "\u206a", "\u3164", "\ufe01", "\ufeff", "\ufff9", "\U000e0001", "\U000e007f", "\U000e0100"),
)


@pytest.fixture(scope="module")
def maker() -> Iterator[CardMaker]:
    with card_maker() as maker:
        yield maker


@pytest.fixture(scope="module")
def platform() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


@pytest.mark.parametrize("character", UNSEEN, ids=ascii)
def test_what_cannot_be_seen_is_not_shown(character: str) -> None:
    assert shown_text(f"a{character}b", 10) == "ab"


def test_what_can_be_seen_stays() -> None:
    said = "Grüße, 日本語, العربية\tnaïve ☺️\n“ok”"
    assert shown_text(said, 100) == said


PLACES: Final = (
    "/v1/agents/{0}",
    "/v1/a2a/agents/{0}/card",
    "/v1/a2a/discover?limit=100",
    "/agents/{0}/.well-known/agent-card.json",
    "/agents/{0}/.well-known/agent-card",
    "/agents/{0}/agent-card.json",
    "/agents/{0}/agentvault/agent-card.json",
    "/agents/{0}/a2a-0.3/.well-known/agent-card.json",
)


def _official(maker: CardMaker, _: PlatformAgent) -> dict[str, Any]:
    talk = {"id": "talk", "name": f"Ta{HIDING}lk", "description": f"T{HIDING}", "tags": [f"c{HIDING}"]}
    return maker.card(
        name=f"Na{HIDING}me",
        version=f"1{HIDING}.0",
        skills=[{**talk, "examples": [f"say{HIDING}"], "ownMember": HIDING}],
        provider={"organization": f"A{HIDING}", "url": "https://a.test"},
        capabilities={"extensions": [{"uri": "https://x.test/e", "description": f"e{HIDING}"}]},
        ownMember={f"n{HIDING}": [f"v{HIDING}"]},
    )


def _platform(_: CardMaker, agent: PlatformAgent) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": f"d{HIDING}"}}}
    return agent.card(
        name=f"Na{HIDING}me",
        skills=[skill("talk", tags=[f"t{HIDING}"], input_schema=schema, examples=[{"q": f"x{HIDING}"}])],
        tags=[f"t{HIDING}"],
        pricing={"model": f"free{HIDING}"},
        ownMember=f"o{HIDING}",
    )


@pytest.mark.parametrize("made", [_official, _platform], ids=["official", "platform"])
def test_no_card_shows_what_cannot_be_seen(
    hub: HubProcess,
    maker: CardMaker,
    platform: PlatformAgent,
    made: Callable[[CardMaker, PlatformAgent], dict[str, Any]],
) -> None:
    card = made(maker, platform)
    card.pop("id", None)
    agent = hub.register(card, id=fresh("agt_hidden"))["id"]
    for place in PLACES:
        shown = hub.get(place.format(agent))
        assert shown.status == 200, place
        assert HIDDEN.isdisjoint(_characters(shown.json)), place
    assert HIDDEN.isdisjoint(hub.get(f"/agents/{agent}/", {"Accept": "text/html"}).body.decode())
    assert _characters(hub.get(f"/v1/a2a/agents/{agent}/card?original=1").json) >= HIDDEN


def test_what_a_schema_tests_stays_as_it_is(hub: HubProcess, platform: PlatformAgent) -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # joined by what cannot be seen
    schema = {"type": "object", "properties": {"who": {"enum": [family]}}, "required": ["who"]}
    agent = hub.register(platform.card(id=fresh(), skills=[skill("talk", input_schema=schema)]))["id"]
    assert hub.get(f"/v1/a2a/agents/{agent}/card").json["skills"][0]["input_schema"] == schema
    assert hub.call("talk", {"who": family}, agent=agent).status == 200


REMOTE: Final = {"$ref": "http://127.0.0.1:9/schema.json"}
DEEP: Final[dict[str, Any]] = {}
_inner = DEEP
for _ in range(40):
    _inner["not"] = {}
    _inner = _inner["not"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"skills": [skill("t\u200balk")]}, "agent_card.skills"),
        ({"skills": [skill("x" * 129)]}, "agent_card.skills[0].name"),
        ({"skills": [skill("talk", input_schema=REMOTE)]}, "agent_card.skills.talk.input_schema"),
        ({"skills": [skill("talk", input_schema=DEEP)]}, "agent_card.skills.talk.input_schema"),
        (
            {"skills": [skill("talk", output_schema={"enum": ["x" * 70_000]})]},
            "agent_card.skills.talk.output_schema",
        ),
        ({"skills": [skill("talk", input_schema={"pattern": "(?=a)b"})]}, "agent_card.skills.talk.input_schema"),
        ({"id": "../../etc"}, "agent_card.id"),
    ],
    ids=["hidden in a name", "long name", "remote $ref", "deep", "large", "no linear pattern", "id"],
)
def test_what_would_harm_is_refused(
    hub: HubProcess, platform: PlatformAgent, changes: dict[str, Any], path: str
) -> None:
    card = platform.card(**{"id": fresh(), **changes})
    error = refused(hub.post("/v1/a2a/registry", {"agent_card": card}), 400, "VALIDATION_ERROR")
    assert failing_paths(error) == {path}


def test_a_pattern_that_explodes_elsewhere_is_quick(hub: HubProcess, platform: PlatformAgent) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "pattern": "^(a+)+$"}}}
    agent = hub.register(platform.card(id=fresh(), skills=[skill("talk", input_schema=schema)]))["id"]
    refused(hub.call("talk", {"q": "a" * 50_000 + "!"}, agent=agent), 400, "VALIDATION_ERROR")


@pytest.mark.req("X-24")
def test_the_size_of_a_card_is_that_of_its_bytes(hub: HubProcess, maker: CardMaker) -> None:
    body = b'{"agent_card":%b}' % _padded(maker, 256 * 1024 + 1)
    refused(hub.post("/v1/a2a/registry", body), 413, "VALIDATION_ERROR")


def test_a_card_that_is_nested_for_ever_is_none(hub: HubProcess, maker: CardMaker) -> None:
    maker.shown = b'{"deep":%b,' % (b"[" * 900 + b"]" * 900) + json.dumps(maker.card()).encode()[1:]
    taken = hub.register(None, url=maker.url, id="agt_deep")
    assert taken["name"] == maker.url.removeprefix("http://")  # What answers there is taken, without a card.


def test_links_lead_to_pages_alone(hub: HubProcess, maker: CardMaker) -> None:
    card = maker.card(iconUrl="javascript:alert(1)", documentationUrl="https://docs.test/")
    agent = hub.register(card, id=fresh("agt_links"))["id"]
    shown = hub.get(f"/agents/{agent}/.well-known/agent-card.json").json
    assert "iconUrl" not in shown
    assert shown["documentationUrl"] == "https://docs.test/"


def test_a_card_has_at_most_fifty_tags_a_skill(hub: HubProcess, platform: PlatformAgent) -> None:
    card = platform.card(id=fresh(), skills=[skill("talk", tags=[f"t{n}" for n in range(60)])])
    hub.register(card)
    assert len(hub.get(f"/v1/a2a/agents/{card['id']}/card").json["skills"][0]["tags"]) == 50


def _characters(value: Any) -> set[str]:
    """Every character in the names and texts of a JSON value."""
    if isinstance(value, str):
        return set(value)
    inner: list[Any] = [*value, *value.values()] if is_object(value) else value if is_array(value) else []
    return {character for each in inner for character in _characters(each)}


def _padded(maker: CardMaker, size: int) -> bytes:
    card = json.dumps(maker.card()).encode()
    return b"{" + b" " * (size - len(card)) + card[1:]
