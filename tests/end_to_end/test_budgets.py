"""Keys with a budget: what is spent is spent, over kills too, and what is refused costs nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.loop_agents import begun, chain, shown_chain
from tests.end_to_end.world import eventually, fresh, join, says
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent

PRICE: Final = {"usd_per_call": 0.1}


def over(reply: Reply, budget: str) -> Any:
    """The facts of a refusal for a budget that is spent."""
    assert reply.status == 429, reply.body
    assert reply.json["error"]["code"] == "RATE_LIMITED"
    details = reply.json["error"]["details"]
    assert (details["reason"], details["budget"]) == ("budget", budget)
    return details


def calls_of(hub: HubProcess, key: str) -> tuple[int, str]:
    """How many calls of a key were charged, and what they cost."""

    def shown() -> Reply | None:
        reply = hub.get("/v1/calls/usage", token=key)
        return reply if reply.status == 200 else None  # A hub that is pressed lists nothing for a while.

    total = eventually(shown, "the usage is shown").json["total"]
    return total["calls"], total["cost_usd"]


def charged(hub: HubProcess, key: str, calls: int) -> None:
    """So many calls of a key have been charged; that is a moment after their answers."""
    eventually(lambda: calls_of(hub, key)[0] >= calls, "the calls were charged")


def test_a_day_has_its_budget_and_the_refusal_says_until_when(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent, pricing=PRICE)["id"]
    agent.respond = says({"status": "completed", "result": {}})
    key = hub.new_key("a2a:call", budget={"usd_per_day": 0.25})
    for number in range(3):
        assert hub.call("echo", {}, target, token=key).status == 200
        charged(hub, key, number + 1)
    refusal = hub.call("echo", {}, target, token=key)
    assert over(refusal, "usd_per_day")["spent"] == "0.3"
    assert 0 < int(refusal.headers["retry-after"]) <= 86_400
    assert len(agent.requests) == 3
    assert hub.call("echo", {}, target).status == 200


def test_tokens_have_a_budget_too(hub: HubProcess, agent: PlatformAgent) -> None:
    target, key = join(hub, agent)["id"], hub.new_key("a2a:call", budget={"tokens_per_day": 3})
    assert hub.call("echo", {}, target, token=key).status == 200
    charged(hub, key, 1)
    assert over(hub.call("echo", {}, target, token=key), "tokens_per_day")["spent"] == 3


@pytest.mark.parametrize("budget", [{"usd_per_conversation": 0.002}, {"calls_per_conversation": 2}])
def test_a_conversation_has_its_budget_and_another_one_its_own(
    hub: HubProcess, agent: PlatformAgent, budget: dict[str, float]
) -> None:
    target, key, context = join(hub, agent)["id"], hub.new_key("a2a:call", budget=budget), fresh("conv")
    for number in range(2):
        assert hub.call("echo", {}, target, token=key, context={"conversation_id": context}).status == 200
        charged(hub, key, number + 1)
    refusal = hub.call("echo", {}, target, token=key, context={"conversation_id": context})
    assert over(refusal, next(iter(budget)))["conversation_id"] == context
    assert "retry-after" not in refusal.headers
    assert refusal.json["error"]["retryable"] is False
    assert hub.call("echo", {}, target, token=key, context={"conversation_id": fresh("conv")}).status == 200
    assert hub.call("echo", {}, target, token=key).status == 200


def _restarted(folder: Path, agent: PlatformAgent, planted: str = "") -> None:
    """A hub is killed after its key has spent all; the next one knows."""
    agent.respond = says({"status": "completed", "result": {}})
    hub = HubProcess(folder / "data", planted=planted).start()
    try:
        target = join(hub, agent, pricing=PRICE)["id"]
        key = hub.new_key("a2a:call", budget={"usd_per_day": 0.1})
        assert hub.call("echo", {}, target, token=key).status == 200
        hub.kill()
        hub.start()
        over(hub.call("echo", {}, target, token=key), "usd_per_day")
        assert calls_of(hub, key) == (1, "0.1")
    finally:
        hub.kill()


def _refused_for_nothing(folder: Path, agent: PlatformAgent, planted: str = "") -> None:
    """Whoever is refused has not paid for it."""
    agent.respond = says({"status": "completed", "result": {}})
    with running_hub(folder / "data", planted=planted) as hub:
        target = join(hub, agent, pricing=PRICE)["id"]
        key = hub.new_key("a2a:call", budget={"usd_per_day": 0.1})
        assert hub.call("echo", {}, target, token=key).status == 200
        charged(hub, key, 1)
        for _ in range(3):
            over(hub.call("echo", {}, target, token=key), "usd_per_day")
        assert calls_of(hub, key) == (1, "0.1")


def _circle(folder: Path, _agent: PlatformAgent, planted: str = "") -> None:
    """Two agents call each other, one of them in a dialect without a field for it."""
    with running_hub(folder / "data", planted=planted) as hub, chain(hub, "platform", "dotted") as (first, second):
        begun(hub, first)
        assert shown_chain(second.answered[0]) == [first.id, second.id, first.id]


def test_a_killed_hub_remembers_what_was_spent(tmp_path: Path, agent: PlatformAgent) -> None:
    _restarted(tmp_path, agent)


def test_a_refused_call_is_not_charged(tmp_path: Path, agent: PlatformAgent) -> None:
    _refused_for_nothing(tmp_path, agent)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("bug", "shown"),
    [("budget_forgotten", _restarted), ("refused_is_charged", _refused_for_nothing), ("chain_lost", _circle)],
)
def test_the_bug_would_be_found(
    tmp_path: Path, agent: PlatformAgent, bug: str, shown: Callable[[Path, PlatformAgent, str], None]
) -> None:
    with pytest.raises(AssertionError):
        shown(tmp_path, agent, bug)
