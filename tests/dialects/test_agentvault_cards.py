"""AgentVault's cards and its registry's API, without a wire."""

import json
from typing import Any

import pytest

from dragoman.dialects.agentvault import DIALECT
from dragoman.dialects.agentvault.card import local_name, read_card, write_card
from dragoman.dialects.agentvault.inbound import read
from dragoman.dialects.agentvault.registry import developer_id
from dragoman.dialects.dialect import Exchange, Place
from dragoman.model import errors
from dragoman.model.agent import AgentCard, AgentStatus, Provider, Skill
from dragoman.model.answers import AgentPage, Card, Pong, Registered
from dragoman.model.errors import (
    BadParams,
    DragomanError,
    NotAuthenticated,
)
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import (
    ChangeAgent,
    Discover,
    GetCard,
    Ping,
    RegisterAgent,
    Unreadable,
)
from tests.dialects.agentvault_samples import (
    AT,
    HUB,
    JSON,
    UUID,
    agent_of,
    body_of,
    place_of,
    published,
)


@pytest.mark.parametrize("name", ["agent-card-none", "agent-card-protected", "agent-card-invalid-loopback-url"])
def test_a_card_is_read(name: str) -> None:
    card = published(name)
    assert DIALECT.owns_card(card)
    read = read_card(card)
    organisation, _, own = card["humanReadableId"].partition("/")
    assert (read.id, read.aliases) == (f"{organisation}.{own}", (card["humanReadableId"],))
    assert (read.name, read.version, read.tags) == (card["name"], "0.1.0", ("example",))
    (endpoint,) = read.endpoints
    assert (endpoint.dialect, endpoint.url, endpoint.version) == ("agentvault", card["url"], "0.2")
    assert endpoint.features == DIALECT.features
    assert [skill.id for skill in read.skills] == ["echo"]
    assert read.skills[0].input_schema is not None
    assert [scheme.kind for scheme in read.auth] == [scheme["scheme"] for scheme in card["authSchemes"]]
    assert read.provider == Provider(name="Examples")
    assert read.input_modes == ("text/plain", "application/octet-stream", "application/json")
    assert read.push
    assert read.original is not None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        *[({name: None}, name) for name in ("schemaVersion", "agentVersion", "name", "description", "url", "provider")],
        ({"humanReadableId": "echo"}, "humanReadableId"),
        ({"humanReadableId": "a/b/c"}, "humanReadableId"),
        ({"humanReadableId": "a/b@1"}, "humanReadableId"),
        ({"url": "ftp://agent.test/"}, "url"),
        ({"url": "agent.test"}, "url"),
        ({"provider": {}}, "provider.name"),
        ({"capabilities": {}}, "capabilities.a2aVersion"),
        ({"capabilities": {"a2aVersion": "0.3"}}, "capabilities.a2aVersion"),
        ({"capabilities": {"a2aVersion": "0.2", "teeDetails": {}}}, "capabilities.teeDetails.type"),
        ({"authSchemes": []}, "authSchemes"),
        ({"authSchemes": [{"scheme": "basic"}]}, "authSchemes[0].scheme"),
        ({"authSchemes": [{"scheme": "oauth2"}]}, "authSchemes[0].tokenUrl"),
        ({"skills": [{"id": "x", "name": "x"}]}, "skills[0].description"),
        ({"iconUrl": "icon.png"}, "iconUrl"),
    ],
)
def test_a_bad_card_is_refused_by_its_field(change: dict[str, Any], field: str) -> None:
    card = {**published("agent-card-none"), **change}
    with pytest.raises(BadParams) as raised:
        read_card({name: value for name, value in card.items() if value is not None})
    assert raised.value.details["errors"][0]["path"] == f"agent_card.{field}"


def test_another_version_of_the_profile_is_refused_in_plain_words() -> None:
    card = {**published("agent-card-none"), "capabilities": {"a2aVersion": "0.9"}}
    with pytest.raises(BadParams, match=r"0\.9 is not spoken here, 0\.2 is"):
        read_card(card)
    for version in ("0.2", "0.2.1", "1.0"):
        assert read_card({**card, "capabilities": {"a2aVersion": version}}).endpoints[0].version == version


