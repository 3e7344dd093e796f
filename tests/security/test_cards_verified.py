"""Signed cards of strangers: those whose signature holds are known as signed, forged ones are not taken in."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from joserfc.jwk import OctKey

from tests.end_to_end.world import failing_paths, fresh, refused
from tests.support.card_maker import (
    JWKS,
    CardMaker,
    b64,
    card_maker,
    jwk,
    new_key,
    official,
    private_jwk,
    signature,
)
from tests.support.hub import HubProcess, Reply, running_hub

Card = dict[str, Any]
ALGORITHMS: Final = ("ES256", "RS256", "EdDSA")


@pytest.fixture
def maker() -> Iterator[CardMaker]:
    with card_maker() as maker:
        yield maker


def _register(hub: HubProcess, **body: Any) -> Reply:
    return hub.post("/v1/a2a/registry", {"id": fresh("agt_signed"), **body})


def _trust(hub: HubProcess, **body: Any) -> str:
    """How far the hub trusts the card of an agent that it takes in."""
    reply = _register(hub, **body)
    assert reply.status == 201, reply.body
    trust: str = hub.get(f"/v1/agents/{reply.json['id']}").json["trust"]
    return trust


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_a_signature_by_a_published_key_holds(hub: HubProcess, alg: str) -> None:
    with card_maker(alg) as maker:
        card = maker.signed()
        maker.show(card)
        assert _trust(hub, agent_card=card) == "signed"
        assert _trust(hub, url=maker.url) == "signed"


def test_a_card_that_the_published_sdk_signed_holds_and_fails_when_edited(hub: HubProcess, maker: CardMaker) -> None:
    with card_maker("RS256") as other:
        asked = [
            {"card": each.card(provider={"organization": "Ü €", "url": "https://a.test"}), "protected": each.header()}
            | {"private": private_jwk(each.key, each.kid)}
            for each in (maker, other)
        ]
        for card in official(*asked):
            assert _trust(hub, agent_card=card) == "signed"
            card["provider"]["organization"] = "U €"
            refused(_register(hub, agent_card=card), 400, "VALIDATION_ERROR")


def test_a_card_that_another_hub_serves_holds(
    hub: HubProcess, maker: CardMaker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_hub(tmp_path_factory.mktemp("other") / "data") as other:
        agent = other.register(maker.card(), id="agt_there", open=True)["id"]
        card = other.get(f"/agents/{agent}/.well-known/agent-card.json").json
        assert _trust(hub, agent_card=card) == "signed"
        card["skills"][0]["name"] = "Walk"
        refused(_register(hub, agent_card=card), 400, "VALIDATION_ERROR")


def _with_defaults(card: Card) -> Card:
    card["documentationUrl"] = card["iconUrl"] = ""
    card["securityRequirements"] = []
    card["skills"][0]["examples"] = []
    card["capabilities"]["extensions"] = []
    card["supportedInterfaces"][0]["tenant"] = ""
    return card


def _reordered(card: Card) -> Card:
    stranger = signature(card, new_key(), {"alg": "ES256", "kid": "somebody", "jku": "https://elsewhere.test/keys"})
    return {**dict(reversed(card.items())), "signatures": [stranger, *card["signatures"]]}


@pytest.mark.parametrize("change", [_with_defaults, _reordered], ids=["defaults added", "signatures reordered"])
def test_what_changes_nothing_of_a_card_breaks_no_signature(
    hub: HubProcess, maker: CardMaker, change: Callable[[Card], Card]
) -> None:
    assert _trust(hub, agent_card=change(maker.signed())) == "signed"


def test_the_specifications_own_example_is_put_into_canonical_form_as_it_says() -> None:
    from dragoman.dialects.official_card.signed_form import v10_form
    from dragoman.security.card_signing import canonical

    capabilities: Card = {"streaming": False, "pushNotifications": False, "extensions": []}
    shown: Card = {"name": "Example Agent", "description": "", "capabilities": capabilities, "skills": []}
    assert canonical(v10_form(shown)) == (
        b'{"capabilities":{"pushNotifications":false,"streaming":false},'
        b'"description":"","name":"Example Agent","skills":[]}'
    )


def _edited(maker: CardMaker) -> Card:
    card = maker.signed()
    card["description"] = card["description"].replace("S", "s")
    return card


def _called_elsewhere(maker: CardMaker) -> Card:
    card = maker.signed()
    card["supportedInterfaces"][0]["url"] = f"{maker.url}/other"
    return card


def _by_another_key(maker: CardMaker) -> Card:
    card = maker.card()
    return {**card, "signatures": [signature(card, new_key(), maker.header())]}


def _foreign_jku(maker: CardMaker) -> Card:
    return maker.signed(jku=maker.jku.replace("127.0.0.1", "127.0.0.2"))


def _unknown_kid(maker: CardMaker) -> Card:
    return maker.signed(kid="../../keys/1' OR 1=1")


def _unreadable_keys(maker: CardMaker) -> Card:
    return maker.signed(jku=f"{maker.url}/nothing")


def _embedded_key(maker: CardMaker) -> Card:
    key, card = new_key(), maker.card()
    header = {"alg": "ES256", "kid": "mine", "jwk": jwk(key, "mine")}
    return {**card, "signatures": [signature(card, key, header)]}


def _key_beside(maker: CardMaker) -> Card:
    key, card = new_key(), maker.card()
    made = signature(card, key, {"alg": "ES256", "kid": "mine"})
    return {**card, "signatures": [{**made, "header": {"jwk": jwk(key, "mine")}}]}


def _certificate_elsewhere(maker: CardMaker) -> Card:
    return maker.signed(x5u=f"{maker.url}/certificate.pem")


def _critical(maker: CardMaker) -> Card:
    return maker.signed(crit=["urgent"], urgent=True)


def _unsigned_kind(maker: CardMaker) -> Card:
    card = maker.signed()
    card["signatures"] = [{"protected": b64(json.dumps(maker.header(alg="none")).encode()), "signature": ""}]
    return card


def _shared_secret(maker: CardMaker) -> Card:
    """HS256, and the secret is what everybody can read: the public key."""
    card = maker.card()
    public = json.dumps(maker.jwks["keys"][0]).encode()
    made = signature(card, OctKey.import_key(public), maker.header(alg="HS256"))  # pyright: ignore[reportArgumentType]
    return {**card, "signatures": [made]}


def _alg_of_another_key(maker: CardMaker) -> Card:
    """An RSA key's signature, whose key set says that its algorithm is another's."""
    key, card = new_key("RS256"), maker.card()
    maker.jwks = {"keys": [{**jwk(key, maker.kid), "alg": "ES256"}]}
    return {**card, "signatures": [signature(card, key, maker.header(alg="RS256"))]}


def _alg_that_is_not_the_keys(maker: CardMaker) -> Card:
    """The header says EdDSA, the key is on P-256, and so is the signature."""
    card = maker.card()
    return {**card, "signatures": [signature(card, maker.key, maker.header(alg="EdDSA"), by="ES256")]}


def _truncated(maker: CardMaker) -> Card:
    card = maker.signed()
    card["signatures"][0]["signature"] = card["signatures"][0]["signature"][:-4]
    return card


def _emptied(maker: CardMaker) -> Card:
    card = maker.signed()
    card["signatures"][0]["signature"] = ""
    return card


def _in_der(maker: CardMaker) -> Card:
    card = maker.signed()
    text = card["signatures"][0]["signature"]
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    numbers = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    card["signatures"][0]["signature"] = b64(encode_dss_signature(*numbers))
    return card


def _moved_from_another_card(maker: CardMaker) -> Card:
    return {**maker.card(), "signatures": maker.signed(maker.card(version="2.0.0"))["signatures"]}


def _rubbish(maker: CardMaker) -> Card:
    return {**maker.card(), "signatures": [{"protected": "e30", "signature": "AAAA"}, 7, None]}


def _too_many(maker: CardMaker) -> Card:
    card = maker.signed()
    return {**card, "signatures": card["signatures"] * 9}


FORGED: Final = (
    _edited,
    _called_elsewhere,
    _by_another_key,
    _foreign_jku,
    _unknown_kid,
    _unreadable_keys,
    _embedded_key,
    _key_beside,
    _certificate_elsewhere,
    _critical,
    _unsigned_kind,
    _shared_secret,
    _alg_of_another_key,
    _alg_that_is_not_the_keys,
    _truncated,
    _emptied,
    _in_der,
    _moved_from_another_card,
    _rubbish,
    _too_many,
)


@pytest.mark.parametrize("forge", FORGED, ids=[each.__name__[1:] for each in FORGED])
def test_a_forged_card_is_refused_and_nothing_is_registered(
    hub: HubProcess, maker: CardMaker, forge: Callable[[CardMaker], Card]
) -> None:
    card, agent = forge(maker), fresh("agt_forged")
    maker.show(card)
    for body in ({"agent_card": card}, {"url": maker.url}):
        error = refused(hub.post("/v1/a2a/registry", {"id": agent, **body}), 400, "VALIDATION_ERROR")
        assert failing_paths(error) == {"agent_card.signatures"}
    assert hub.get(f"/v1/agents/{agent}").status == 404


def test_a_foreign_key_set_is_not_even_asked_for(hub: HubProcess, maker: CardMaker) -> None:
    with card_maker() as other:
        card = maker.card()
        card["signatures"] = [signature(card, other.key, other.header())]
        refused(_register(hub, agent_card=card), 400, "VALIDATION_ERROR")
        assert other.asked == []


def test_a_key_that_is_given_counts_wherever_it_is_published(hub: HubProcess, maker: CardMaker) -> None:
    card = maker.signed(jku="https://keys.example.test/all.json")
    assert _trust(hub, agent_card=card, card_keys=[jwk(maker.key, "any")]) == "signed"
    wrong = _register(hub, agent_card=card, card_keys=[jwk(new_key(), "any")])
    refused(wrong, 400, "VALIDATION_ERROR")
    error = refused(_register(hub, agent_card=card, card_keys=[{"kty": "oct", "k": "AA"}]), 400, "VALIDATION_ERROR")
    assert failing_paths(error) == {"card_keys"}
    assert JWKS not in maker.asked


def test_a_signature_that_names_no_key_proves_nothing(hub: HubProcess, maker: CardMaker) -> None:
    card = maker.card()
    card["signatures"] = [signature(card, maker.key, {"alg": "ES256", "kid": "mine"})]
    assert _trust(hub, agent_card=card) == "unverified"


def test_an_endpoint_that_serves_the_card_proves_that_much_and_no_more(hub: HubProcess, maker: CardMaker) -> None:
    maker.show(maker.card())
    assert _trust(hub, agent_card=maker.card()) == "unverified"
    assert _trust(hub, url=maker.url) == "endpoint"


def test_a_card_found_elsewhere_than_it_is_called_proves_nothing(hub: HubProcess, maker: CardMaker) -> None:
    with card_maker() as other:
        maker.show(other.card())
        assert _trust(hub, url=maker.url) == "unverified"


def test_a_look_at_the_endpoint_proves_it_later(hub: HubProcess, maker: CardMaker) -> None:
    agent = _register(hub, agent_card=maker.card()).json["id"]
    maker.show(maker.card(version="9.9.9"))
    assert hub.post(f"/v1/agents/{agent}/probe", {}).status == 200
    assert hub.get(f"/v1/agents/{agent}").json["trust"] == "unverified"
    maker.show(maker.card())
    assert hub.post(f"/v1/agents/{agent}/probe", {}).status == 200
    assert hub.get(f"/v1/agents/{agent}").json["trust"] == "endpoint"


def test_what_was_added_beside_a_signature_is_not_called(hub: HubProcess, maker: CardMaker) -> None:
    """Members of 0.3 that somebody adds to a card of 1.0, whose signature the SDK takes over what 1.0 knows."""
    with card_maker() as evil:
        (card,) = official(
            {"card": maker.card(), "protected": maker.header(), "private": private_jwk(maker.key, maker.kid)}
        )
        added = card | {"url": f"{evil.url}/", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        reply = _register(hub, agent_card=added)
        assert reply.status == 201, reply.body
        shown = hub.get(f"/v1/agents/{reply.json['id']}").json
        assert (shown["trust"], shown["registered_endpoint"]) == ("signed", f"{maker.url}/")
        found = hub.get("/v1/a2a/discover?dialect=a2a-0.3").json["agents"]
        assert shown["id"] not in {each["id"] for each in found}


def test_how_far_a_card_is_trusted_is_shown_where_agents_are_found(hub: HubProcess, maker: CardMaker) -> None:
    card = maker.signed(maker.card(skills=[{"id": "rare", "name": "R", "description": "R", "tags": ["r"]}]))
    agent = _register(hub, agent_card=card, open=True).json
    assert agent["trust"] == "signed"
    found = hub.get("/v1/a2a/discover?skill=rare").json["agents"]
    assert [each["trust"] for each in found] == ["signed"]
    shown = hub.get(f"/v1/agents/{agent['id']}").json
    assert shown["signed_by"] == maker.url.replace("127.0.0.1", "localhost")
    page = hub.get(f"/agents/{agent['id']}/", {"Accept": "text/html"}).body
    assert b"card signed by its maker" in page
