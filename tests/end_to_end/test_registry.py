from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.end_to_end.world import failing_paths, fresh, join, refused, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

ANSWER = {"id", "uuid", "name", "version", "dialect", "status", "endpoint", "base_url"}
OFFICIAL_CARD: dict[str, Any] = {
    "name": "Stranger",
    "description": "Speaks A2A 1.0",
    "version": "2.0.0",
    "supportedInterfaces": [
        {"url": "http://127.0.0.1:9009/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "127.0.0.1:9010", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
    ],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["chat"]}],
}


def test_a_card_with_every_field_of_the_document_is_taken_and_given_back(hub: HubProcess, agent: PlatformAgent) -> None:
    card = agent.card(id=fresh(), **{"$schema": "https://agentplatform.com/schemas/agent-card/v1"})
    card["skills"] = [skill("echo", output_schema={"type": "object"})]
    card["capabilities"] = {"streaming": True, "a2a": True, "memory": True}
    card["rate_limits"] = {"requests_per_minute": 60, "requests_per_hour": 1000, "concurrent_requests": 10}
    hub.register(card)
    shown = hub.get(f"/v1/a2a/agents/{card['id']}/card").json
    assert shown == card


@pytest.mark.req("P-01")
@pytest.mark.parametrize("field", ["name", "description", "version", "skills", "endpoint"])
def test_a_card_without_a_required_field_is_refused_by_its_name(
    hub: HubProcess, agent: PlatformAgent, field: str
) -> None:
    card = agent.card(id=fresh())
    del card[field]
    error = refused(hub.post("/v1/a2a/registry", {"agent_card": card}), 400, "VALIDATION_ERROR")
    assert failing_paths(error) == {f"agent_card.{field}"}
    assert hub.get(f"/v1/a2a/agents/{card['id']}/card").status == 404


@pytest.mark.req("P-01")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": 7}, "agent_card.name"),
        ({"name": ""}, "agent_card.name"),
        ({"name": "x" * 129}, "agent_card.name"),
        ({"description": "x" * 4097}, "agent_card.description"),
        ({"version": None}, "agent_card.version"),
        ({"skills": []}, "agent_card.skills"),
        ({"skills": {}}, "agent_card.skills"),
        ({"skills": [skill(f"s{n}") for n in range(101)]}, "agent_card.skills"),
        ({"skills": [{"description": "nameless"}]}, "agent_card.skills[0].name"),
        ({"skills": [skill("a"), skill("b", input_schema=[])]}, "agent_card.skills[1].input_schema"),
        ({"skills": [skill("a", input_schema={"type": "nonsense"})]}, "agent_card.skills.a.input_schema"),
        ({"skills": [skill("a", output_schema={"$ref": "http://127.0.0.1:9/s"})]}, "agent_card.skills.a.output_schema"),
        ({"capabilities": {"streaming": "yes"}}, "agent_card.capabilities.streaming"),
        ({"authentication": {"scopes_required": "a2a:call"}}, "agent_card.authentication.scopes_required"),
        ({"rate_limits": {"requests_per_minute": 0}}, "agent_card.rate_limits.requests_per_minute"),
        ({"rate_limits": {"concurrent_requests": "ten"}}, "agent_card.rate_limits.concurrent_requests"),
        ({"endpoint": ""}, "agent_card.endpoint"),
        ({"endpoint": 5}, "agent_card.endpoint"),
        ({"id": "no spaces"}, "agent_card.id"),
        ({"id": "a/b"}, "agent_card.id"),
    ],
)
def test_a_card_with_a_wrong_field_is_refused_by_its_path(
    hub: HubProcess, agent: PlatformAgent, changes: dict[str, Any], path: str
) -> None:
    reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(**{"id": fresh(), **changes})})
    assert failing_paths(refused(reply, 400, "VALIDATION_ERROR")) == {path}