def test_a_card_without_skills_gets_one() -> None:
    card = published("agent-card-none")
    del card["skills"]
    assert [skill.id for skill in read_card(card).skills] == ["default"]


def test_a_trusted_environment_is_a_label() -> None:
    card = published("agent-card-none")
    card["capabilities"]["teeDetails"] = {"type": "Intel SGX"}
    assert read_card(card).labels == ("tee", "tee:intel sgx")


def test_a_card_keeps_every_member_on_its_way_through_the_hub() -> None:
    card = published("agent-card-none")
    card |= {"unknown": [1, 2**70], "lastUpdated": "2026-01-12T10:00:00Z", "iconUrl": "https://a.test/i.png"}
    card["capabilities"]["teeDetails"] = {"type": "Intel SGX", "publicKey": "k"}
    card["url"] = "https://agent.test/a2a/"
    agent = agent_of(read_card(card))
    shown = write_card(agent, place_of(agent, protected=False))
    assert shown == {**card, "url": f"{HUB}/agents/examples.echo/agentvault/"}


def test_a_protected_card_names_every_way_in() -> None:
    card = published("agent-card-protected")
    agent = agent_of(read_card(card))
    assert write_card(agent, place_of(agent))["authSchemes"] == card["authSchemes"]


def test_a_card_of_another_dialect_is_written_in_full() -> None:
    card = AgentCard(
        id="agt_x",
        name="X",
        version="2",
        skills=(Skill(id="s", name="S", input_schema={"type": "object"}),),
        provider=Provider(name="P", url="not an address", contact="me@example.com"),
        links={"icon": "https://a.test/i.png", "privacy": "nowhere"},
        tags=("t",),
    )
    agent = agent_of(card, tags=("u",), owner_id="key:7 ü")
    assert write_card(agent, place_of(agent, protected=False)) == {
        "schemaVersion": "1.0",
        "humanReadableId": "key-7/agt_x",
        "agentVersion": "2",
        "name": "X",
        "description": "X",
        "url": f"{HUB}/agents/agt_x/agentvault/",
        "provider": {"name": "P", "support_contact": "me@example.com"},
        "capabilities": {
            "a2aVersion": "0.2",
            "supportedMessageParts": ["text", "data", "file"],
            "supportsPushNotifications": True,
        },
        "authSchemes": [{"scheme": "none"}],
        "skills": [{"id": "s", "name": "S", "description": "S", "input_schema": {"type": "object"}}],
        "tags": ["t", "u"],
        "iconUrl": "https://a.test/i.png",
        "lastUpdated": "2026-01-12T10:00:00.000Z",
    }
    assert read_card(write_card(agent, place_of(agent))).skills[0].id == "s"


def test_addresses_of_this_machine_are_written_by_name() -> None:
    agent = agent_of(read_card(published("agent-card-protected")))
    shown = write_card(agent, place_of(agent, "http://127.0.0.1:8700"))
    assert shown["url"] == "http://localhost:8700/agents/examples.vault/agentvault/"
    assert shown["authSchemes"][1]["tokenUrl"] == "http://localhost:8700/oauth/token"
    assert local_name("http://[::1]:1/") == "http://localhost:1/"
    assert local_name("http://127.0.0.1") == "http://localhost"
    assert local_name("http://127.0.0.1.example.com/") == "http://127.0.0.1.example.com/"


def test_the_hubs_own_card_points_to_its_customary_url() -> None:
    agent = agent_of(AgentCard(id="dragoman", name="Hub"))
    shown = write_card(agent, Place(hub_url=HUB, base_url=f"{HUB}/"))
    assert shown["url"] == f"{HUB}/a2a/"


def test_a_card_is_asked_for_at_the_agents_own_place() -> None:
    request = HttpRequest(method="GET", url="/", id="1", at=AT, route="card", params={"agent": "a"}, hub=HUB)
    exchange = read(request)
    assert exchange.operation == GetCard(agent="a", public=True)
    agent = agent_of(read_card(published("agent-card-none")))
    reply = exchange.reply(Card(agent=agent, protected=False))
    assert (reply.status, body_of(reply)["url"]) == (200, f"{HUB}/agents/examples.echo/agentvault/")
    missing = exchange.refuse(errors.AgentNotFound())
    assert (missing.status, body_of(missing)) == (404, published("registry-error-response"))


