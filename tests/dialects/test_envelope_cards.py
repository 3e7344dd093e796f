"""The envelope's card: whatever is published is taken, and what the hub serves fits the schema exactly."""

import json
import re
from typing import Any

import msgspec
import pytest

from dragoman.dialects.dialect import Place
from dragoman.dialects.envelope import DIALECT
from dragoman.model.agent import AgentCard, AgentStatus, Provider, RateLimits, Skill
from dragoman.model.answers import Card
from dragoman.model.errors import BadParams
from dragoman.model.operations import GetCard
from tests.dialects.envelope_samples import HUB, ONE, TWO, agent_of, example, exchange_of, shown

PLACE = Place(hub_url=HUB, base_url=f"{HUB}/agents/analyst/")
WORDS = {"research", "analysis", "coding", "writing", "planning", "monitoring", "testing", "deployment", "custom"}
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def fits_schema(card: dict[str, Any]) -> None:
    """The envelope's card schema, rule by rule."""
    assert UUID4.fullmatch(card["id"])
    assert 1 <= len(card["name"]) <= 100
    assert re.fullmatch(r"\d+\.\d+\.\d+", card["version"])
    assert card["capabilities"]
    assert set(card["capabilities"]) <= WORDS
    assert re.match(r"https?://", card["endpoint"])
    assert not card["endpoint"].endswith("/")
    assert card["supported_tasks"]
    assert all(1 <= len(task) <= 50 for task in card["supported_tasks"])
    assert len(card.get("description", "")) <= 500
    assert card["status"] in ("active", "inactive", "busy", "offline")
    assert card.get("max_concurrent_tasks", 1) >= 1
    assert isinstance(card.get("rate_limit", {}), dict)
    assert isinstance(card["metadata"], dict)
    assert isinstance(card.get("tags", []), list)
    assert None not in card.values()
    if "custom" in card["capabilities"] and card["capabilities"] != ["custom"]:
        assert card["metadata"]["custom_capability_name"]


def written(card: AgentCard, **changes: Any) -> dict[str, Any]:
    assert DIALECT.write_card is not None
    served: dict[str, Any] = DIALECT.write_card(agent_of(card, **changes), PLACE)
    fits_schema(served)
    return served


def test_the_examples_card_is_read_with_everything_it_says() -> None:
    card = DIALECT.read_card(example("agent-card"))
    assert (card.id, card.name, card.version, card.description) == (TWO, "Analyst", "1.0.0", "Analyses and writes")
    assert [skill.id for skill in card.skills] == ["analysis", "writing"]
    assert (card.labels, card.tags) == (("analysis", "writing"), ("text",))
    assert card.limits == RateLimits(requests_per_minute=60, requests_per_hour=1000, concurrent_requests=5)
    (endpoint,) = card.endpoints
    assert (endpoint.dialect, endpoint.url, endpoint.tenant) == (
        "envelope",
        "http://localhost:8700/agents/analyst",
        TWO,
    )
    assert card.aliases == (TWO,)


def test_the_examples_card_is_served_with_every_member_it_came_with() -> None:
    came = {**example("agent-card"), "x_vendor": {"anything": [1, None]}, "endpoint": "http://agent.test:9"}
    served = written(DIALECT.read_card(came))
    assert served == {**came, "endpoint": f"{HUB}/agents/analyst"}
    assert list(served) == list(came)


def test_an_agent_that_is_registered_under_another_name_keeps_its_uuid() -> None:
    card = msgspec.structs.replace(DIALECT.read_card(example("agent-card")), id="analyst")
    assert written(card)["id"] == TWO  # the registry's, and the agent's own beside it
    assert card.aliases == (TWO,)


@pytest.mark.parametrize("given", ["agent-001", f"agent-{ONE}", "not an id", 17, None])
def test_any_id_is_taken_and_a_uuid_is_served(given: object) -> None:
    card = DIALECT.read_card({**example("agent-card"), "id": given})
    assert card.id == {"agent-001": "agent-001", f"agent-{ONE}": ONE}.get(str(given), "agt_analyst")
    assert written(card)["id"] == (ONE if card.id == ONE else TWO)


@pytest.mark.parametrize("status", ["online", "", 5, None])
def test_any_status_is_taken_and_one_of_the_schema_is_served(status: object) -> None:
    assert written(DIALECT.read_card({**example("agent-card"), "status": status}))["status"] == "active"


