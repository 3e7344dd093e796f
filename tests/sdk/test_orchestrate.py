"""Chains, fans and delegation in the caller's process, over a real hub."""

import asyncio
import threading
from typing import Any

import pytest

from dragoman import A2AClient, Step, errors
from dragoman.model.json import Json, JsonObject
from dragoman.orchestrate import chain, delegate, fan_out
from dragoman.sdk.client.results import CallResult
from tests.end_to_end.world import join, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import platform_agent


class CountingClient(A2AClient):
    """Notes how many of its calls are under way at once."""

    at_once = most = 0

    async def call(self, *words: Any, **options: Any) -> CallResult:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            return await super().call(*words, **options)
        finally:
            self.at_once -= 1


class Workers:
    """An agent at a hub that does as the name of each skill says."""

    def __init__(self, client: CountingClient) -> None:
        self.client = client
        self.id = ""
        self.release = threading.Event()

    def work(self, body: dict[str, Any]) -> dict[str, Any]:
        given = body["input"]
        match body["skill"]:
            case "fail":
                return {"status": "failed", "error": {"code": "AGENT_ERROR", "message": "it broke"}}
            case "hold":
                self.release.wait(10)
                return {"result": given}
            case "count":
                return {"result": {"n": given.get("n", 0) + 1}}
            case _:
                return {"result": given}


@pytest.fixture
def workers(open_hub: HubProcess) -> Any:
    made = Workers(CountingClient(open_hub.url))
    names = ("echo", "fail", "hold", "count", "handle")
    with platform_agent(made.work) as agent:
        made.id = join(open_hub, agent, skills=[skill(name) for name in names])["id"]
        yield made


def step(workers: Workers, name: str, input: Any = None, id: str | None = None) -> Step:
    return Step(id, skill=name, agent=workers.id, input=input)


def ten_times(previous: Json) -> JsonObject:
    return {"n": previous["n"] * 10}


def all_of(found: Json) -> JsonObject:
    return {"all": found}


def test_a_chain_hands_each_result_to_the_next_step(workers: Workers) -> None:
    async def chained() -> Any:
        return await chain(
            step(workers, "count", {"n": 1}),
            step(workers, "count"),
            step(workers, "count", ten_times, id="third"),
            step(workers, "echo", {"first": Step.result("0", "/n"), "third": Step.result("third"), "-": Step.result()}),
            client=workers.client,
        )

    assert asyncio.run(chained()) == {"first": 2, "third": {"n": 31}, "-": {"n": 31}}


def test_a_chain_ends_with_the_first_failure(workers: Workers) -> None:
    with pytest.raises(errors.AgentError, match="it broke"):
        asyncio.run(chain(step(workers, "fail", {}), step(workers, "echo"), client=workers.client))


def test_a_fan_keeps_the_order_and_its_limit(workers: Workers) -> None:
    steps = [step(workers, "echo", {"n": n}) for n in range(7)]
    assert asyncio.run(fan_out(steps, limit=3, client=workers.client)) == [{"n": n} for n in range(7)]
    assert workers.client.most == 3


def test_a_failure_in_a_fan_is_raised_as_it_is_and_cancels_the_rest(workers: Workers) -> None:
    steps = [step(workers, "hold", {}), step(workers, "fail", {}), step(workers, "hold", {})]
    with pytest.raises(errors.AgentError, match="it broke"):
        asyncio.run(fan_out(steps, client=workers.client))
    workers.release.set()


def test_failures_can_be_collected_in_their_places_and_the_rest_be_merged(workers: Workers) -> None:
    steps = [step(workers, "echo", {"n": 1}), step(workers, "fail", {}), step(workers, "echo", {"n": 2})]

    async def fanned() -> tuple[Any, Any, Any]:
        collected = await fan_out(steps, on_error="collect", client=workers.client)
        merge = step(workers, "echo", all_of)
        merged = await fan_out(steps, on_error="collect", merge=merge, client=workers.client)
        plain = await fan_out(steps[:1], merge=step(workers, "echo"), client=workers.client)
        return collected, merged, plain

    collected, merged, plain = asyncio.run(fanned())
    assert [collected[0], collected[2]] == [{"n": 1}, {"n": 2}]
    assert isinstance(collected[1], errors.AgentError)
    assert merged == {"all": [{"n": 1}, {"n": 2}]}
    assert plain == {"results": [{"n": 1}]}


def test_a_quorum_is_enough_and_the_rest_is_let_go(workers: Workers) -> None:
    steps = [step(workers, "hold", {}), step(workers, "echo", {"n": 1}), step(workers, "fail", {}),
             step(workers, "echo", {"n": 2})]  # fmt: skip
    found = asyncio.run(fan_out(steps, quorum=2, client=workers.client))
    workers.release.set()
    assert found == [{"n": 1}, {"n": 2}]


def test_a_quorum_that_cannot_be_reached_any_more_is_a_failure(workers: Workers) -> None:
    steps = [step(workers, "fail", {}), step(workers, "fail", {}), step(workers, "hold", {})]
    with pytest.raises(errors.AgentError):
        asyncio.run(fan_out(steps, quorum=2, client=workers.client))
    workers.release.set()
    with pytest.raises(ValueError, match="quorum"):
        asyncio.run(fan_out(steps, quorum=4, client=workers.client))


def test_a_task_goes_to_whom_its_label_names_and_else_to_the_fallback(workers: Workers) -> None:
    asked: list[Any] = []

    async def classify(task: str, labels: list[str] | None = None) -> str | None:
        asked.append(labels)
        return "code" if "code" in task else None

    async def delegated(task: str, **more: Any) -> Any:
        to = {"code": workers.id, "writing": "agt_writer"}
        return await delegate(task, to=to, classify=classify, client=workers.client, **more)

    assert asyncio.run(delegated("write code")) == {"task": "write code"}
    assert asyncio.run(delegated("sing", fallback=str.upper)) == "SING"
    assert asked == [["code", "writing"]] * 2
    with pytest.raises(errors.AgentNotFound, match="Nobody fits"):
        asyncio.run(delegated("sing"))
