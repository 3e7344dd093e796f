"""What calls use up: told by agents of every dialect, summed over all that a call caused, shown by day, caller …"""

import csv
import io
from typing import Any, Final

import pytest

from tests.end_to_end.every_dialect import SLUGS, asked
from tests.end_to_end.loop_agents import Link, begun, chain
from tests.end_to_end.world import eventually, fresh, join, log_lines, says
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent

TOLD: Final = {"input_tokens": 5, "output_tokens": 2, "cost_usd": 0.25, "model": "m-1"}


def used_by(hub: HubProcess, call_id: str) -> Any:
    """What a call used, as the hub shows it."""
    return hub.get(f"/v1/calls/{call_id}").json["usage"]


def shown_usage(hub: HubProcess, query: str, token: str = "", accept: str = "application/json") -> Reply:
    """The sums that the hub answers; while it is pressed it lists nothing."""

    def answered() -> Reply | None:
        reply = hub.get(f"/v1/calls/usage?{query}", {"Accept": accept}, token)
        return None if reply.status == 503 else reply

    return eventually(answered, "the sums are shown")


@pytest.mark.parametrize("slug", [slug for slug in SLUGS if slug != "directory"])
def test_an_agent_of_every_dialect_tells_what_it_used(hub: HubProcess, slug: str) -> None:
    with chain(hub, slug) as (agent,):
        agent.calls_on, agent.usage = None, TOLD
        call = begun(hub, agent).json
        assert TOLD.items() <= used_by(hub, call["id"]).items()
        assert TOLD.items() <= call["usage"].items()


@pytest.mark.parametrize("slug", ["dotted", "a2a-0.3", "a2a-1.0", "agentvault"])
def test_a_caller_of_another_dialect_is_told_beside_the_task(hub: HubProcess, agent: PlatformAgent, slug: str) -> None:
    agent.respond = says({"status": "completed", "result": {}, "usage": TOLD})
    target = join(hub, agent)["id"]
    answer = asked(slug, target, "x").post(hub).json["result"]
    if slug == "agentvault":
        call = {"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"id": answer["id"]}}

        def done() -> Any:
            shown = hub.post(f"/agents/{target}/agentvault", call).json["result"]
            return shown if shown["state"] == "COMPLETED" else None

        answer = eventually(done, "the task is completed")
    task = answer.get("task", answer)
    assert task["metadata"]["dragoman"]["usage"] == TOLD


def test_claims_that_make_no_sense_are_dropped_with_a_line(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = says({"status": "completed", "result": {}, "usage": {"tokens": -5, "cost_usd": 1e300, "images": 2}})
    answer = hub.call("echo", {}, join(hub, agent)["id"]).json
    assert answer["usage"] == {"images": 2}
    [line] = [
        line
        for line in log_lines(hub)
        if line.get("call_id") == answer["id"] and "makes no sense" in str(line.get("message"))
    ]
    assert (line["level"], line["claims"]) == ("warning", ["tokens", "cost_usd"])


def test_without_a_word_of_the_agent_the_card_tells_the_cost(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = says({"status": "completed", "result": {}, "usage": {"input_tokens": 2000}})
    target = join(hub, agent, pricing={"usd_per_call": 0.01, "usd_per_1k_input": 0.001})["id"]
    usage = {"input_tokens": 2000, "cost_usd": 0.012, "estimated": True}
    answer = hub.call("echo", {}, target).json
    assert answer["usage"] == used_by(hub, answer["id"]) == usage
    agent.respond = says((500, {}, b'{"status": "failed", "error": {"code": "X", "message": "broke"}}'))
    failed = hub.call("echo", {}, target).json
    assert "usage" not in failed


def test_the_root_of_a_chain_shows_what_all_of_it_cost(hub: HubProcess) -> None:
    with chain(hub, "platform", "a2a-1.0", "dotted") as links:
        for link in links:
            link.usage = TOLD
        links[-1].calls_on = None
        call = begun(hub, links[0]).json
        shown = hub.get(f"/v1/calls/{call['id']}").json
        assert shown["usage"]["cost_usd"] == 0.25
        total = {"calls": 3, "tokens": 21, "input_tokens": 15, "output_tokens": 6, "cost_usd": 0.75}
        assert shown["usage_total"] == total
        second: Link = links[1]
        assert second.answered[0].json["result"]["task"]["id"]


def test_what_a_stranger_says_belongs_to_a_call_is_not_added_to_it(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent)["id"]
    call = hub.call("echo", {}, target).json
    other = hub.new_key("a2a:call")
    assert hub.call("echo", {}, target, token=other, context={"parent_execution_id": call["id"]}).status == 200
    assert hub.get(f"/v1/calls/{call['id']}").json["usage_total"]["calls"] == 1


def test_usage_is_summed_by_whatever_is_known_and_each_sees_its_own(hub: HubProcess, agent: PlatformAgent) -> None:
    target, conversation = join(hub, agent)["id"], fresh("conv")
    key = hub.new_key("a2a:call")
    agent.respond = says({"status": "completed", "result": {}, "usage": {**TOLD, "cost_usd": 0.1}})
    for _ in range(3):
        hub.call("echo", {}, target, token=key, context={"conversation_id": conversation})

    def items(by: str, token: str = key) -> dict[str, Any]:
        reply = shown_usage(hub, f"by={by}", token)
        return {item.pop("name"): item for item in reply.json["items"]}

    sums = {"calls": 3, "tokens": 21, "input_tokens": 15, "output_tokens": 6}
    money = {"cost_usd": "0.3", "estimated_usd": "0"}
    eventually(lambda: items("target").get(target, {}).get("calls") == 3, "all calls were noted")
    assert items("target") == {target: {**sums, **money}}
    assert items("skill") == {"echo": {**sums, **money}}
    assert items("model") == {"m-1": {**sums, **money}}
    assert items("conversation") == {conversation: {**sums, **money}}
    [(day, on_that_day)] = items("day").items()
    assert (len(day), on_that_day["calls"]) == (10, 3)
    [mine] = items("caller")
    assert items("caller", hub.token or "")[mine]["calls"] == 3
    assert shown_usage(hub, "from=2020-01-01&to=2020-01-31", key).json["items"] == []


def test_usage_is_shown_as_csv_and_no_name_is_a_formula(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = says({"status": "completed", "result": {}, "usage": {"model": "=cmd()", "cost_usd": 0.5}})
    key, target = hub.new_key("a2a:call"), join(hub, agent)["id"]
    hub.call("echo", {}, target, token=key)

    def rows() -> list[list[str]]:
        reply = shown_usage(hub, "by=model", key, "text/csv")
        assert reply.headers["content-type"].startswith("text/csv")
        return list(csv.reader(io.StringIO(reply.body.decode())))

    eventually(lambda: len(rows()) == 2, "the call was noted")
    head, row = rows()
    assert head == ["model", "calls", "tokens", "input_tokens", "output_tokens", "cost_usd", "estimated_usd"]
    assert row == ["'=cmd()", "1", "0", "0", "0", "0.5", "0"]
    assert shown_usage(hub, "by=model&format=csv", key).body.startswith(b"model,calls")


@pytest.mark.parametrize(
    "query", ["by=weather", "from=yesterday", "from=2026-02-01&to=2026-01-01", "from=2020-01-01", "format=xml", "x=1"]
)
def test_what_makes_no_sense_is_refused(hub: HubProcess, query: str) -> None:
    reply = shown_usage(hub, query)
    assert (reply.status, reply.json["error"]["code"]) == (400, "VALIDATION_ERROR")