@pytest.mark.req("P-04")
def test_the_first_registration_is_201_with_its_secrets_and_an_update_200_without(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    card = agent.card(id=fresh())
    first = hub.post("/v1/a2a/registry", {"agent_card": card})
    again = hub.post("/v1/a2a/registry", {"agent_card": {**card, "name": "Echo the Second"}})
    assert (first.status, again.status) == (201, 200)
    assert set(first.json) == ANSWER | {"token", "signing_secret"}
    assert set(again.json) == ANSWER
    assert first.json["id"] == card["id"]
    assert (first.json["dialect"], first.json["status"]) == ("platform", "registered")
    assert first.json["endpoint"].endswith(f"/v1/agents/{card['id']}/a2a")
    assert first.json["base_url"].endswith(f"/agents/{card['id']}/")
    assert again.json["uuid"] == first.json["uuid"]
    assert again.json["name"] == "Echo the Second"


@pytest.mark.req("P-04")
def test_only_the_agent_and_its_owner_may_update_it(hub: HubProcess, agent: PlatformAgent) -> None:
    owner, stranger = hub.new_key("a2a:register"), hub.new_key("a2a:register")
    answer = join(hub, agent, token=owner)
    card = agent.card(id=answer["id"], version="1.0.1")
    for token in (owner, answer["token"]):
        assert hub.post("/v1/a2a/registry", {"agent_card": card}, token=token).status == 200
    reply = hub.post("/v1/a2a/registry", {"agent_card": {**card, "name": "Mine"}}, token=stranger)
    error = refused(reply, 403, "AUTHORIZATION_ERROR")
    assert answer["id"] in error["message"]
    assert hub.get(f"/v1/a2a/agents/{answer['id']}/card").json["name"] == "Echo"


@pytest.mark.req("X-13")
def test_an_id_is_not_taken_over_by_a_card_of_another_dialect_nor_after_removal(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    owner, stranger = hub.new_key("a2a:register"), hub.new_key("a2a:register")
    taken = join(hub, agent, token=owner)["id"]
    foreign = {"agent_card": OFFICIAL_CARD, "id": taken}
    refused(hub.post("/v1/a2a/registry", foreign, token=stranger), 403, "AUTHORIZATION_ERROR")
    official = fresh()
    mine = {"agent_card": OFFICIAL_CARD, "id": official}
    assert hub.post("/v1/a2a/registry", mine, token=owner).status == 201
    reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=official)}, token=stranger)
    refused(reply, 403, "AUTHORIZATION_ERROR")
    assert hub.get(f"/v1/agents/{official}").json["dialect"] == "a2a-1.0"
    assert hub.request("DELETE", f"/v1/agents/{taken}", token=owner).status == 200
    reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=taken)}, token=stranger)
    refused(reply, 403, "AUTHORIZATION_ERROR")
    assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=taken)}, token=owner).status == 200


def test_a_card_of_the_official_protocol_is_known_by_its_keys_and_found(hub: HubProcess) -> None:
    name = fresh("Stranger")
    answer = hub.register({**OFFICIAL_CARD, "name": name})
    assert (answer["dialect"], answer["version"]) == ("a2a-1.0", "2.0.0")
    assert answer["id"] == f"agt_{name.lower()}"
    found = hub.get("/v1/a2a/discover?skill=talk&limit=100").json["agents"]
    assert answer["id"] in {each["id"] for each in found}
    card = hub.get(f"/v1/a2a/agents/{answer['id']}/card").json
    assert card["skills"][0]["name"] == "talk"
    assert card["endpoint"] == answer["endpoint"]


def test_a_card_whose_only_interface_is_none_the_hub_calls_is_refused(hub: HubProcess) -> None:
    interface = {"url": "http://127.0.0.1:9009/", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    reply = hub.post("/v1/a2a/registry", {"agent_card": {**OFFICIAL_CARD, "supportedInterfaces": [interface]}})
    refused(reply, 400, "VALIDATION_ERROR")


def test_an_agent_cannot_take_the_name_of_a_key_or_of_the_administrator(hub: HubProcess, agent: PlatformAgent) -> None:
    owner, attacker = hub.new_key("a2a:register", "a2a:call"), hub.new_key("a2a:register", "a2a:call")
    victim = join(hub, agent, token=owner)["id"]
    shown = hub.get(f"/v1/agents/{victim}", token=attacker).json["owner"]
    for name in (shown, "admin", "operator", "anonymous"):
        # Its token would stand for whoever has that name already.
        for body in ({"agent_card": agent.card(id=name)}, {"agent_card": agent.card(), "id": name}):
            reply = hub.post("/v1/a2a/registry", body, token=attacker)
            assert failing_paths(refused(reply, 400, "VALIDATION_ERROR")) == {"id"}


@pytest.mark.parametrize("wanted", ["a/b", "with space", "", "connect", "x" * 129, "a@1.0"])
def test_an_id_given_beside_the_card_follows_the_same_grammar(
    hub: HubProcess, agent: PlatformAgent, wanted: str
) -> None:
    reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(), "id": wanted})
    assert failing_paths(refused(reply, 400, "VALIDATION_ERROR")) == {"id"}


