"""Cards across the dialects: any in, every one out, nothing lost that a dialect can say, and each id its owner's."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from dragoman.model.json import is_array, is_object
from tests.end_to_end.every_dialect import SLUGS, Everyone, Known
from tests.end_to_end.world import fresh, tracebacks
from tests.support.hub import HubProcess, running_hub

SKILLS: Final = {"research": "Finds things out", "summarize": "Says it shortly"}
VERSION: Final = {"A2A-Version": "1.0"}
# Where a card of each dialect is, below an agent's base; two are pages of the hub.
PLACES: Final = {
    "a2a-1.0": "/agents/{}/a2a-1.0/.well-known/agent-card.json",
    "a2a-0.3": "/agents/{}/a2a-0.3/.well-known/agent-card.json",
    "agentvault": "/agents/{}/agentvault/agent-card.json",
    "envelope": "/agents/{}/agent-card.json",
    "directory": "/a2a/agents/{}",
    "platform": "/v1/a2a/agents/{}/card",
    "dotted": "/agents/{}/agent-card",
}
# What tells the shapes apart, and every card of that shape has.
MEMBERS: Final = {
    "a2a-1.0": {"name", "description", "supportedInterfaces", "version", "capabilities", "skills"},
    "a2a-0.3": {"name", "description", "protocolVersion", "url", "version", "capabilities", "skills"},
    "agentvault": {"schemaVersion", "humanReadableId", "agentVersion", "name", "url", "provider", "authSchemes"},
    "envelope": {"id", "name", "version", "capabilities", "endpoint", "supported_tasks"},
    "directory": {"agentId", "name", "capabilities", "endpoint", "registeredAt"},
    "platform": {"id", "name", "description", "version", "capabilities", "skills", "authentication", "endpoint"},
    "dotted": {"name", "description", "url", "version", "provider", "skills", "capabilities", "metadata"},
}


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyone]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("cards") / "data", auth="none"))
        yield Everyone(hub, stack)
        assert tracebacks(hub) == []


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A second hub, for which the first one's agents are agents like any other."""
    with running_hub(tmp_path_factory.mktemp("beyond") / "data", auth="none") as hub:
        yield hub
        assert tracebacks(hub) == []


def _card(slug: str, stub_card: dict[str, Any], name: str, skills: dict[str, str] = SKILLS) -> dict[str, Any]:
    """A card in a dialect with everything that the dialects have in common, at the stub's address."""
    card = {**stub_card, "name": name, "description": f"Agent {name}", "version": "2.1.0"}
    match slug:
        case "envelope":
            card |= {"supported_tasks": list(skills), "capabilities": ["research", "writing"]}
        case "directory":
            return {**stub_card, "agentId": name, "name": name, "capabilities": list(skills)}
        case "platform":
            card |= {"id": name, "skills": [{"name": each, "description": said} for each, said in skills.items()]}
            card |= {"capabilities": {"streaming": False, "a2a": True, "memory": False}}
            card |= {"authentication": {"type": "bearer", "scopes_required": ["a2a:call"]}}
        case "agentvault":
            del card["version"]
            card |= {"agentVersion": "2.1.0", "humanReadableId": f"tests/{name}"}
            card["skills"] = [{"id": each, "name": each, "description": said} for each, said in skills.items()]
        case _:
            modes = {"inputModes": ["text"], "outputModes": ["text"]} if slug == "dotted" else {}
            card["skills"] = [
                {"id": each, "name": each, "description": said, "tags": ["t"], "examples": ["e"], **modes}
                for each, said in skills.items()
            ]
    return card


def _registered(everyone: Everyone, slug: str, **skills: str) -> tuple[Known, dict[str, Any], dict[str, Any]]:
    """An agent whose card is recognised by its keys alone; the card, and the hub's answer."""
    stub = everyone.stub(slug)
    card = _card(slug, stub.card, fresh(f"analyst-{slug.replace('.', '-')}"), skills or SKILLS)
    answer = everyone.hub.register(card)
    return Known(answer["id"], stub), card, answer


def _told(slug: str, card: dict[str, Any]) -> dict[str, Any]:
    """What a card says, as far as its dialect has words: name, description, version, skills and their descriptions."""
    skills = {each.get("id", each["name"]): each["description"] for each in card.get("skills", ())}
    told = {"name": card["name"], "description": card.get("description"), "skills": skills}
    match slug:
        case "directory":
            return {"name": card["name"], "ids": card["capabilities"]}
        case "envelope":
            return {**told, "version": card["version"], "skills": None, "ids": card["supported_tasks"]}
        case "agentvault":
            return {**told, "version": card["agentVersion"], "ids": list(skills)}
        case _:
            return {**told, "version": card["version"], "ids": list(skills)}


def _both(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[Any, Any]]:
    """What two cards say of the same, where both have words for it and the first was told."""
    return [(one[name], other[name]) for name in one.keys() & other.keys() if one[name] and other[name] is not None]