@pytest.mark.parametrize(
    ("own", "hubs", "served"),
    [
        ("busy", AgentStatus.ACTIVE, "busy"),
        ("offline", AgentStatus.ACTIVE, "active"),
        ("active", AgentStatus.PAUSED, "inactive"),
        ("active", AgentStatus.UNREACHABLE, "offline"),
    ],
)
def test_the_hub_knows_better_whether_an_agent_can_be_called(own: str, hubs: AgentStatus, served: str) -> None:
    assert written(DIALECT.read_card({**example("agent-card"), "status": own}), status=hubs)["status"] == served


def test_a_card_with_nothing_but_a_name_and_a_task_is_enough() -> None:
    card = DIALECT.read_card({"name": "Meagre", "supported_tasks": ["x"], "capabilities": None, "rate_limit": "fast"})
    assert card.id == "agt_meagre"
    assert card.endpoints[0].url is None
    served = written(card)
    assert (served["capabilities"], served["metadata"]) == (["custom"], {"custom_capability_name": "x"})


@pytest.mark.parametrize("tasks", [None, [], "research", [5, ""], {}])
def test_a_card_without_a_task_is_refused(tasks: object) -> None:
    with pytest.raises(BadParams, match=r"agent_card\.supported_tasks"):
        DIALECT.read_card({"name": "x", "supported_tasks": tasks})
    with pytest.raises(BadParams, match=r"agent_card\.name"):
        DIALECT.read_card({"supported_tasks": tasks})


def test_capabilities_off_the_list_are_custom_and_come_back_by_their_names() -> None:
    for labels in (("summarize",), ("research", "summarize", "translate"), ("custom",), ("coding",)):
        card = AgentCard(id="x", name="X", skills=(Skill(id="s", name="s"),), labels=labels)
        assert DIALECT.read_card(written(card)).labels == labels


def test_a_custom_capability_keeps_what_its_card_said_of_it() -> None:
    about = {"custom_capability_name": "dowsing", "custom_capability_params": {"depth": 3}, "other": 1}
    came = {**example("agent-card"), "capabilities": ["custom", "analysis"], "metadata": about}
    card = DIALECT.read_card(came)
    assert card.labels == ("dowsing", "analysis")
    assert written(card)["metadata"] == about


def test_a_card_of_another_dialect_fits_the_schema_too() -> None:
    card = AgentCard(
        id="agt_long",
        name="N" * 128,
        description="d" * 4096,
        version="v2",
        skills=(
            Skill(id="s" * 60, name="s", description="does s"),
            Skill(id="s" * 59, name="t"),
            Skill(id="coding", name="coding", tags=("testing",)),
        ),
        limits=RateLimits(concurrent_requests=7),
        tags=("a",),
        provider=Provider(name="Acme"),
        metadata={"k": 1},
    )
    served = written(card)
    assert served["supported_tasks"] == ["s" * 50, "coding"]
    assert served["version"] == "2.0.0"
    assert served["capabilities"] == ["coding", "testing"]
    assert (served["owner"], served["max_concurrent_tasks"], served["tags"]) == ("Acme", 7, ["a"])
    assert served["created_at"] == "2026-01-12T10:00:00.000Z"


@pytest.mark.parametrize(
    ("version", "served"), [("1.2.3", "1.2.3"), ("1.2", "1.2.0"), ("2026-01", "2026.01.0"), ("beta", "1.0.0")]
)
def test_a_version_is_three_numbers(version: str, served: str) -> None:
    assert written(AgentCard(id="x", name="X", version=version, skills=(Skill(id="s", name="s"),)))["version"] == served


def test_a_card_is_told_by_its_tasks() -> None:
    assert DIALECT.owns_card(example("agent-card"))
    assert not DIALECT.owns_card({"endpoint": "http://x", "skills": []})


def test_the_card_is_asked_for_at_an_agents_base_and_at_the_hubs_root() -> None:
    at_base = exchange_of(b"", route="card", agent="analyst")
    assert at_base.operation == GetCard(agent="analyst", public=True)
    assert shown(at_base.reply(Card(agent=agent_of())))["endpoint"] == f"{HUB}/agents/analyst"
    at_root = exchange_of(b"", route="card")
    assert at_root.operation == GetCard(agent=None, public=True)
    served = shown(at_root.reply(Card(agent=agent_of(), is_hub=True)))
    assert (served["endpoint"], served["id"]) == (HUB, TWO)
    assert json.dumps(served)
