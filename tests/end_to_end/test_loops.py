"""Agents that call each other in a circle, each in its own dialect, are stopped: the hub knows who waits for whom."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.end_to_end.every_dialect import SLUGS, asked
from tests.end_to_end.loop_agents import begun, chain, shown_chain
from tests.end_to_end.world import eventually
from tests.support.hub import HubProcess

# How each dialect says it: the status of HTTP, and the code.
WORDS: Final = {
    "platform": (409, "VALIDATION_ERROR"),
    "envelope": (400, "PAYLOAD_VALIDATION_FAILED"),
    **dict.fromkeys(("a2a-1.0", "a2a-0.3", "dotted", "directory", "agentvault"), (200, -32602)),
}


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub where nobody is asked who he is."""
    hub = HubProcess(tmp_path_factory.mktemp("open") / "data", auth="none")
    try:
        yield hub.start({"DRAGOMAN_CALLS_PER_CONVERSATION": "3", "DRAGOMAN_CALLS_MAX_DEPTH": "2"})
    finally:
        hub.stop()


@pytest.mark.req("P-34")
@pytest.mark.parametrize("slug", SLUGS)
def test_a_call_comes_back_to_nobody_in_no_dialect(hub: HubProcess, slug: str) -> None:
    with chain(hub, "platform", slug) as (first, second):
        assert begun(hub, first).json["status"] == "completed"
        [refusal] = second.answered
        assert shown_chain(refusal) == [first.id, second.id, first.id]
        status, code = WORDS[slug]
        assert (refusal.status, str(code) in refusal.body.decode()) == (status, True)
        assert len(first.said) == len(second.said) == 1


@pytest.mark.req("P-34")
@pytest.mark.parametrize(
    "slugs",
    [
        ("platform", "a2a-1.0", "directory"),
        ("dotted", "agentvault", "a2a-0.3"),
        ("platform", "a2a-1.0", "directory", "dotted"),
        ("envelope", "directory", "a2a-0.3", "agentvault"),
    ],
    ids=" ".join,
)
def test_a_circle_through_several_dialects_is_closed_by_none(hub: HubProcess, slugs: tuple[str, ...]) -> None:
    with chain(hub, *slugs) as links:
        assert begun(hub, links[0]).json["status"] == "completed"
        eventually(lambda: len(links[-1].answered) == 1, "the last agent was answered")
        assert shown_chain(links[-1].answered[0]) == [*(link.id for link in links), links[0].id]
        assert [len(link.said) for link in links] == [1] * len(links)


@pytest.mark.parametrize("way", ["name", "block", "span", "spelled", "trace", "conversation"])
@pytest.mark.parametrize("slug", ["dotted", "a2a-1.0"])
def test_each_thing_that_is_passed_on_tells_whom_a_call_is_for(hub: HubProcess, slug: str, way: str) -> None:
    with chain(hub, "platform", slug) as (first, second):
        second.passes = way
        begun(hub, first)
        assert shown_chain(second.answered[0]) == [first.id, second.id, first.id]


def test_nothing_passed_on_is_no_loop_and_the_next_call_is_still_made(hub: HubProcess) -> None:
    with chain(hub, "platform", "dotted") as (first, second):
        second.passes = ""
        first.calls_on = None
        assert asked("platform", second.id, "x").post(hub).status == 200
        assert second.answered[0].json["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize("way", ["name", "block", "span", "trace", "conversation"])
def test_what_a_stranger_names_does_not_count(hub: HubProcess, way: str) -> None:
    with chain(hub, "platform", "dotted") as (first, second):
        second.token, second.passes = hub.new_key("a2a:call"), way
        begun(hub, first)
        assert second.answered[0].json["result"]["status"]["state"] == "completed"
        assert len(first.said) == 2


def test_the_owner_of_an_agent_may_name_its_calls(hub: HubProcess) -> None:
    owner = hub.new_key("a2a:call", "a2a:register")
    with chain(hub, "platform", "dotted") as (first, second):
        card = {"name": "Mine", "version": "1.0.0", "url": second.stub.url, "skills": [{"id": "echo", "name": "echo"}]}
        reply = hub.post("/v1/a2a/registry", {"agent_card": card, "id": f"{second.id}-mine"}, token=owner)
        second.id, second.token, second.passes = reply.json["id"], owner, "span"
        begun(hub, first)
        assert shown_chain(second.answered[0]) == [first.id, second.id, first.id]


def test_a_call_that_has_ended_is_found_by_its_name_in_the_store(hub: HubProcess) -> None:
    with chain(hub, "platform", "platform") as (first, second):
        second.calls_on = None
        begun(hub, first)
        named = {"parent_execution_id": second.said[0]["call_id"]}
        reply = hub.call("echo", {}, first.id, token=second.token, context=named)
        assert shown_chain(reply) == [first.id, second.id, first.id]


@pytest.mark.req("P-34")
@pytest.mark.parametrize("way", ["name", "span"])
def test_where_nobody_is_asked_who_he_is_a_claim_counts(open_hub: HubProcess, way: str) -> None:
    with chain(open_hub, "platform", "a2a-1.0") as (first, second):
        first.passes = second.passes = way
        begun(open_hub, first)
        assert shown_chain(second.answered[0]) == [first.id, second.id, first.id]


@pytest.mark.req("P-34")
def test_a_chain_that_grows_too_long_is_refused_and_shown(open_hub: HubProcess) -> None:
    with chain(open_hub, "platform", "dotted", "a2a-1.0", "platform") as links:
        begun(open_hub, links[0])
        refusal = links[2].answered[0]
        assert shown_chain(refusal) == [link.id for link in links]
        assert "deeper than 2" in refusal.json["error"]["message"]


def test_a_conversation_has_so_many_calls_a_day(open_hub: HubProcess) -> None:
    with chain(open_hub, "platform") as (agent,):
        agent.calls_on = None
        for _ in range(3):
            assert open_hub.call("echo", {}, agent.id, context={"conversation_id": "conv-1"}).status == 200
        refusal = open_hub.call("echo", {}, agent.id, context={"conversation_id": "conv-1"})
        assert (refusal.status, refusal.json["error"]["code"]) == (429, "RATE_LIMITED")
        assert refusal.json["error"]["details"]["reason"] == "conversation"
        assert 0 < int(refusal.headers["retry-after"]) <= 86_400
        assert open_hub.call("echo", {}, agent.id, context={"conversation_id": "conv-2"}).status == 200
        assert len(agent.said) == 4