def test_a_registration_with_unusable_credentials_registers_nothing(hub: HubProcess, agent: PlatformAgent) -> None:
    card = agent.card(id=fresh())
    reply = hub.post("/v1/a2a/registry", {"agent_card": card, "credentials": {"type": "bearer"}})
    assert failing_paths(refused(reply, 400, "VALIDATION_ERROR")) == {"credentials.token"}
    assert hub.get(f"/v1/agents/{card['id']}").status == 404


@pytest.mark.req("P-02")
def test_older_card_versions_stay_readable_and_can_be_pinned(hub: HubProcess, agent: PlatformAgent) -> None:
    wants_old = skill("echo", input_schema={"type": "object", "required": ["old"]})
    wants_new = skill("echo", input_schema={"type": "object", "required": ["new"]})
    answer = join(hub, agent, version="1.2.0", skills=[wants_old])
    hub.register(agent.card(id=answer["id"], version="1.3.0", skills=[wants_new]))
    pinned, newest = f"{answer['id']}@1.2.0", answer["id"]
    assert hub.get(f"/v1/agents/{newest}/versions").json["items"] == ["1.3.0", "1.2.0"]
    assert hub.get(f"/v1/a2a/agents/{newest}/card").json["version"] == "1.3.0"
    assert hub.get(f"/v1/a2a/agents/{pinned}/card").json["version"] == "1.2.0"
    # In turns, so that neither version's schema is taken for the other's.
    for _ in range(2):
        assert hub.call("echo", {"old": 1}, pinned).status == 200
        assert hub.call("echo", {"new": 1}, newest).status == 200
        refused(hub.call("echo", {"new": 1}, pinned), 400, "VALIDATION_ERROR")
        refused(hub.call("echo", {"old": 1}, newest), 400, "VALIDATION_ERROR")
    refused(hub.call("echo", {}, f"{newest}@9.9.9"), 404, "AGENT_NOT_FOUND")
    refused(hub.get(f"/v1/a2a/agents/{newest}@9.9.9/card"), 404, "AGENT_NOT_FOUND")


@pytest.mark.req("P-03")
def test_the_card_is_given_bare_and_an_unknown_one_is_404(hub: HubProcess, agent: PlatformAgent) -> None:
    answer = join(hub, agent)
    for name in (answer["id"], answer["uuid"]):
        card = hub.get(f"/v1/a2a/agents/{name}/card")
        assert card.status == 200
        assert card.json["id"] == answer["id"]
        assert card.json["skills"] == agent.card()["skills"]
    refused(hub.get("/v1/a2a/agents/agt_nobody/card"), 404, "AGENT_NOT_FOUND")