@pytest.mark.req("X-02")
@pytest.mark.parametrize("out", SLUGS)
@pytest.mark.parametrize("slug", SLUGS)
def test_one_card_in_every_dialects_card_out(everyone: Everyone, slug: str, out: str) -> None:
    agent, card, _ = _registered(everyone, slug)
    reply = everyone.hub.get(PLACES[out].format(agent.id))
    assert reply.status == 200, reply.body
    assert reply.json.keys() >= MEMBERS[out]
    for said, shown in _both(_told(slug, card), _told(out, reply.json)):
        assert shown == said


def _bare(value: Any) -> Any:
    """A card without what must differ between two hubs: addresses, ids, when it came, and who signed it."""
    own = ("id", "uuid", "humanReadableId", "agentId", "created_at", "updated_at", "lastUpdated", "registeredAt")
    own += ("signatures",)
    if is_object(value):
        return {name: _bare(each) for name, each in value.items() if name not in own}
    if is_array(value):
        return [_bare(each) for each in value]
    return "…" if isinstance(value, str) and value.startswith("http://") else value


@pytest.mark.req("X-02")
@pytest.mark.parametrize("through", SLUGS)
@pytest.mark.parametrize("slug", SLUGS)
def test_what_a_dialect_can_say_is_not_lost_on_a_round_trip_through_it(
    everyone: Everyone, beyond: HubProcess, slug: str, through: str
) -> None:
    agent, card, _ = _registered(everyone, slug)
    shown = everyone.hub.get(PLACES[through].format(agent.id)).json
    if through == "platform":  # to its owner it shows the agent's own address, and that is no platform agent's
        shown["endpoint"] = f"{everyone.hub.url}/v1/agents/{agent.id}/a2a"
    again = beyond.register(shown, id=fresh("again"))
    assert again["dialect"] == through
    assert _bare(beyond.get(PLACES[through].format(again["id"])).json) == _bare(shown)
    back = beyond.get(PLACES[slug].format(again["id"])).json
    heard = _told(through, shown)
    for said, kept in _both(heard, _told(slug, back)):
        assert kept == said
    for said, kept in _both(_told(slug, card), heard):
        assert kept == said
    # And the address in the card is one where the agent is reached.
    done = beyond.call("research", {"text": "hello"}, again["id"])
    assert (done.status, done.json["result"]) == (200, {"text": "hello"}), done.body


@pytest.mark.req("X-02")
@pytest.mark.parametrize("slug", SLUGS)
def test_a_card_comes_back_in_its_own_dialect_with_every_member(everyone: Everyone, slug: str) -> None:
    agent, card, _ = _registered(everyone, slug)
    shown = everyone.hub.get(PLACES[slug].format(agent.id)).json
    for name, value in _bare(card).items():
        # What is offered by the hub itself, and where, is the hub's to say.
        if name not in ("methods", "capabilities", "supportedInterfaces"):
            assert _bare(shown)[name] == value, name


# -- recognised and found


def _found(hub: HubProcess, agent: str, uuid: str, name: str, skill: str) -> dict[str, bool]:
    """Whether each dialect's way of finding agents finds this one."""
    searched = hub.get(f"/v1/a2a/discover?skill={skill}").json["agents"]
    sought = {"jsonrpc": "2.0", "id": "1", "method": "a2a/discover", "params": {"capabilities": [skill]}}
    listed = hub.get(f"/api/v1/agent-cards?search={name}").json["items"]
    official = hub.get("/.well-known/agent-card.json").json["skills"]
    dotted = hub.get("/.well-known/agent-card").json["skills"]
    return {
        "platform": agent in {each["id"] for each in searched},
        "directory": agent in {each["agentId"] for each in hub.post("/a2a", sought).json["result"]["agents"]},
        "directory's list": agent in {each["agentId"] for each in hub.get("/a2a/agents").json["agents"]},
        "agentvault": uuid in {each["id"] for each in listed},
        "agentvault's record": hub.get(f"/api/v1/agent-cards/{uuid}").status == 200,
        "a2a": skill in {each["id"] for each in official},
        "dotted": skill in {each["id"] for each in dotted},
        "envelope": skill in hub.get("/agent-card.json").json["supported_tasks"],
    }


@pytest.mark.req("X-07", "R-08")
@pytest.mark.parametrize("slug", SLUGS)
def test_a_card_of_any_dialect_is_recognised_by_its_keys_and_found_by_every_discovery(
    everyone: Everyone, slug: str
) -> None:
    skill = fresh("rare")
    agent, card, answer = _registered(everyone, slug, **{skill: "Rarely done"})
    assert answer["dialect"] == slug
    found = _found(everyone.hub, agent.id, answer["uuid"], card["name"], skill)
    assert all(found.values()), found
    done = everyone.hub.call(skill, {"text": "hello"})  # nobody is named: it is found by what it can
    assert (done.status, done.json["result"]) == (200, {"text": "hello"})