def _registry(route: str, body: object = None, query: str = "", method: str = "GET", **params: str) -> Exchange:
    raw = b"" if body is None else json.dumps(body).encode()
    url = f"/api/v1/agent-cards?{query}"
    request = HttpRequest(
        method=method, url=url, headers=JSON, body=raw, id="1", at=AT, route=route, params=params, hub=HUB
    )
    return read(request)


def test_cards_are_listed_with_the_registrys_defaults() -> None:
    assert _registry("cards").operation == Discover(status=AgentStatus.ACTIVE, limit=100)


def test_every_filter_of_the_list_is_read() -> None:
    query = "skip=20&limit=250&active_only=false&search=echo&tags=a&tags=b&tee_type=Intel%20SGX&owned_only=true"
    assert _registry("cards", query=query).operation == Discover(
        text="echo",
        tags=("a", "b"),
        capability="tee:intel sgx",
        also_paused=True,
        mine=True,
        limit=250,
        cursor="eyJvZmZzZXQiOjIwfQ",
    )
    assert _registry("cards", query="offset=20").operation == Discover(
        status=AgentStatus.ACTIVE, limit=100, cursor="eyJvZmZzZXQiOjIwfQ"
    )
    with_tee = _registry("cards", query="has_tee=true").operation
    assert with_tee == Discover(status=AgentStatus.ACTIVE, limit=100, capability="tee")
    without = _registry("cards", query="has_tee=false").operation
    assert without == Discover(status=AgentStatus.ACTIVE, limit=100, without_capability="tee")


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=251", "limit=x", "skip=-1", "offset=1e3", "active_only=perhaps", "has_tee="),
        *(f"search={'x' * 101}", f"tee_type={'x' * 51}"),
    ],
)
def test_a_filter_that_makes_no_sense_is_422_with_its_name(query: str) -> None:
    exchange = _registry("cards", query=query)
    assert isinstance(exchange.operation, Unreadable)
    reply = exchange.refuse(exchange.operation.error)
    assert reply.status == 422
    assert body_of(reply)["detail"].startswith(query.partition("=")[0])


def test_a_page_is_shown_as_published() -> None:
    agent = agent_of(read_card(published("agent-card-none")))
    reply = _registry("cards").reply(AgentPage(agents=(agent,), total=1))
    assert (reply.status, body_of(reply)) == (200, published("registry-list-response"))


@pytest.mark.parametrize(
    ("page", "query", "pagination"),
    [
        ({"total": 0}, "", (0, 100, 0, 0, 1)),
        ({"total": 25}, "limit=10&skip=20", (25, 10, 20, 3, 3)),
        ({"total": 1000, "exceeded": True, "cursor": "c"}, "limit=10&offset=990", (1000, 10, 990, 100, 100)),
        ({"total": 1000, "exceeded": True, "cursor": "c"}, "limit=10&offset=2000", (2002, 10, 2000, 201, 201)),
        ({"total": 1000, "exceeded": True}, "limit=10&offset=2000", (2001, 10, 2000, 201, 201)),
    ],
)
def test_pages_are_counted(page: dict[str, Any], query: str, pagination: tuple[int, ...]) -> None:
    agents = (agent_of(read_card(published("agent-card-none"))),) if page.get("exceeded") else ()
    shown = body_of(_registry("cards", query=query).reply(AgentPage(agents=agents, **page)))["pagination"]
    assert tuple(shown.values()) == pagination


def test_a_card_is_submitted_and_recorded_as_published() -> None:
    exchange = _registry("create", published("registry-create-request"), method="POST")
    assert isinstance(exchange.operation, RegisterAgent)
    assert exchange.operation.card is not None
    agent = agent_of(exchange.operation.card, open=True)
    reply = exchange.reply(Registered(agent=agent, created=True, protected=False))
    shown = published("registry-record-response")
    record = body_of(reply)
    assert reply.status == 201
    # The agent's id is made of the whole name, so that two organisations may have one each.
    shown["card_data"]["url"] = f"{HUB}/agents/examples.echo/agentvault/"
    assert {**record, "developer_id": 1} == shown
    assert exchange.reply(Registered(agent=agent, created=False)).status == 200