@pytest.mark.req("P-44")
def test_the_registered_endpoint_is_shown_to_owner_and_administrator_alone(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    owner, stranger = hub.new_key("a2a:register"), hub.new_key("a2a:call")
    answer = join(hub, agent, token=owner)
    path = f"/v1/a2a/agents/{answer['id']}/card"
    assert hub.get(path, token=stranger).json["endpoint"] == answer["endpoint"]
    for token in (owner, answer["token"], ""):
        assert hub.get(path, token=token).json["endpoint"] == agent.endpoint
    assert agent.endpoint.encode() not in hub.get(f"/v1/agents/{answer['id']}", token=stranger).body
    assert agent.endpoint.encode() not in hub.get("/v1/agents?limit=100", token=stranger).body
    assert hub.get(f"/v1/agents/{answer['id']}", token=owner).json["registered_endpoint"] == agent.endpoint


@pytest.mark.req("P-09")
def test_an_agent_is_paused_resumed_and_removed(hub: HubProcess, agent: PlatformAgent) -> None:
    owner = hub.new_key("a2a:register", "a2a:call")
    name = join(hub, agent, token=owner)["id"]
    page = f"/v1/agents/{name}"
    assert hub.request("PATCH", page, {"status": "paused"}, token=owner).json["status"] == "paused"
    reply = hub.call("echo", {}, name, token=owner)
    error = refused(reply, 503, "AGENT_UNAVAILABLE")
    assert error["details"]["agent_id"] == name
    assert int(reply.headers["retry-after"]) > 0
    assert hub.request("PATCH", page, {"status": "active"}, token=owner).json["status"] == "active"
    assert hub.call("echo", {}, name, token=owner).status == 200
    assert hub.request("DELETE", page, token=owner).status == 200
    refused(hub.call("echo", {}, name, token=owner), 404, "AGENT_NOT_FOUND")
    refused(hub.get(page, token=owner), 404, "AGENT_NOT_FOUND")
    assert name not in {each["id"] for each in hub.get("/v1/a2a/discover?limit=100").json["agents"]}


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_stranger_may_not_change_an_agent(hub: HubProcess, agent: PlatformAgent, method: str) -> None:
    name = join(hub, agent)["id"]
    body = {"status": "paused"} if method == "PATCH" else None
    stranger = hub.new_key("a2a:register", "a2a:call")
    refused(hub.request(method, f"/v1/agents/{name}", body, token=stranger), 403, "AUTHORIZATION_ERROR")
    refused(hub.request(method, f"/v1/agents/{name}", body, token=hub.new_key("a2a:call")), 403, "AUTHORIZATION_ERROR")
    assert hub.call("echo", {}, name, token=stranger).status == 200


@pytest.mark.req("P-43")
def test_the_schema_of_the_card_takes_the_documents_card_and_refuses_a_broken_one(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    import jsonschema_rs

    reply = hub.get("/schemas/agent-card/v1", headers={"Authorization": ""})
    assert reply.status == 200
    validator = jsonschema_rs.validator_for(reply.json)
    assert validator.is_valid(agent.card())
    for field in ("name", "description", "version", "skills", "endpoint"):
        assert not validator.is_valid({name: value for name, value in agent.card().items() if name != field})


@pytest.mark.req("X-17")
@pytest.mark.parametrize(
    "address",
    [
        "http://10.0.0.1/a2a",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00::1]/a2a",
        "http://0x0a000001/",
        "http://user:word@127.0.0.1:8001/",
        "http://127.0.0.1:6379/",
        "ftp://127.0.0.1:8001/",
        "file:///etc/passwd",
        "rubbish",
    ],
)
def test_a_forbidden_address_is_neither_registered_nor_taken_as_a_callback(
    hub: HubProcess, agent: PlatformAgent, address: str
) -> None:
    reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=fresh(), endpoint=address)})
    refused(reply, 400, "VALIDATION_ERROR")
    refused(hub.post("/v1/a2a/registry", {"url": address}), 400, "VALIDATION_ERROR")
    name = join(hub, agent)["id"]
    refused(hub.call("echo", {}, name, options={"callback_url": address}), 400, "VALIDATION_ERROR")
    refused(hub.call("echo", {}, name, callback={"url": address}), 400, "VALIDATION_ERROR")
    assert agent.requests == []


@pytest.mark.req("X-17")
def test_the_hub_itself_is_no_agent(hub: HubProcess, agent: PlatformAgent) -> None:
    reply = hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=fresh(), endpoint=f"{hub.url}/v1/a2a/call")})
    refused(reply, 400, "VALIDATION_ERROR")


def test_a_registration_is_either_a_card_or_a_url(hub: HubProcess, agent: PlatformAgent) -> None:
    for body in ({}, {"agent_card": agent.card(), "url": agent.endpoint}, {"agent_card": None}):
        refused(hub.post("/v1/a2a/registry", body), 400, "VALIDATION_ERROR")


def test_a_url_where_no_card_is_found_is_refused_with_what_was_seen(hub: HubProcess, agent: PlatformAgent) -> None:
    error = refused(hub.post("/v1/a2a/registry", {"url": agent.endpoint}), 400, "VALIDATION_ERROR")
    assert any("HTTP 501" in line for line in error["details"]["seen"])


def test_of_many_who_want_one_id_at_once_exactly_one_gets_it(hub: HubProcess, agent: PlatformAgent) -> None:
    body = {"agent_card": agent.card(id=fresh())}

    def register(key: str) -> int:
        return hub.post("/v1/a2a/registry", body, token=key).status

    keys = [hub.new_key("a2a:register") for _ in range(8)]
    with ThreadPoolExecutor(len(keys)) as at_once:
        assert sorted(at_once.map(register, keys)) == [201] + [403] * 7


def test_of_many_registrations_by_one_owner_exactly_one_is_the_first(hub: HubProcess, agent: PlatformAgent) -> None:
    bodies = [{"agent_card": agent.card(id="agt_wanted_by_one")}] * 8
    with ThreadPoolExecutor(len(bodies)) as at_once:
        replies = list(at_once.map(hub.post, ["/v1/a2a/registry"] * 8, bodies))
    assert sorted(reply.status for reply in replies) == [200] * 7 + [201]
    assert len({reply.json["uuid"] for reply in replies}) == 1
    assert len([reply for reply in replies if "token" in reply.json]) == 1
