"""The official card of both versions and of both merged: read liberally, written strictly."""

from typing import Any

import pytest

from dragoman.dialects.dialect import Place
from dragoman.dialects.official_card import (
    owns_v03_card,
    owns_v10_card,
    read_v03_card,
    read_v10_card,
    write_merged_card,
    write_v03_card,
    write_v10_card,
)
from dragoman.model.agent import AgentCard, Binding, Provider, Skill
from dragoman.model.errors import BadParams
from dragoman.model.fit import Feature
from dragoman.model.json import is_array, is_object
from tests.dialects.a2a_v10_samples import agent_of
from tests.dialects.goldens import HUB

BASE = f"{HUB}/agents/agt_echo/"
OPEN = Place(hub_url=HUB, base_url=BASE, protected=False)
PROTECTED = Place(hub_url=HUB, base_url=BASE, protected=True)
SHARED: dict[str, Any] = {
    "name": "Echo",
    "description": "Gives back",
    "version": "1.2.3",
    "provider": {"organization": "Acme", "url": "https://acme.test"},
    "documentationUrl": "https://docs.test",
    "iconUrl": "https://icon.test",
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["application/json"],
    "skills": [
        {
            "id": "echo",
            "name": "Echo",
            "description": "Says it again",
            "tags": ["test"],
            "examples": ["hello"],
            "inputModes": ["text/plain"],
            "outputModes": ["text/plain"],
            "metadata": {"own": 1},
        }
    ],
    "vendor_note": {"kept": [1, 2**60]},
}
CAPABILITIES = {
    "streaming": True,
    "pushNotifications": True,
    "extensions": [{"uri": "https://x.test", "required": True}],
}
V10: dict[str, Any] = {
    **SHARED,
    "supportedInterfaces": [
        {"url": "http://agent.test/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        {"url": "http://agent.test/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "acme"},
        {"url": "agent.test:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": "http://agent.test/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        {"url": "http://agent.test/", "protocolBinding": "JSONRPC", "protocolVersion": "9.0"},
    ],
    "capabilities": {**CAPABILITIES, "extendedAgentCard": True},
    "securitySchemes": {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "http": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
        "oauth": {
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": "https://t.test", "scopes": {"a": "A"}}}
            }
        },
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://o.test"}},
        "tls": {"mtlsSecurityScheme": {}},
    },
    "signatures": [{"protected": "x", "signature": "y"}],
}
V03: dict[str, Any] = {
    **SHARED,
    "protocolVersion": "0.3.0",
    "url": "http://agent.test/v1-base",
    "preferredTransport": "HTTP+JSON",
    "additionalInterfaces": [
        {"url": "http://agent.test/v1-base", "transport": "HTTP+JSON"},
        {"url": "http://agent.test/rpc", "transport": "JSONRPC"},
        {"url": "http://agent.test:443", "transport": "GRPC"},
        {"url": "http://agent.test/other", "transport": "SMOKE"},
    ],
    "capabilities": CAPABILITIES,
    "supportsAuthenticatedExtendedCard": True,
    "securitySchemes": {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "http": {"type": "http", "scheme": "bearer"},
        "oauth": {
            "type": "oauth2",
            "flows": {
                "implicit": {"authorizationUrl": "https://i.test", "scopes": {}},
                "clientCredentials": {"tokenUrl": "https://t.test", "scopes": {"a": "A"}},
            },
        },
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://o.test"},
        "tls": {"type": "mutualTLS"},
    },
}


def test_a_card_is_told_by_its_keys() -> None:
    assert (owns_v10_card(V10), owns_v03_card(V10)) == (True, False)
    assert (owns_v10_card(V03), owns_v03_card(V03)) == (False, True)
    assert (owns_v10_card({**V03, **V10}), owns_v03_card({**V03, **V10})) == (True, False)
    assert owns_v10_card({"supported_interfaces": []})
    assert not owns_v03_card({"name": "x", "url": "http://agent.test"})


@pytest.mark.parametrize(("card", "read"), [(V10, read_v10_card), (V03, read_v03_card)], ids=["1.0", "0.3"])
def test_both_versions_say_the_same_of_an_agent(card: dict[str, Any], read: Any) -> None:
    found: AgentCard = read(card)
    assert (found.id, found.name, found.description, found.version) == ("agt_echo", "Echo", "Gives back", "1.2.3")
    assert found.skills == (
        Skill(
            id="echo",
            name="Echo",
            description="Says it again",
            tags=("test",),
            examples=("hello",),
            input_modes=("text/plain",),
            output_modes=("text/plain",),
            metadata={"own": 1},
        ),
    )
    assert (found.streaming, found.push, found.extended) == (True, True, True)
    assert (found.input_modes, found.output_modes) == (("text/plain",), ("application/json",))
    assert found.provider == Provider(name="Acme", url="https://acme.test")
    assert found.links == {"documentation": "https://docs.test", "icon": "https://icon.test"}
    assert [(each.uri, each.required) for each in found.extensions] == [("https://x.test", True)]
    assert [(each.id, each.kind) for each in found.auth] == [
        ("key", "apiKey"),
        ("http", "bearer"),
        ("oauth", "oauth2"),
        ("oidc", "openIdConnect"),
        ("tls", "mutualTLS"),
    ]
    assert (found.auth[0].location, found.auth[0].name) == ("header", "X-Key")
    assert (found.auth[2].token_url, found.auth[2].scopes) == ("https://t.test", ("a",))


def test_the_endpoints_of_a_1_0_card_keep_their_order_before_those_of_0_3() -> None:
    found = [(each.dialect, each.binding, each.url, each.tenant) for each in read_v10_card(V10).endpoints]
    assert found == [
        ("a2a-1.0", Binding.HTTP, "http://agent.test/rest", None),
        ("a2a-1.0", Binding.JSONRPC, "http://agent.test/", "acme"),
        ("a2a-0.3", Binding.JSONRPC, "http://agent.test/", None),
        ("a2a-1.0", Binding.GRPC, "agent.test:443", None),
    ]
    assert Feature.STREAM in read_v10_card(V10).endpoints[0].features


def test_a_0_3_agent_is_called_by_json_rpc_where_it_can_be() -> None:
    found = [(each.dialect, each.binding, each.url) for each in read_v03_card(V03).endpoints]
    assert found == [
        ("a2a-0.3", Binding.JSONRPC, "http://agent.test/rpc"),
        ("a2a-0.3", Binding.HTTP, "http://agent.test/v1-base"),
        ("a2a-0.3", Binding.GRPC, "http://agent.test:443"),
    ]
    plain = read_v03_card({"name": "x", "url": "http://agent.test", "protocolVersion": "0.3.0", "capabilities": {}})
    assert [(each.binding, each.features) for each in plain.endpoints] == [
        (Binding.JSONRPC, frozenset(Feature) - {Feature.STREAM, Feature.SUBSCRIBE, Feature.REPORTS})
    ]


def test_a_merged_card_has_the_endpoints_of_both() -> None:
    merged = {**V03, "supportedInterfaces": V10["supportedInterfaces"][:1]}
    found = [(each.dialect, each.binding) for each in read_v10_card(merged).endpoints]
    assert found == [
        ("a2a-1.0", Binding.HTTP),
        ("a2a-0.3", Binding.JSONRPC),
        ("a2a-0.3", Binding.HTTP),
        ("a2a-0.3", Binding.GRPC),
    ]


@pytest.mark.parametrize(
    ("read", "card", "field"),
    [
        (read_v10_card, {**V10, "name": ""}, "agent_card.name"),
        (
            read_v10_card,
            {"name": "x", "supportedInterfaces": [{"url": "http://x", "protocolVersion": "3.0"}]},
            "agent_card.supportedInterfaces",
        ),
        (read_v10_card, {"name": "x", "supportedInterfaces": "rubbish"}, "agent_card.supportedInterfaces"),
        (read_v03_card, {"name": "x", "protocolVersion": "0.3.0"}, "agent_card.url"),
        (read_v03_card, {"url": "http://x", "protocolVersion": "0.3.0"}, "agent_card.name"),
    ],
)
def test_a_card_that_cannot_be_used_says_why(read: Any, card: dict[str, Any], field: str) -> None:
    with pytest.raises(BadParams) as caught:
        read(card)
    assert caught.value.details["errors"][0]["path"] == field


def test_a_meagre_card_is_served_with_every_required_member() -> None:
    meagre = {"name": "Bare", "supportedInterfaces": [{"url": "http://agent.test"}]}
    for write in (write_v10_card, write_v03_card, write_merged_card):
        shown = write(agent_of(read_v10_card(meagre)), OPEN)
        assert (shown["description"], shown["version"]) == ("Bare", "1.0.0")
        assert shown["skills"] == [{"id": "default", "name": "default", "description": "default", "tags": ["general"]}]
        assert shown["defaultInputModes"] == shown["defaultOutputModes"] == ["text/plain", "application/json"]
        assert "provider" not in shown
        assert _empties(shown) == []


def test_a_pure_1_0_card_has_no_member_of_0_3() -> None:
    shown = write_v10_card(agent_of(read_v10_card(V10)), PROTECTED)
    assert shown["supportedInterfaces"] == [
        {"url": BASE, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": BASE, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ]
    assert not {"url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"} & set(shown)
    assert shown["capabilities"] == {
        "streaming": True,
        "pushNotifications": True,
        "extensions": [{"uri": "https://x.test", "required": True}],
        "extendedAgentCard": True,
    }
    assert "signatures" not in shown
    assert {name: set(each) for name, each in shown["securitySchemes"].items()} == {
        "bearer": {"httpAuthSecurityScheme"},
        "apiKey": {"apiKeySecurityScheme"},
        "oauth2": {"oauth2SecurityScheme"},
    }
    assert shown["securityRequirements"] == [
        {"schemes": {"bearer": {"list": ["a2a:call"]}}},
        {"schemes": {"apiKey": {"list": ["a2a:call"]}}},
        {"schemes": {"oauth2": {"list": ["a2a:call"]}}},
    ]


def test_a_pure_0_3_card_has_no_member_of_1_0() -> None:
    shown = write_v03_card(agent_of(read_v03_card(V03)), PROTECTED)
    assert (shown["protocolVersion"], shown["url"], shown["preferredTransport"]) == ("0.3.0", BASE, "JSONRPC")
    assert shown["additionalInterfaces"] == [
        {"url": BASE, "transport": "JSONRPC"},
        {"url": BASE, "transport": "HTTP+JSON"},
    ]
    assert not {"supportedInterfaces", "securityRequirements", "signatures"} & set(shown)
    assert "extendedAgentCard" not in shown["capabilities"]
    assert shown["supportsAuthenticatedExtendedCard"] is True
    assert shown["securitySchemes"]["bearer"]["type"] == "http"
    assert shown["security"] == [{"bearer": ["a2a:call"]}, {"apiKey": ["a2a:call"]}, {"oauth2": ["a2a:call"]}]


def test_a_merged_card_is_both_at_once_1_0_first() -> None:
    agent = agent_of(read_v10_card(V10))
    shown = write_merged_card(agent, PROTECTED)
    pure10, pure03 = write_v10_card(agent, PROTECTED), write_v03_card(agent, PROTECTED)
    assert [(each["protocolBinding"], each["protocolVersion"]) for each in shown["supportedInterfaces"]] == [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
    ]
    for name in set(pure03) - {"capabilities", "securitySchemes", "skills"}:
        assert shown[name] == pure03[name]
    for name in set(pure10) - {"supportedInterfaces", "securitySchemes"}:
        assert shown[name] == pure10[name]
    for name, scheme in shown["securitySchemes"].items():
        assert pure03["securitySchemes"][name].items() <= scheme.items()
        assert pure10["securitySchemes"][name].items() <= scheme.items()


def test_an_open_agent_asks_for_no_credential() -> None:
    for write in (write_v10_card, write_v03_card, write_merged_card):
        shown = write(agent_of(read_v10_card(V10)), OPEN)
        assert not {"securitySchemes", "security", "securityRequirements"} & set(shown)


@pytest.mark.parametrize(
    ("card", "read", "write"),
    [
        (V10, read_v10_card, write_v10_card),
        (V03, read_v03_card, write_v03_card),
        (V10, read_v10_card, write_merged_card),
        (V03, read_v03_card, write_merged_card),
    ],
    ids=["1.0", "0.3", "1.0 merged", "0.3 merged"],
)
def test_what_a_card_brought_is_served_again_in_its_own_version(card: dict[str, Any], read: Any, write: Any) -> None:
    shown = write(agent_of(read(card)), PROTECTED)
    hubs = {"supportedInterfaces", "capabilities", "securitySchemes", "signatures", "url", "preferredTransport"}
    hubs |= {"additionalInterfaces"}
    for name, value in card.items():
        if name not in hubs:
            assert shown[name] == value


def test_a_card_with_underscores_is_served_in_the_strict_spelling() -> None:
    snake = {
        "name": "Echo",
        "supported_interfaces": [
            {"url": "http://agent.test", "protocol_binding": "JSONRPC", "protocol_version": "1.0"}
        ],
        "default_input_modes": ["text/plain"],
        "documentation_url": "https://docs.test",
        "skills": [{"id": "s", "name": "S", "input_modes": ["text/plain"]}],
    }
    shown = write_v10_card(agent_of(read_v10_card(snake)), OPEN)
    assert [name for name in shown if "_" in name] == []
    assert (shown["defaultInputModes"], shown["documentationUrl"]) == (["text/plain"], "https://docs.test")
    assert shown["skills"][0]["inputModes"] == ["text/plain"]


def test_other_dialects_words_become_media_types() -> None:
    card = AgentCard(
        id="agt_echo",
        name="Echo",
        input_modes=("text", "data", "file"),
        skills=(Skill(id="s", name="s", output_modes=("text",), examples=({"q": 1}, "plain")),),
        scopes_required=("a2a:special",),
        provider=Provider(name="Acme"),
    )
    shown = write_v10_card(agent_of(card), PROTECTED)
    assert shown["defaultInputModes"] == ["text/plain", "application/json", "application/octet-stream"]
    assert shown["skills"][0]["outputModes"] == ["text/plain"]
    assert shown["skills"][0]["examples"] == ['{"q":1}', "plain"]
    assert shown["provider"] == {"organization": "Acme", "url": HUB}
    assert shown["securityRequirements"][0]["schemes"]["bearer"]["list"] == ["a2a:special"]


def _empties(value: Any, path: str = "") -> list[str]:
    """Where a card has an empty value: published verifiers drop those, so that signatures would not hold."""
    if value in ("", [], {}):
        return [path]
    if is_object(value):
        return [found for name, each in value.items() for found in _empties(each, f"{path}.{name}")]
    return [found for each in value for found in _empties(each, f"{path}[]")] if is_array(value) else []
