"""An agent whose card was signed and is no longer, or by another key, is found and called by nobody until approved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import environment, piped
from tests.end_to_end.world import fresh, refused
from tests.support.card_maker import CardMaker, card_maker
from tests.support.hub import HubProcess, Reply, running_hub


@pytest.fixture
def maker() -> Iterator[CardMaker]:
    with card_maker() as maker:
        yield maker


@pytest.fixture
def owner(hub: HubProcess) -> str:
    """The key of somebody who registers agents and administers nothing."""
    return hub.new_key("a2a:register", "a2a:call", "a2a:receive")


@pytest.fixture
def agent(hub: HubProcess, maker: CardMaker, owner: str) -> str:
    """An agent that was registered with a signed card."""
    reply = _register(hub, owner, fresh("agt_pinned"), agent_card=maker.signed())
    assert (reply.status, reply.json["trust"]) == (201, "signed"), reply.body
    agent_id: str = reply.json["id"]
    return agent_id


def _register(hub: HubProcess, owner: str, agent: str, **body: Any) -> Reply:
    return hub.post("/v1/a2a/registry", {"id": agent, **body}, token=owner)


def _called(hub: HubProcess, maker: CardMaker, agent: str) -> bool:
    """Whether a call gets through to the agent."""
    before = maker.calls
    reply = hub.call("talk", {"text": "hello"}, agent=agent)
    assert (reply.status == 200) == (maker.calls > before), reply.body
    return maker.calls > before


def _found(hub: HubProcess, agent: str, query: str = "") -> bool:
    found = hub.get(f"/v1/a2a/discover?limit=100{query}").json["agents"]
    return agent in {each["id"] for each in found}


def _approve(hub: HubProcess, agent: str, token: str = "") -> Reply:
    return hub.request("PATCH", f"/v1/agents/{agent}", {"trust": "approve"}, token=token)


def _assert_quarantined(hub: HubProcess, maker: CardMaker, agent: str, why: str) -> None:
    shown = hub.get(f"/v1/agents/{agent}").json
    assert (shown["status"], shown["trust"], shown["doubt"]) == ("quarantined", "unverified", why)
    assert not _found(hub, agent)
    assert _found(hub, agent, "&status=quarantined")
    assert not _called(hub, maker, agent)
    error = refused(hub.call("talk", {}, agent=agent), 503, "AGENT_UNAVAILABLE")
    assert why in error["message"]
    assert f"dragoman agents approve {agent}" in error["message"]


DROPPED = "its card is no longer signed"
CHANGED = "its card is signed with another key than before"


def test_a_card_with_the_same_key_changes_nothing(hub: HubProcess, maker: CardMaker, owner: str, agent: str) -> None:
    asked = len(maker.asked)
    again = _register(hub, owner, agent, agent_card=maker.signed(maker.card(version="1.1.0")))
    assert (again.status, again.json["status"], again.json["trust"]) == (200, "registered", "signed")
    assert len(maker.asked) == asked  # The key is known: nobody is asked for it.
    assert _found(hub, agent)
    assert _called(hub, maker, agent)


def test_a_dropped_signature_is_doubted_until_an_administrator_approves(
    hub: HubProcess, maker: CardMaker, owner: str, agent: str
) -> None:
    answer = _register(hub, owner, agent, agent_card=maker.card())
    assert (answer.json["status"], answer.json["doubt"]) == ("quarantined", DROPPED)
    _assert_quarantined(hub, maker, agent, DROPPED)
    approved = _approve(hub, agent)
    assert (approved.json["status"], approved.json["trust"]) == ("active", "unverified")
    assert _found(hub, agent)
    assert _called(hub, maker, agent)


def test_a_changed_key_is_doubted_and_approved_it_is_the_key_that_counts(
    hub: HubProcess, maker: CardMaker, owner: str, agent: str
) -> None:
    old_key, old_kid = maker.key, maker.kid
    maker.new_key()
    _register(hub, owner, agent, agent_card=maker.signed())
    _assert_quarantined(hub, maker, agent, CHANGED)
    assert _approve(hub, agent).json["trust"] == "signed"
    assert _called(hub, maker, agent)
    again = _register(hub, owner, agent, agent_card=maker.signed(maker.card(version="1.2.0")))
    assert again.json["status"] == "registered"
    maker.key, maker.kid = old_key, old_kid
    refused(_register(hub, owner, agent, agent_card=maker.signed()), 400, "VALIDATION_ERROR")
    assert _called(hub, maker, agent)


def test_only_an_administrator_ends_a_doubt(hub: HubProcess, maker: CardMaker, owner: str, agent: str) -> None:
    _register(hub, owner, agent, agent_card=maker.card())
    refused(_approve(hub, agent, owner), 403, "AUTHORIZATION_ERROR")
    for status in ("active", "paused"):
        error = hub.request("PATCH", f"/v1/agents/{agent}", {"status": status}, token=owner)
        assert "dragoman agents approve" in refused(error, 403, "AUTHORIZATION_ERROR")["message"]
    assert hub.request("PATCH", f"/v1/agents/{agent}", {"open": True}, token=owner).status == 200
    # Not even the card that was fine before does.
    assert _register(hub, owner, agent, agent_card=maker.signed()).json["status"] == "quarantined"
    _assert_quarantined(hub, maker, agent, DROPPED)
    assert _approve(hub, agent).json["trust"] == "signed"


def test_a_removal_does_not_forget_the_key(hub: HubProcess, maker: CardMaker, owner: str, agent: str) -> None:
    assert hub.request("DELETE", f"/v1/agents/{agent}", token=owner).status == 200
    maker.new_key()
    assert _register(hub, owner, agent, agent_card=maker.signed()).json["status"] == "quarantined"
    _assert_quarantined(hub, maker, agent, CHANGED)


def test_the_card_of_an_agent_in_doubt_is_shown_to_its_owner_alone(
    hub: HubProcess, maker: CardMaker, owner: str, agent: str
) -> None:
    _register(hub, owner, agent, agent_card=maker.card(), open=True)
    place = f"/agents/{agent}/.well-known/agent-card.json"
    assert hub.get(place, token=hub.new_key("a2a:call")).status == 503
    assert hub.get(place, token=owner).status == 200


def test_a_wrong_signature_changes_nothing_of_what_is_there(
    hub: HubProcess, maker: CardMaker, owner: str, agent: str
) -> None:
    card = maker.signed()
    card["description"] = "Says it otherwise"
    refused(_register(hub, owner, agent, agent_card=card), 400, "VALIDATION_ERROR")
    assert hub.get(f"/v1/agents/{agent}").json["description"] == "Says it again"
    assert _called(hub, maker, agent)


@pytest.mark.parametrize("changed", [True, False], ids=["another key", "no signature"])
def test_a_look_at_a_signed_agent_doubts_what_it_shows_now(
    hub: HubProcess, maker: CardMaker, owner: str, changed: bool
) -> None:
    maker.show(maker.signed())
    agent = fresh("agt_looked")
    assert _register(hub, owner, agent, url=maker.url).json["trust"] == "signed"
    assert hub.post(f"/v1/agents/{agent}/probe", {}).status == 200
    assert _called(hub, maker, agent)
    if changed:
        maker.new_key()
    maker.show(maker.signed() if changed else maker.card())
    hub.post(f"/v1/agents/{agent}/probe", {})
    _assert_quarantined(hub, maker, agent, CHANGED if changed else DROPPED)


def test_a_call_that_nobody_waits_for_is_not_taken_either(
    hub: HubProcess, maker: CardMaker, owner: str, agent: str
) -> None:
    _register(hub, owner, agent, agent_card=maker.card())
    reply = hub.post("/v1/a2a/call/async", {"skill": "talk", "input": {}, "target_agent_id": agent})
    assert (reply.status, maker.calls) == (503, 0)


def test_where_everybody_is_the_operator_nobody_has_to_approve(maker: CardMaker, tmp_path: Path) -> None:
    with running_hub(tmp_path / "data", auth="none") as hub:
        agent = hub.register(maker.signed(), id="agt_here")["id"]
        maker.new_key()
        again = hub.register(maker.signed(), id=agent)
        assert (again["status"], again["trust"]) == ("registered", "signed")
        assert _called(hub, maker, agent)


def test_the_command_line_shows_and_ends_a_doubt(
    hub: HubProcess, maker: CardMaker, owner: str, agent: str, tmp_path: Path
) -> None:
    _register(hub, owner, agent, agent_card=maker.card())
    env = environment(tmp_path, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=hub.token or "")
    shown = piped("agents", "show", agent, env=env).out
    assert "status\tquarantined\n" in shown
    assert f"doubt\t{DROPPED}\n" in shown
    assert "trust\tunverified\n" in shown
    assert agent in piped("agents", "ls", "--status", "quarantined", "--limit", "100", env=env).out
    approved = piped("agents", "approve", agent, env=env)
    assert (approved.code, approved.out) == (0, f"{agent}\tactive\n")
    again = piped("agents", "approve", agent, env=env)
    assert again.code != 0
    assert "is not quarantined" in again.err