@pytest.mark.parametrize("body", [{}, {"card_data": None}, {"card_data": {"name": "x"}}, [], 7])
@pytest.mark.parametrize(("route", "method"), [("create", "POST"), ("change", "PUT")])
def test_a_bad_card_is_422(route: str, method: str, body: object) -> None:
    exchange = _registry(route, body, method=method, uuid=UUID)
    if route == "change" and body in ({}, {"card_data": None}):
        assert exchange.operation == ChangeAgent(agent_id=UUID)
        return
    assert isinstance(exchange.operation, Unreadable)
    reply = exchange.refuse(exchange.operation.error)
    assert reply.status == 422
    assert set(body_of(reply)) == {"detail"}
    assert "agent_card" not in body_of(reply)["detail"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotAuthenticated(), 401),
        (errors.NotAuthorized(), 403),
        (errors.AgentNotFound(), 404),
        (errors.TooLarge(), 413),
        (errors.WrongMediaType(), 415),
        (errors.RateLimited(), 429),
        (errors.Overloaded(), 503),
        (DragomanError(), 500),
    ],
)
def test_the_registry_refuses_with_a_detail(error: DragomanError, status: int) -> None:
    reply = _registry("cards").refuse(error)
    assert (reply.status, set(body_of(reply))) == (status, {"detail"})


def test_a_card_is_looked_up_by_uuid_and_by_name() -> None:
    assert _registry("record", uuid=UUID.upper()).operation == GetCard(agent=UUID)
    assert _registry("by-name", org="examples", name="echo").operation == GetCard(agent="examples/echo")
    assert _registry("by-hri", query="hri=examples%2Fecho").operation == GetCard(agent="examples/echo")
    for exchange, status in ((_registry("record", uuid="echo"), 404), (_registry("by-hri"), 422)):
        assert isinstance(exchange.operation, Unreadable)
        assert exchange.refuse(exchange.operation.error).status == status


def test_a_record_tells_whether_the_agent_is_active() -> None:
    for status in AgentStatus:
        agent = agent_of(read_card(published("agent-card-none")), status=status)
        record = body_of(_registry("record", uuid=UUID).reply(Card(agent=agent)))
        assert record["is_active"] is (status is AgentStatus.ACTIVE)


def test_a_change_and_a_removal_are_changes_of_the_agent() -> None:
    paused = _registry("change", {"is_active": False}, method="PUT", uuid=UUID)
    assert paused.operation == ChangeAgent(agent_id=UUID, status=AgentStatus.PAUSED)
    card = published("agent-card-none")
    changed = _registry("change", {"card_data": card, "is_active": True}, method="PUT", uuid=UUID)
    assert changed.operation == ChangeAgent(agent_id=UUID, status=AgentStatus.ACTIVE, card=read_card(card))
    removed = _registry("delete", method="DELETE", uuid=UUID)
    assert removed.operation == ChangeAgent(agent_id=UUID, status=AgentStatus.PAUSED)
    agent = agent_of(read_card(card))
    assert removed.reply(Card(agent=agent)) == HttpReply(status=204)
    assert paused.reply(Card(agent=agent)).status == 200


def test_a_card_is_checked_without_being_taken() -> None:
    card = published("agent-card-none")
    exchange = _registry("validate", {"card_data": card}, method="POST")
    assert isinstance(exchange.operation, Ping)
    reply = exchange.reply(Pong(echo=exchange.operation.echo))
    assert (reply.status, body_of(reply)) == (200, published("validate-card-response"))
    bad = _registry("validate", {"card_data": {**card, "url": "x"}}, method="POST").operation
    assert isinstance(bad, Ping)
    assert bad.echo["is_valid"] is False
    assert bad.echo["detail"].startswith("card_data.url")
    assert bad.echo["validated_card_data"] is None


def test_an_owners_number_is_stable_positive_and_fits_31_bits() -> None:
    card = AgentCard(id="x", name="X")
    numbers = {developer_id(agent_of(card, owner_id=f"key_{index}")) for index in range(200)}
    assert len(numbers) == 200
    assert all(0 < number < 2**31 for number in numbers)
    assert developer_id(agent_of(card)) == developer_id(agent_of(card))
