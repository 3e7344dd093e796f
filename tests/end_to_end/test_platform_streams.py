"""The platform's streams on a real hub: what happens is shown as it happens, and who comes back misses nothing."""

import contextlib
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.world import eventually, fresh, join, says
from tests.support.hub import HubProcess
from tests.support.platform_agent import platform_agent
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.streaming_agent import StreamingAgent, streaming_agent

CALL: Final = "/v1/a2a/call/stream"


@pytest.fixture
def teller(hub: HubProcess) -> Generator[tuple[str, StreamingAgent]]:
    """A streaming agent and its id."""
    with streaming_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(agent_id)}).status == 201
        yield agent_id, agent


@contextlib.contextmanager
def called(hub: HubProcess, agent_id: str, body: dict[str, Any] | None = None, key: str = "") -> Generator[SseStream]:
    asked = {"target_agent_id": agent_id, "skill": "tell", "input": {"about": "tides"}, **(body or {})}
    headers = {"Authorization": f"Bearer {hub.token}"}
    if key:
        headers["Idempotency-Key"] = key
    with sse(hub.url + CALL, asked, headers=headers) as stream:
        yield stream


@contextlib.contextmanager
def replayed(hub: HubProcess, call_id: str, after: str = "") -> Generator[SseStream]:
    headers = {"Authorization": f"Bearer {hub.token}"}
    if after:
        headers["Last-Event-ID"] = after
    with sse(f"{hub.url}/v1/a2a/call/{call_id}/stream", headers=headers) as stream:
        yield stream


def names(items: list[SseItem]) -> list[str]:
    return [item.name for item in items]


def text(items: list[SseItem]) -> str:
    return "".join(item.data["content"] for item in items if item.name == "chunk")