@pytest.mark.req("R-08")
def test_an_agent_registered_at_the_directory_is_found_by_every_other_discovery(everyone: Everyone) -> None:
    stub, skill = everyone.stub("directory"), fresh("rare")
    record: dict[str, Any] = {**stub.card, "agentId": fresh("listed"), "name": fresh("listed"), "capabilities": [skill]}
    assert everyone.hub.post("/a2a/register", record).status == 200
    uuid = everyone.hub.get(f"/v1/agents/{record['agentId']}").json["uuid"]
    found = _found(everyone.hub, record["agentId"], uuid, record["name"], skill)
    assert all(found.values()), found


@pytest.mark.req("X-11")
@pytest.mark.parametrize("slug", SLUGS)
def test_each_card_path_gives_its_dialects_shape(everyone: Everyone, slug: str) -> None:
    agent, hub = everyone.agent(slug), everyone.hub
    merged = MEMBERS["a2a-1.0"] | MEMBERS["a2a-0.3"]
    shapes = {
        "/.well-known/agent-card.json": merged,
        "/.well-known/agent.json": merged,
        "/.well-known/agent-card": MEMBERS["dotted"],
        "/agent-card": MEMBERS["dotted"],
        "/agent-card.json": MEMBERS["envelope"],
        "/a2a/agent-card": MEMBERS["envelope"],
        "/agentvault/agent-card.json": MEMBERS["agentvault"],
    }
    for base in (f"/agents/{agent.id}", ""):
        for path, members in shapes.items():
            card = hub.get(base + path, {"Host": f"localhost:{hub.port}"})
            assert card.status == 200, path
            assert card.json.keys() >= members, path
            place = card.json.get("url", card.json.get("endpoint"))
            assert place.startswith(f"http://localhost:{hub.port}{base}")
        for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            pure = hub.get(base + path, VERSION).json
            assert pure.keys() >= MEMBERS["a2a-1.0"]
            assert "protocolVersion" not in pure
            assert "url" not in pure
    assert hub.get(PLACES["platform"].format(agent.id)).json.keys() >= {"id", "name", "version", "skills", "endpoint"}


# -- whose id it is


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("owners") / "data") as hub:
        yield hub
        assert tracebacks(hub) == []


PLATFORM: Final[dict[str, Any]] = {"description": "d", "skills": [{"name": "echo", "description": "d"}]}
WAYS: Final = (*SLUGS, "directory's own", "agentvault's own")


def _register(hub: HubProcess, way: str, name: str, url: str, token: str) -> int:
    """Register an agent as tests.{name}, in a dialect or at that dialect's own registry; the HTTP status."""
    agent_id, hri = f"tests.{name}", f"tests/{name}"
    vault: dict[str, Any] = {
        "schemaVersion": "1.0",
        "humanReadableId": hri,
        "agentVersion": "1.0.0",
        "name": name,
        "description": "d",
        "url": url,
        "provider": {"name": "p"},
        "capabilities": {"a2aVersion": "0.2"},
        "authSchemes": [{"scheme": "none"}],
    }
    record = {"agentId": agent_id, "name": name, "capabilities": ["echo"], "endpoint": url}
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    cards: dict[str, dict[str, Any]] = {
        "a2a-1.0": {"name": name, "supportedInterfaces": [interface], "skills": []},
        "a2a-0.3": {"name": name, "protocolVersion": "0.3.0", "url": url, "skills": []},
        "agentvault": vault,
        "envelope": {"id": agent_id, "name": name, "version": "1.0.0", "endpoint": url, "supported_tasks": ["echo"]},
        "directory": record,
        "platform": {"id": agent_id, "name": name, "version": "1.0.0", "endpoint": url, **PLATFORM},
        "dotted": {"name": name, "url": url},
    }
    if way == "directory's own":
        return hub.post("/a2a/register", record, token=token).status
    if way == "agentvault's own":
        return hub.post("/api/v1/agent-cards/", {"card_data": vault}, token=token).status
    named = {} if way in ("agentvault", "envelope", "directory", "platform") else {"id": agent_id}
    return hub.post("/v1/a2a/registry", {"agent_card": cards[way], **named}, token=token).status


@pytest.mark.req("X-13")
@pytest.mark.parametrize("way", WAYS)
def test_an_id_registered_in_one_dialect_is_not_taken_over_through_another(guarded: HubProcess, way: str) -> None:
    mine, theirs = guarded.new_key("a2a:register"), guarded.new_key("a2a:register")
    name = fresh("owned")
    assert _register(guarded, way, name, "http://localhost:65001/", mine) in (200, 201)
    before = guarded.get(f"/v1/agents/tests.{name}").json
    for other in WAYS:
        assert _register(guarded, other, name, "http://localhost:65002/", theirs) == 403, other
    assert guarded.get(f"/v1/agents/tests.{name}").json == before
    assert _register(guarded, way, name, "http://localhost:65003/", mine) in (200, 201)
