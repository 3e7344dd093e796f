"""The client against a real hub: what is called, what comes back, and what is raised."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from dragoman import A2AClient, Data, File, Step, Text, errors
from dragoman.dialects import DIALECTS
from dragoman.sdk.client.results import CallResult
from tests.end_to_end.world import fresh, holds, join, says, skill
from tests.support.agents import a2a_v10
from tests.support.hub import HubProcess
from tests.support.platform_agent import Answer, PlatformAgent, platform_agent
from tests.support.speaking import QUESTION, StubAgent, json_answer, serving


def client_of(hub: HubProcess, *scopes: str) -> A2AClient:
    return A2AClient(hub.url, hub.new_key(*(scopes or ("a2a:call", "a2a:register"))))


@pytest.mark.req("P-63")
def test_a_call_returns_the_result_itself_with_the_rest_as_attributes(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]

    async def called() -> CallResult:
        async with client_of(hub) as client:
            return await client.call(agent_id, "echo", {"query": "tides", "n": [1, 2]})

    result = asyncio.run(called())
    assert result == {"query": "tides", "n": [1, 2]}
    assert isinstance(result, dict)
    assert json.loads(json.dumps({"nested": result})) == {"nested": {"query": "tides", "n": [1, 2]}}
    assert msgspec.json.decode(msgspec.json.encode([result])) == [{"query": "tides", "n": [1, 2]}]
    assert result.id.startswith("a2a_call_")
    assert result.usage == {"tokens": 3, "cost_usd": 0.001}
    assert set(result.timing) == {"queued_at", "started_at", "completed_at", "duration_ms"}
    assert set(result.trace) == {"trace_id", "span_id"}
    assert result.artifacts[0].data == {"query": "tides", "n": [1, 2]}
    assert result.text == ""


def test_without_a_target_the_hub_finds_one_by_the_skill(hub: HubProcess, agent: PlatformAgent) -> None:
    join(hub, agent, skills=[skill("sing")])
    assert asyncio.run(client_of(hub).call(skill="sing", input={"song": "la"})) == {"song": "la"}


def test_a_message_is_words_or_parts_in_place_of_an_input(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]

    async def said() -> list[CallResult]:
        client = client_of(hub)
        parts = [Text("look"), Data({"a": 1}), File(bytes=b"png", name="a.png", mime_type="image/png")]
        return [
            await client.call(agent_id, message="hello"),
            await client.call(agent_id, "echo", message=parts),
            await client.call(agent_id, "echo", message=Data({"b": 2})),
        ]

    words, parts, data = asyncio.run(said())
    assert (words, words.text) == ({"text": "hello"}, "hello")
    assert parts.text == "look"
    assert parts.artifacts[0].parts[2] == File(bytes=b"png", name="a.png", mime_type="image/png")
    assert data == {"b": 2}


def test_a_call_has_an_input_or_a_message(hub: HubProcess) -> None:
    with pytest.raises(TypeError, match="not both"):
        asyncio.run(client_of(hub).call("agt_x", "echo", {"a": 1}, message="hello"))


def test_a_stream_starts_brings_its_pieces_and_completes_with_the_result(hub: HubProcess) -> None:
    with platform_agent(streamed("Tides ", "rise")) as agent:
        agent_id = join(hub, agent, capabilities={"streaming": True})["id"]

        async def heard() -> list[Any]:
            return [event async for event in client_of(hub).stream(agent_id, "echo", {"a": 1})]

        events = asyncio.run(heard())
    assert events[0].type == "start"
    assert "".join(event.content for event in events if event.type == "chunk") == "Tides rise"
    assert [event.progress for event in events if event.type == "progress"] == [0.5]
    assert events[-1].type == "complete"
    assert events[-1].result.text == "Tides rise"
    assert events[-1].result.id == events[0].call_id
    assert [event.seq for event in events] == sorted(event.seq for event in events)


def test_a_submitted_call_is_taken_up_by_its_id_and_awaited(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]

    async def submitted() -> None:
        client = client_of(hub)
        handle = await client.submit(agent_id, "echo", {"a": 1})
        again = client.handle(handle.id)
        assert await again.result(timeout_s=10) == {"a": 1}
        assert (await again.status()).ended
        assert [event.type async for event in again.stream()][-1] == "complete"
        assert (await again.result()).usage["tokens"] == 3

    asyncio.run(submitted())
    assert agent.requests[0][1]["idempotency-key"].startswith("a2a_call_")


def test_waiting_for_a_result_ends_after_the_time_given_and_the_call_goes_on(hub: HubProcess) -> None:
    with platform_agent() as agent:
        agent.respond = holds(agent)
        agent_id = join(hub, agent)["id"]

        async def waited() -> None:
            handle = await client_of(hub).submit(agent_id, "echo", {"a": 1})
            with pytest.raises(TimeoutError):
                await handle.result(timeout_s=0.3)
            assert not (await handle.status()).ended
            agent.release.set()
            assert await handle.result(timeout_s=10) == {"a": 1}

        asyncio.run(waited())


def test_a_call_can_be_cancelled_and_says_so_to_who_waits(hub: HubProcess) -> None:
    with platform_agent() as agent:
        agent.respond = holds(agent)
        agent_id = join(hub, agent)["id"]

        async def cancelled() -> None:
            handle = await client_of(hub).submit(agent_id, "echo", {"a": 1})
            await asyncio.to_thread(agent.arrived.wait, 10)
            assert (await handle.cancel("no longer needed")).status == "cancelled"
            with pytest.raises(errors.CallCancelled) as raised:
                await handle.result(timeout_s=10)
            assert raised.value.call_id == handle.id
            with pytest.raises(errors.Conflict):
                await handle.cancel()

        asyncio.run(cancelled())


def test_a_question_is_answered_by_the_handle_of_the_error(hub: HubProcess) -> None:
    with a2a_v10.agent() as asking:
        agent_id = hub.register(asking.card, id=fresh())["id"]

        async def answered() -> list[str]:
            client = client_of(hub)
            with pytest.raises(errors.InputRequired) as raised:
                await client.call(agent_id, "echo", message="ask")
            assert raised.value.question == QUESTION
            assert "handle.send" in str(raised.value)
            first = await raised.value.handle.send("the red one")
            with pytest.raises(errors.InputRequired) as told:
                async for _ in client.stream(agent_id, "echo", message="ask"):
                    pass
            second = await told.value.handle.send("the blue one")
            waiting = await client.submit(agent_id, "echo", message="ask")
            with pytest.raises(errors.InputRequired) as later:
                await waiting.result(timeout_s=10)
            assert later.value.handle.id == waiting.id
            assert (await waiting.status()).awaiting == "input"
            return [first.text, second.text]

        assert asyncio.run(answered()) == ["the red one", "the blue one"]


def test_agents_are_found_page_after_page_and_no_more_than_asked_for(hub: HubProcess, agent: PlatformAgent) -> None:
    ids = sorted(join(hub, agent, skills=[skill("paged")])["id"] for _ in range(3))

    async def found(**filters: Any) -> list[str]:
        return [each.id async for each in client_of(hub).discover("paged", **filters)]

    assert sorted(asyncio.run(found())) == ids
    assert len(asyncio.run(found(limit=2))) == 2
    assert asyncio.run(found(limit=2, dialect="directory")) == []


def test_pages_are_followed_by_their_cursor() -> None:
    pages = {"": (["a", "b"], "next"), "next": (["c"], None)}
    asked: list[str] = []

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        cursor = dict(parse_qsl(urlsplit(path).query)).get("cursor", "")
        asked.append(cursor)
        names, following = pages[cursor]
        return json_answer({"agents": [{"id": name} for name in names], "total": 3, "next_cursor": following})

    async def found(url: str) -> list[str]:
        return [each.id async for each in A2AClient(url).discover("x")]

    with serving(StubAgent("hub"), handle) as stub:
        assert asyncio.run(found(stub.url)) == ["a", "b", "c"]
    assert asked == ["", "next"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_card_is_shown_in_every_dialect(dialect: str, hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]
    card = asyncio.run(client_of(hub).card(agent_id, dialect))
    assert card["name"] == "Echo"
    assert DIALECTS[dialect].owns_card(card)


def test_an_agent_is_registered_by_its_card_or_by_its_url(hub: HubProcess, agent: PlatformAgent) -> None:
    async def registered() -> tuple[Any, Any]:
        client = client_of(hub, "a2a:register", "a2a:call")
        with a2a_v10.agent() as other:
            return (
                await client.register(agent.card(id=fresh()), tags=["sdk"]),
                await client.register(other.url, id=fresh()),
            )

    by_card, by_url = asyncio.run(registered())
    assert (by_card["dialect"], by_card["status"]) == ("platform", "registered")
    assert by_url["dialect"] == "a2a-1.0"


def test_a_call_is_rated_by_who_made_it(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]

    async def rated() -> Any:
        client = client_of(hub)
        result = await client.call(agent_id, "echo", {})
        with pytest.raises(errors.InputRefused):
            await client.rate(result.id, 6)
        return await client.rate(result.id, 1, "too slow")

    said = asyncio.run(rated())
    assert (said["rating"], said["comment"], said["agent"]) == (1, "too slow", {"id": agent_id, "rating": 4.2})


def test_steps_that_follow_are_carried_through_by_the_hub(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]

    async def worked() -> CallResult:
        handle = await client_of(hub).submit(
            agent_id,
            "echo",
            {"results": ["a", "b"]},
            then=[
                Step(skill="echo", agent=agent_id),
                [Step("one", skill="echo", agent=agent_id), Step("two", skill="echo", agent=agent_id)],
                Step(
                    "last",
                    skill="echo",
                    agent=agent_id,
                    input={"first": Step.result("0", "/results/0"), "one": Step.result("one"), "all": Step.result()},
                ),
            ],
        )
        return await handle.result(timeout_s=15)

    whole = {"results": ["a", "b"]}
    assert asyncio.run(worked()) == {"first": "a", "one": whole, "all": [whole, whole]}


def test_a_step_of_the_hub_is_data_and_no_function() -> None:
    with pytest.raises(TypeError, match=r"Step\.result"):
        asyncio.run(A2AClient("http://127.0.0.1:9").submit("a", "b", {}, then=[Step(skill="x", input=dict)]))


@pytest.mark.req("P-63")
@pytest.mark.parametrize(
    ("error", "raised", "code"),
    [
        ({"code": "VALIDATION_ERROR", "message": "bad n"}, errors.InputRefused, "VALIDATION_ERROR"),
        ({"code": "RATE_LIMITED", "message": "slow down"}, errors.RateLimited, "RATE_LIMITED"),
        ({"code": "SKILL_NOT_FOUND", "message": "no"}, errors.SkillNotFound, "SKILL_NOT_FOUND"),
        ({"code": "AGENT_ERROR", "message": "it broke"}, errors.AgentError, "AGENT_ERROR"),
        ({"code": "SOMETHING", "message": "else", "retryable": True}, errors.AgentError, "AGENT_ERROR"),
    ],
)
def test_a_failure_is_raised_with_its_code_its_call_and_its_trace(
    error: dict[str, Any], raised: type[errors.DragomanError], code: str, hub: HubProcess
) -> None:
    with platform_agent(says({"status": "failed", "error": error})) as agent:
        agent_id = join(hub, agent)["id"]

        async def failed() -> tuple[errors.DragomanError, errors.DragomanError]:
            client = client_of(hub)
            with pytest.raises(raised) as called:
                await client.call(agent_id, "echo", {})
            with pytest.raises(raised) as streamed:
                async for _ in client.stream(agent_id, "echo", {}):
                    pass
            return called.value, streamed.value

        called, streamed = asyncio.run(failed())
    assert len(agent.requests) == 2
    assert (type(called), type(streamed)) == (raised, raised)
    assert (called.code, streamed.code) == (code, code)
    assert error["message"] in str(called)
    assert called.message in error["message"] + "."
    assert str(called) != called.message
    assert called.call_id
    assert streamed.call_id
    assert called.trace_id
    assert called.retryable is (code == "RATE_LIMITED" or bool(error.get("retryable")))


def test_what_the_hub_refuses_is_raised_as_the_class_it_is(hub: HubProcess, agent: PlatformAgent) -> None:
    strict = skill("strict", input_schema={"type": "object", "required": ["q"]})
    agent_id = join(hub, agent, skills=[strict])["id"]

    async def refused() -> dict[str, errors.DragomanError]:
        client = client_of(hub)
        asked = {
            "agent": client.call("agt_nobody", "x", {}),
            "skill": client.call(agent_id, "serch", {}),
            "input": client.call(agent_id, "strict", {}),
            "call": client.handle("a2a_call_none").status(),
            "scope": client_of(hub, "a2a:register").call(agent_id, "strict", {"q": 1}),
            "key": A2AClient(hub.url, "ap_wrong", retries=0).call(agent_id, "strict", {"q": 1}),
        }
        found: dict[str, errors.DragomanError] = {}
        for name, coroutine in asked.items():
            with pytest.raises(errors.DragomanError) as raised:
                await coroutine
            found[name] = raised.value
        key = fresh("key")
        await client.call(agent_id, "strict", {"q": 1}, idempotency_key=key)
        with pytest.raises(errors.DragomanError) as raised:
            await client.call(agent_id, "strict", {"q": 2}, idempotency_key=key)
        return {**found, "conflict": raised.value}

    found = asyncio.run(refused())
    assert {name: type(error) for name, error in found.items()} == {
        "agent": errors.AgentNotFound,
        "skill": errors.SkillNotFound,
        "input": errors.InputRefused,
        "call": errors.TaskNotFound,
        "scope": errors.NotAuthorized,
        "key": errors.NotAuthenticated,
        "conflict": errors.IdempotencyConflict,
    }
    assert not any(error.retryable for error in found.values())
    assert found["input"].details["errors"][0]["path"]
    assert "strict" in str(found["skill"])
    assert all(str(error).strip().endswith((".", "…")) for error in found.values())


def test_the_same_key_and_input_is_the_same_call(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]
    key = fresh("key")

    async def twice() -> tuple[str, str]:
        client = client_of(hub)
        calls = [await client.call(agent_id, "echo", {"a": 1}, idempotency_key=key) for _ in range(2)]
        return calls[0].id, calls[1].id

    first, second = asyncio.run(twice())
    assert first == second
    assert len(agent.requests) == 1


def streamed(*pieces: str) -> Any:
    """A platform agent that streams its answer."""

    def respond(body: dict[str, Any]) -> Answer:
        events = [("progress", {"progress": 0.5, "message": "half"})]
        events += [("chunk", {"content": piece}) for piece in pieces]
        events += [("complete", {"status": "completed"}), ("done", {})]
        said = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
        return 200, {"Content-Type": "text/event-stream"}, said.encode()

    return respond