@pytest.mark.req("P-20", "P-54")
def test_what_an_agent_streams_is_shown_event_by_event(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache"
        assert stream.headers["x-accel-buffering"] == "no"
        call = agent.next_call()
        assert call.body["options"]["stream"] is True
        assert "text/event-stream" in call.headers["accept"]
        (start,) = stream.take(1)
        assert start.name == "start"
        assert start.data == {"call_id": call.body["call_id"], "status": "started"}
        assert stream.retry == "3000"
        call.say("progress", {"progress": 0.25, "message": "Reading"})
        assert stream.take(1)[0][:2] == ("progress", {"progress": 0.25, "message": "Reading"})
        call.chunks("High ")
        assert stream.take(1)[0][:2] == ("chunk", {"content": "High "})
        call.chunks("water")
        call.complete({"summary": "High water"}, usage={"tokens": 8})
        last = list(stream)
        assert text(last) == "water"
        assert [item[:2] for item in last[-2:]] == [
            ("complete", {"status": "completed", "result": {"summary": "High water"}, "usage": {"tokens": 8}}),
            ("done", {}),
        ]


@pytest.mark.req("P-20")
def test_an_agent_that_cannot_stream_is_bridged(hub: HubProcess) -> None:
    with platform_agent(says({"result": {"text": "all at once"}})) as agent:
        agent_id = join(hub, agent)["id"]
        asked: dict[str, Any] = {"target_agent_id": agent_id, "skill": "echo", "input": {}}
        with sse(hub.url + CALL, asked, headers={"Authorization": f"Bearer {hub.token}"}) as stream:
            items = list(stream)
    assert names(items)[0] == "start"
    assert names(items)[-2:] == ["complete", "done"]
    assert items[-2].data["result"] == {"text": "all at once"}


@pytest.mark.req("P-54")
def test_pieces_without_a_result_are_the_result(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.chunks("a", "b", "c")
        call.complete()
        items = list(stream)
    assert text(items) == "abc"
    assert items[-2].data["result"] == {"text": "abc"}


@pytest.mark.req("P-58")
def test_a_failure_after_the_start_is_an_event_and_before_it_a_plain_error(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.say("error", {"code": "VALIDATION_ERROR", "message": "No such tide", "details": {"port": "Bristol"}})
        call.hang_up()
        items = list(stream)
    assert names(items) == ["start", "error", "done"]
    assert items[1].data["code"] == "VALIDATION_ERROR"
    assert items[1].data["message"] == "No such tide"
    assert items[1].data["details"]["port"] == "Bristol"
    for body, status, code in (
        ({"target_agent_id": "agt_none"}, 404, "AGENT_NOT_FOUND"),
        ({"skill": "dance"}, 404, "SKILL_NOT_FOUND"),
        ({"input": 3}, 400, "VALIDATION_ERROR"),
    ):
        with called(hub, agent_id, body) as refused:
            assert refused.status == status
            assert not refused.is_stream
            assert code.encode() in refused.body()


@pytest.mark.req("P-54")
def test_a_stream_that_ends_without_an_outcome_is_the_agents_error(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.chunks("half an ans")
        call.hang_up()
        items = list(stream)
    assert names(items)[-2:] == ["error", "done"]
    assert items[-2].data["code"] == "AGENT_ERROR"
    assert items[-2].data["details"]["reason"] == "stream_ended"


@pytest.mark.req("P-21", "X-20")
def test_a_reader_that_was_cut_comes_back_to_where_it_was(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.chunks("one ")
        seen = stream.take(2)
    call_id = call.body["call_id"]
    call.chunks("two ")
    with replayed(hub, call_id, seen[-1].id) as again:
        seen += again.take(1)
    call.chunks("three")
    call.complete()
    with replayed(hub, call_id, seen[-1].id) as again:
        seen += list(again)
    assert text(seen) == "one two three"
    assert names(seen).count("start") == 1
    assert names(seen)[-2:] == ["complete", "done"]
    numbers = [int(item.id) for item in seen[:-1]]  # done has the number of complete
    assert numbers == sorted(set(numbers))
    with replayed(hub, call_id) as whole:
        assert text(list(whole)) == "one two three"
    with replayed(hub, call_id, seen[-1].id) as nothing:
        assert names(list(nothing)) == ["done"]  # Whoever was cut off before it still waits for that.


@pytest.mark.req("P-21")
def test_who_asks_a_second_time_and_is_cut_off_inside_what_was_said_so_far_misses_none_of_it(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    key = fresh("twice")
    with called(hub, agent_id, key=key) as stream:
        call = agent.next_call()
        call.say("progress", {"progress": 0.5, "message": "Reading"})
        call.chunks("one ", "two ")
        seen = stream.take(2)
        while text(seen) != "one two ":
            seen += stream.take(1)
        with called(hub, agent_id, key=key) as again:
            shown = again.take(3)
        start, progress, words = shown
        assert (names(shown), words.data) == (["start", "progress", "chunk"], {"content": "one two "})
        call.chunks("three")
        call.complete()
        list(stream)
    call_id = call.body["call_id"]
    for cut_after, left in ((start, "one two three"), (progress, "one two three"), (words, "three")):
        with replayed(hub, call_id, cut_after.id) as rest:
            assert text(list(rest)) == left
    with called(hub, agent_id, key=key) as whole:
        shown = list(whole)
    assert names(shown) == ["start", "progress", "chunk", "complete", "done"]
    with replayed(hub, call_id, shown[2].id) as rest:
        assert names(list(rest)) == ["complete", "done"]


@pytest.mark.req("P-21")
def test_a_reader_comes_back_after_the_hub_was_killed(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        with streaming_agent() as agent:
            hub.post("/v1/a2a/registry", {"agent_card": agent.card("agt_teller")})
            with called(hub, "agt_teller", key="k1") as stream:
                call = agent.next_call()
                call.chunks("before ")
                seen = stream.take(2)
                hub.kill()
            hub.start()
            # The call has a key, so it is made again under the same id; its first half stays on record.
            again = agent.next_call()
            assert again.body["call_id"] == call.body["call_id"]
            again.chunks("after")
            again.complete()
            with replayed(hub, call.body["call_id"], seen[-1].id) as rest:
                seen += list(rest)
    finally:
        hub.stop()
    assert text(seen) == "before after"
    assert names(seen)[-2:] == ["complete", "done"]
    numbers = [int(item.id) for item in seen[:-1]]
    assert numbers == sorted(set(numbers))


@pytest.mark.req("P-22")
def test_who_leaves_does_not_end_the_call_unless_that_was_asked_for(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.chunks("a")
        stream.take(2)
    call.complete({"done": True})
    assert _once(hub, call.body["call_id"], "completed")["result"] == {"done": True}

    with called(hub, agent_id, {"options": {"cancel_on_disconnect": True}}) as stream:
        call = agent.next_call()
        call.chunks("a")
        stream.take(2)
    _once(hub, call.body["call_id"], "cancelled")
    assert agent.cancelled.wait(10)


@pytest.mark.req("P-21")
def test_many_readers_of_one_call_see_the_same(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    seen: list[list[SseItem]] = []
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.chunks("a")
        stream.take(2)
        ready = threading.Barrier(6)

        def read() -> None:
            with replayed(hub, call.body["call_id"]) as own:
                first = own.take(2)
                ready.wait(10)
                seen.append(first + list(own))

        readers = [threading.Thread(target=read) for _ in range(5)]
        for reader in readers:
            reader.start()
        ready.wait(10)
        call.chunks("b", "c")
        call.complete()
        for reader in readers:
            reader.join(20)
        list(stream)
    assert len(seen) == 5
    assert all(each == seen[0] for each in seen)
    assert text(seen[0]) == "abc"


@pytest.mark.req("P-21")
def test_anybody_elses_stream_is_unknown(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    with called(hub, agent_id) as stream:
        call = agent.next_call()
        call.complete({"a": 1})
        list(stream)
    made = hub.post("/v1/keys", {"name": "other", "scopes": ["a2a:call"]})
    assert made.status == 201, made.body
    with sse(
        f"{hub.url}/v1/a2a/call/{call.body['call_id']}/stream",
        headers={"Authorization": f"Bearer {made.json['key']}"},
    ) as stream:
        assert stream.status == 404
        assert not stream.is_stream


def _once(hub: HubProcess, call_id: str, status: str) -> Any:
    def look() -> Any:
        shown = hub.get(f"/v1/a2a/call/{call_id}/status").json
        return shown if shown["status"] == status else None

    return eventually(look, f"{call_id} is {status}")
