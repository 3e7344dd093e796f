"""The official cards that the hub serves are signed, and the published SDK says so itself."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import pytest
import rfc8785
from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry

from tests.end_to_end.world import eventually, fresh, refused
from tests.support.card_maker import CardMaker, b64, card_maker, official
from tests.support.hub import HubProcess

V10: Final = {"A2A-Version": "1.0"}
MERGED: Final[dict[str, str]] = {}


@pytest.fixture(scope="module")
def maker() -> Iterator[CardMaker]:
    with card_maker() as maker:
        yield maker


@pytest.fixture(scope="module")
def agent(hub: HubProcess, maker: CardMaker) -> str:
    """An agent whose card has whatever a card can have, members that nobody knows among it."""
    extension: dict[str, Any] = {
        "uri": "https://x.test/e",
        "description": "Über",
        "params": {"n": 1.5, "none": [], "deep": {"a": 1}},
    }
    card = maker.card(
        capabilities={"streaming": False, "extensions": [extension]},
        provider={"organization": "Ünïcode €", "url": "https://acme.test"},
        documentationUrl="https://acme.test/docs",
        ownMember={"kept": True, "rate": 0.1},
    )
    registered: str = hub.register(card, id=fresh("agt_served"))["id"]
    return registered


def _card(hub: HubProcess, agent: str, headers: dict[str, str], base: str = "") -> dict[str, Any]:
    reply = hub.get(f"/agents/{agent}/{base}.well-known/agent-card.json", headers)
    assert reply.status == 200, reply.body
    card: dict[str, Any] = reply.json
    return card


def _keys(hub: HubProcess) -> dict[str, Any]:
    keys: dict[str, Any] = hub.get("/.well-known/jwks.json").json
    return keys


def _covers(signature: dict[str, str], keys: dict[str, Any], form: dict[str, Any]) -> bool:
    """Whether a signature of the hub is over this very form, by the rules alone."""
    header = json.loads(_bytes(signature["protected"]))
    key = next(each for each in keys["keys"] if each["kid"] == header["kid"])
    payload = b64(rfc8785.dumps(form))
    signed = f"{signature['protected']}.{payload}".encode()
    return JWSRegistry.algorithms["ES256"].verify(signed, _bytes(signature["signature"]), ECKey.import_key(key))


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _unsigned(card: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in card.items() if name != "signatures"}


@pytest.mark.req("O-38")
def test_the_published_sdk_verifies_the_hubs_cards_and_refuses_an_edited_one(hub: HubProcess, agent: str) -> None:
    keys = _keys(hub)
    cards = [_card(hub, agent, V10), _card(hub, agent, MERGED), _card(hub, agent, MERGED, base="a2a-1.0/")]
    edited = deepcopy(cards[1])
    edited["skills"][0]["description"] = "Talkt"
    moved = deepcopy(cards[0])
    moved["supportedInterfaces"][0]["url"] = "https://elsewhere.test/"
    root = hub.get("/.well-known/agent-card.json", V10).json
    said = official(*({"card": card, "keys": keys} for card in (*cards, root, edited, moved)))
    assert [each["verified"] for each in said] == [True, True, True, True, False, False]


@pytest.mark.req("O-38")
@pytest.mark.parametrize("base", ["", "a2a-1.0/", "a2a-0.3/"])
def test_a_signature_covers_the_whole_card_as_it_was_received(hub: HubProcess, agent: str, base: str) -> None:
    card, keys = _card(hub, agent, MERGED, base), _keys(hub)
    assert any(_covers(each, keys, _unsigned(card)) for each in card["signatures"])
    assert not any(_covers(each, keys, _unsigned(card) | {"version": "1.0.1"}) for each in card["signatures"])


@pytest.mark.req("O-38")
def test_the_protected_header_is_the_specifications(hub: HubProcess, agent: str) -> None:
    card, kid = _card(hub, agent, MERGED), _keys(hub)["keys"][-1]["kid"]
    jku = f"http://localhost:{hub.port}/.well-known/jwks.json"  # the hub's own name, whatever it was asked by
    for signature in card["signatures"]:
        assert set(signature) == {"protected", "signature"}
        header = json.loads(_bytes(signature["protected"]))
        assert header == {"alg": "ES256", "typ": "JOSE", "kid": kid, "jku": jku}
        assert len(_bytes(signature["signature"])) == 64  # r ‖ s, not DER


@pytest.mark.req("O-37", "O-38")
def test_a_card_is_signed_once_and_not_at_all_for_who_has_it(hub: HubProcess, agent: str) -> None:
    path = f"/agents/{agent}/.well-known/agent-card.json"
    first, second = hub.get(path), hub.get(path)
    # A signature on P-256 has chance in it: two that are the same are one.
    assert first.body == second.body
    again = hub.get(path, {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert hub.get(path, V10).headers["etag"] != first.headers["etag"]


def test_the_key_of_cards_stays_when_that_of_tokens_goes_and_goes_when_keys_leaked(hub: HubProcess, agent: str) -> None:
    """Whoever keeps it would take another one for a forgery."""
    before = _card(hub, agent, MERGED)
    assert hub.post("/v1/signing-keys/rotate", {}).status in (200, 201)
    assert _card(hub, agent, MERGED) == before
    place, kid = f"/agents/{agent}/.well-known/agent-card.json", _keys(hub)["keys"][-1]["kid"]
    had = {"If-None-Match": hub.get(place).headers["etag"]}
    assert hub.post("/v1/signing-keys/rotate", {"now": True}).status in (200, 201)
    eventually(lambda: _keys(hub)["keys"][-1]["kid"] != kid, "another key signs cards")
    after, keys = _card(hub, agent, MERGED), _keys(hub)
    assert any(_covers(each, keys, _unsigned(after)) for each in after["signatures"])
    assert kid not in {key["kid"] for key in keys["keys"]}
    assert hub.get(place, had).status == 200  # Who has the old signature gets the new one.


def test_what_has_no_canonical_form_is_served_unsigned(hub: HubProcess, maker: CardMaker) -> None:
    agent = hub.register(maker.card(big=2**60), id=fresh("agt_big"))["id"]
    card = _card(hub, agent, MERGED)
    assert card["big"] == 2**60
    assert "signatures" not in card


@pytest.mark.req("P-44")
def test_the_original_is_there_to_the_byte_for_its_owner_alone(hub: HubProcess, maker: CardMaker) -> None:
    agent = fresh("agt_original")
    came = (
        b'{ "name":"As it came\\u200b", '
        + json.dumps(maker.card()).encode().replace(b'"name": "Signed', b'"x": "S', 1)[1:]
    )
    body = b'{"id":"%b","agent_card":%b}' % (agent.encode(), came)
    assert hub.post("/v1/a2a/registry", body).status == 201
    path = f"/v1/a2a/agents/{agent}/card"
    original = hub.get(f"{path}?original=1")
    assert original.body == came
    assert original.headers["content-type"] == "application/json"
    stranger = hub.new_key("a2a:call")
    refused(hub.get(f"{path}?original=1", token=stranger), 403, "AUTHORIZATION_ERROR")
    assert maker.url not in hub.get(path, token=stranger).body.decode()


def test_the_original_of_a_url_is_what_was_fetched(hub: HubProcess, maker: CardMaker) -> None:
    maker.show(maker.card())
    agent = hub.register(None, url=maker.url, id=fresh("agt_fetched"))["id"]
    assert hub.get(f"/v1/a2a/agents/{agent}/card?original=1").body == maker.shown
