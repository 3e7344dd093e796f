"""Streams and pushes of A2A 0.3 on a real hub, over JSON-RPC and over HTTP+JSON, and of dotted where they are alike."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.kind_streams import (
    PUSH,
    called,
    followed,
    joined,
    kinds,
    message_of,
    state,
    task_id,
    text,
    told,
)
from tests.end_to_end.world import eventually, fresh, join, says
from tests.support.hub import HubProcess
from tests.support.kind_streamer import DOTTED, REST, V03, kind_streamer, refusal
from tests.support.platform_agent import platform_agent
from tests.support.receiver import callback_receiver
from tests.support.sse_client import SseItem, sse
from tests.support.streaming_agent import StreamingAgent, streaming_agent

EVERY_WIRE = pytest.mark.parametrize("wire", [V03, REST, DOTTED])
OFFICIAL = pytest.mark.parametrize("wire", [V03, REST])


@pytest.fixture
def teller(hub: HubProcess) -> Iterator[tuple[str, StreamingAgent]]:
    """A streaming agent of the platform's, and its id."""
    with streaming_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(agent_id)}).status == 201
        yield agent_id, agent


# -- callers


@pytest.mark.req("O-42", "O-43", "O-45", "O-17", "D-14")
@EVERY_WIRE
def test_what_an_agent_of_another_dialect_streams_is_shown_event_by_event(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str
) -> None:
    agent_id, agent = teller
    with called(hub, wire, agent_id) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert stream.headers["cache-control"] == "no-cache"
        assert stream.headers["x-accel-buffering"] == "no"
        call = agent.next_call()
        items = stream.take(1)
        call.say("progress", {"progress": 0.25, "message": "Reading"})
        call.chunks("High ")
        items += _up_to(stream, "High ", wire)
        call.chunks("water")
        items += _up_to(stream, "water", wire)
        call.complete()
        items += list(stream)
    assert kinds(wire, items)[0] == "task"
    assert text(wire, items) == "High water"
    assert (state(wire, items[-1]), told(wire, items[-1])[1]["final"]) == ("completed", True)
    assert [told(wire, item)[1]["final"] for item in items[1:] if "final" in told(wire, item)[1]].count(True) == 1
    assert "Reading" in json.dumps([item.data for item in items])
    context = told(wire, items[0])[1]["contextId"]
    for _, shown in (told(wire, item) for item in items[1:]):
        assert (shown["taskId"], shown["contextId"]) == (task_id(wire, items[0]), context)
    numbers = [int(item.id) for item in items]
    assert numbers == sorted(numbers)


@pytest.mark.req("O-43", "O-45", "D-14")
@EVERY_WIRE
def test_an_agent_that_cannot_stream_is_bridged(hub: HubProcess, wire: str) -> None:
    with platform_agent(says({"result": {"text": "all at once"}})) as agent:
        agent_id = join(hub, agent)["id"]
        with called(hub, wire, agent_id) as stream:
            items = list(stream)
    assert kinds(wire, items)[0] == "task"
    assert kinds(wire, items)[-2:] == ["artifact-update", "status-update"]
    assert "all at once" in json.dumps(items[-2].data)
    assert told(wire, items[-1])[1]["final"] is True


@pytest.mark.req("O-43", "D-14")
@EVERY_WIRE
def test_a_question_ends_the_stream_and_the_answer_to_it_streams_on(hub: HubProcess, wire: str) -> None:
    with kind_streamer(V03) as agent:
        agent_id = joined(hub, agent)
        with called(hub, wire, agent_id) as stream:
            call = agent.next_call()
            call.task("working")
            call.done("input-required", "Which port?")
            items = list(stream)
        assert (state(wire, items[-1]), told(wire, items[-1])[1]["final"]) == ("input-required", True)
        assert "Which port?" in json.dumps(items[-1].data)
        answer = message_of(wire, "Bristol", taskId=task_id(wire, items[0]))
        with called(hub, wire, agent_id, answer) as stream:
            call = agent.next_call()
            assert call.body["params"]["message"]["taskId"] == "remote-1"
            call.piece("High water", last=True)
            call.done()
            items = list(stream)
        assert text(wire, items) == "High water"
        assert (state(wire, items[-1]), told(wire, items[-1])[1]["final"]) == ("completed", True)


@pytest.mark.req("O-43")
@EVERY_WIRE
def test_a_failure_ends_the_stream_with_the_agents_words(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str
) -> None:
    agent_id, agent = teller
    with called(hub, wire, agent_id) as stream:
        call = agent.next_call()
        call.say("error", {"code": "AGENT_ERROR", "message": "No such tide"})
        call.hang_up()
        items = list(stream)
    assert (state(wire, items[-1]), told(wire, items[-1])[1]["final"]) == ("failed", True)
    assert "No such tide" in json.dumps(items[-1].data)


@pytest.mark.req("O-20", "X-20")
@OFFICIAL
def test_a_reader_that_was_cut_comes_back_to_where_it_was(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str
) -> None:
    agent_id, agent = teller
    with called(hub, wire, agent_id) as stream:
        call = agent.next_call()
        call.chunks("one ")
        seen = _up_to(stream, "one ", wire)
    name = task_id(wire, seen[0])
    call.chunks("two ")
    with followed(hub, wire, agent_id, name, after=seen[-1].id) as again:
        seen += _up_to(again, "two ", wire)
    call.chunks("three")
    call.complete()
    with followed(hub, wire, agent_id, name, after=seen[-1].id, get=True) as again:
        seen += list(again)
    assert text(wire, seen) == "one two three"
    assert kinds(wire, seen).count("task") == 1
    assert told(wire, seen[-1])[1]["final"] is True
    numbers = [int(item.id) for item in seen]
    assert numbers == sorted(set(numbers))
    with followed(hub, wire, agent_id, name, after=seen[-1].id) as nothing:
        assert list(nothing) == []


@pytest.mark.req("O-18", "O-20")
@OFFICIAL
def test_who_comes_without_a_number_sees_the_task_as_it_is_first(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str
) -> None:
    agent_id, agent = teller
    with called(hub, wire, agent_id) as stream:
        call = agent.next_call()
        call.chunks("one ")
        name = task_id(wire, _up_to(stream, "one ", wire)[0])
        with followed(hub, wire, agent_id, name) as second:
            (first,) = second.take(1)
            assert text(wire, [first]) == "one "
            call.chunks("two")
            call.complete()
            assert text(wire, [first, *second]) == "one two"


@pytest.mark.req("O-20")
@OFFICIAL
def test_a_reader_comes_back_after_the_hub_was_killed(tmp_path: Path, wire: str) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        with streaming_agent() as agent:
            hub.post("/v1/a2a/registry", {"agent_card": agent.card("agt_teller")})
            with called(hub, wire, "agt_teller", key="k1") as stream:
                call = agent.next_call()
                call.chunks("before ")
                seen = _up_to(stream, "before ", wire)
                hub.kill()
            hub.start()
            again = agent.next_call()
            again.chunks("after")
            again.complete()
            with followed(hub, wire, "agt_teller", task_id(wire, seen[0]), after=seen[-1].id) as rest:
                seen += list(rest)
    finally:
        hub.stop()
    assert text(wire, seen) == "before after"
    assert told(wire, seen[-1])[1]["final"] is True


@pytest.mark.req("O-18", "O-45")
def test_a_task_that_is_unknown_or_has_ended_is_refused_not_streamed(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    with called(hub, V03, agent_id) as stream:
        agent.next_call().complete({"a": 1})
        items = list(stream)
    name = task_id(V03, items[0])
    for wire, task, status, code in (
        (V03, "task-none", 200, -32001),
        (REST, "task-none", 404, -32001),
        (V03, name, 200, -32004),
        (REST, name, 400, -32004),
    ):
        with followed(hub, wire, agent_id, task) as refused:
            assert (refused.status, refused.is_stream) == (status, False)
            body = json.loads(refused.body())
            assert (body["error"] if wire == V03 else body)["code"] == code
    with followed(hub, REST, agent_id, "task-none", get=True) as refused:
        assert (refused.status, refused.is_stream) == (404, False)


@EVERY_WIRE
def test_a_request_that_makes_no_sense_is_refused_before_any_stream(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str
) -> None:
    agent_id, _ = teller
    with called(hub, wire, agent_id, {"messageId": "m-1"}) as refused:
        assert not refused.is_stream
        assert b"-32602" in refused.body()
    with called(hub, wire, "agt_none") as refused:
        assert (refused.status, refused.is_stream) == (404, False)
    with called(hub, wire, agent_id, message_of(wire, "x", taskId="task-none")) as refused:
        assert not refused.is_stream
        assert b"-32001" in refused.body()


@EVERY_WIRE
def test_who_leaves_does_not_end_the_call(hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str) -> None:
    agent_id, agent = teller
    with called(hub, wire, agent_id) as stream:
        call = agent.next_call()
        call.chunks("a")
        name = task_id(wire, _up_to(stream, "a", wire)[0])
    call.chunks("b")
    call.complete()

    def ended() -> Any:
        got = {"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"id": name}}
        task = hub.post(f"/agents/{agent_id}", got).json["result"]
        return task if task["status"]["state"] == "completed" else None

    task = eventually(ended, "the call goes on")
    assert "".join(part["text"] for part in task["artifacts"][0]["parts"]) == "ab"


@pytest.mark.req("X-15")
@OFFICIAL
def test_anybody_elses_task_is_unknown(hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str) -> None:
    agent_id, agent = teller
    with called(hub, wire, agent_id) as stream:
        call = agent.next_call()
        name = task_id(wire, stream.take(1)[0])
        with followed(hub, wire, agent_id, name, token=hub.new_key("a2a:call")) as refused:
            assert not refused.is_stream
            assert b"-32001" in refused.body()
        call.complete({"a": 1})
        list(stream)


def test_a_client_between_the_versions_reads_a_stream_in_its_own_shape(hub: HubProcess) -> None:
    message = {"messageId": fresh("m"), "role": "user", "parts": [{"text": "hi"}]}
    with (
        platform_agent(says({"result": {"text": "hello"}})) as agent,
        called(hub, V03, join(hub, agent)["id"], message) as stream,
    ):
        items = [item.data["result"] for item in stream]
    names = {"task": "task", "status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
    assert len(items) >= 3
    for shown in items:
        inner = shown.pop(names[shown["kind"]])
        assert inner == shown


# -- agents


@pytest.mark.req("O-43", "O-45", "D-14")
@EVERY_WIRE
def test_what_an_agent_streams_reaches_a_caller_of_another_dialect_as_it_comes(hub: HubProcess, wire: str) -> None:
    with kind_streamer(wire) as agent:
        agent_id = joined(hub, agent)
        with _platform_call(hub, agent_id) as stream:
            call = agent.next_call()
            call.task("submitted")
            call.status("working", "Reading")
            call.piece("High ")
            items = _until(stream, "chunk")
            call.piece("water", append=True, last=True)
            items += _until(stream, "chunk")
            call.done()
            items += list(stream)
    assert call.verb == "stream"
    assert "".join(item.data["content"] for item in items if item.name == "chunk") == "High water"
    assert [item.data["message"] for item in items if item.name == "progress"] == ["Reading"]
    assert items[-2].name == "complete"
    assert agent.asked == ["stream"]


@EVERY_WIRE
def test_an_agent_whose_card_promises_streams_it_has_not_gets_the_call_plainly(hub: HubProcess, wire: str) -> None:
    with kind_streamer(wire) as agent:
        agent.instead["stream"] = refusal(-32601, 404 if wire == REST else 200)
        agent.instead["send"] = 200, {"result": agent.task("completed", "High water")}
        agent_id = joined(hub, agent)
        for asked in ((["stream", "stream", "send"] if wire == DOTTED else ["stream", "send"]), ["send"]):
            agent.asked.clear()
            with called(hub, wire, agent_id) as stream:
                items = list(stream)
            assert text(wire, items) == "High water"
            assert agent.asked == asked


@EVERY_WIRE
def test_an_agent_that_answers_a_request_for_a_stream_with_a_message_is_shown_as_an_artifact(
    hub: HubProcess, wire: str
) -> None:
    said = {"kind": "message", "messageId": "m-9", "role": "agent", "parts": [{"kind": "text", "text": "High water"}]}
    with kind_streamer(V03) as agent:
        agent.instead["stream"] = 200, {"result": said}
        with called(hub, wire, joined(hub, agent)) as stream:
            items = list(stream)
    assert text(wire, items) == "High water"
    assert kinds(wire, items)[-2:] == ["artifact-update", "status-update"]
    assert agent.asked == ["stream"]


@OFFICIAL
def test_an_agent_whose_stream_breaks_off_is_asked_how_far_it_is_and_not_subscribed_to(
    hub: HubProcess, wire: str
) -> None:
    with kind_streamer(wire) as agent:
        agent.instead["get"] = 200, {"result": agent.task("working", "High ")}
        with called(hub, V03, joined(hub, agent)) as stream:
            call = agent.next_call()
            call.task("working")
            call.piece("High ")
            call.hang_up()
            eventually(lambda: "get" in agent.asked, "the agent is asked how far it is")
            agent.instead["get"] = 200, {"result": agent.task("completed", "High water")}
            items = list(stream)
    assert text(V03, items) == "High water"
    assert state(V03, items[-1]) == "completed"
    assert "subscribe" not in agent.asked


def test_a_dotted_agent_whose_stream_breaks_off_is_asked_how_far_it_is(hub: HubProcess) -> None:
    with kind_streamer(DOTTED) as agent:
        agent.instead["get"] = 200, {"result": agent.task("completed", "High water")}
        with called(hub, DOTTED, joined(hub, agent)) as stream:
            call = agent.next_call()
            call.task("working")
            call.piece("High ")
            call.hang_up()
            items = list(stream)
    assert text(DOTTED, items) == "High water"
    assert "subscribe" not in agent.asked


# -- push


@pytest.mark.req("O-44", "O-42", "D-25")
@pytest.mark.parametrize("wire", [V03, DOTTED])
def test_a_webhook_beside_a_message_is_told_the_whole_task(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str
) -> None:
    agent_id, agent = teller
    with callback_receiver() as receiver:
        config = {
            "url": f"{receiver.url}/hook",
            "token": "tok-1",
            "authentication": {"schemes": ["Bearer"], "credentials": "s3cret"},
        }
        with called(hub, wire, agent_id, pushNotificationConfig=config) as stream:
            call = agent.next_call()
            call.chunks("High water")
            _up_to(stream, "High water", wire)
            call.complete()
            list(stream)
        got = _final(receiver)
    assert (got.path, got.headers["content-type"]) == ("/hook", "application/json")
    assert got.headers["authorization"] == "Bearer s3cret"
    assert got.headers["x-a2a-notification-token"] == "tok-1"
    task = got.body
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "High water"}]
    assert ("createdAt" in task) is (wire == DOTTED)


@pytest.mark.req("O-42", "O-44", "O-32", "D-25", "X-16")
@pytest.mark.parametrize(("wire", "mount"), [(V03, ""), (V03, "/a2a-0.3"), (DOTTED, "/dotted")])
def test_push_configs_come_and_go_by_their_methods(
    hub: HubProcess, teller: tuple[str, StreamingAgent], wire: str, mount: str
) -> None:
    agent_id, agent = teller
    url = f"/agents/{agent_id}{mount}"

    def rpc(verb: str, **params: Any) -> Any:
        return hub.post(url, {"jsonrpc": "2.0", "id": "1", "method": f"{PUSH}/{verb}", "params": params}).json

    with callback_receiver() as receiver, called(hub, wire, agent_id) as stream:
        call = agent.next_call()
        name = task_id(wire, stream.take(1)[0])
        assert rpc("get", id=name)["error"]["code"] == -32001
        config = {"url": receiver.url, "id": "c-1", "token": "secret-token"}
        kept = {"taskId": name, "pushNotificationConfig": {"id": "c-1", "url": receiver.url}}
        assert rpc("set", taskId=name, pushNotificationConfig=config)["result"] == kept
        second = rpc("set", taskId=name, pushNotificationConfig={"url": f"{receiver.url}/second"})["result"]
        assert rpc("get", id=name)["result"] == kept
        assert rpc("get", id=name, pushNotificationConfigId="c-1")["result"] == kept
        assert rpc("list", id=name)["result"] == [kept, second]
        gone = hub.post(
            url,
            {
                "jsonrpc": "2.0",
                "id": "1",
                "method": f"{PUSH}/delete",
                "params": {"id": name, "pushNotificationConfigId": second["pushNotificationConfig"]["id"]},
            },
        )
        assert gone.json == {"jsonrpc": "2.0", "id": "1", "result": None}
        assert rpc("list", id=name)["result"] == [kept]
        assert rpc("set", taskId="task-none", pushNotificationConfig=config)["error"]["code"] == -32001
        call.complete({"text": "High water"})
        list(stream)
        got = _final(receiver)
    assert got.headers["x-a2a-notification-token"] == "secret-token"
    assert all(each.path == "/" for each in receiver.got)


@pytest.mark.req("O-45", "O-32")
def test_push_configs_come_and_go_over_http(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    with callback_receiver() as receiver, called(hub, REST, agent_id) as stream:
        call = agent.next_call()
        name = task_id(REST, stream.take(1)[0])
        url = f"/agents/{agent_id}/v1/tasks/{name}/pushNotificationConfigs"
        inner = {"id": "c-1", "url": receiver.url, "token": "tok"}
        for body in (
            {"parent": f"tasks/{name}", "configId": "c-1", "config": {"name": "x", "pushNotificationConfig": inner}},
            {"name": f"tasks/{name}/pushNotificationConfigs/c-1", "pushNotificationConfig": inner},
        ):
            made = hub.post(url, body)
            shown = {
                "name": f"tasks/{name}/pushNotificationConfigs/c-1",
                "pushNotificationConfig": {"id": "c-1", "url": receiver.url},
            }
            assert (made.status, made.json) == (200, shown)
        assert hub.get(f"{url}/c-1").json == shown
        assert hub.get(url).json == {"configs": [shown]}
        assert hub.get(f"{url}/none").status == 404
        other = hub.get(f"/agents/{agent_id}/v1/tasks/task-none/pushNotificationConfigs")
        assert (other.status, other.json["code"]) == (404, -32001)
        call.complete({"text": "High water"})
        list(stream)
        task = _final(receiver).body
        assert (task["kind"], task["id"], task["status"]["state"]) == ("task", name, "completed")
        for _ in range(2):
            gone = hub.request("DELETE", f"{url}/c-1")
            assert (gone.status, gone.json) == (200, {})
        assert hub.get(url).json == {"configs": []}


def _platform_call(hub: HubProcess, agent_id: str) -> Any:
    body = {"target_agent_id": agent_id, "skill": "tell", "input": {"text": "tides"}}
    return sse(f"{hub.url}/v1/a2a/call/stream", body, headers={"Authorization": f"Bearer {hub.token}"})


def _until(stream: Any, name: str) -> list[SseItem]:
    items: list[SseItem] = []
    for item in stream:
        items.append(item)
        if item.name == name:
            break
    return items


def _up_to(stream: Any, words: str, wire: str) -> list[SseItem]:
    """The events up to the piece that says these words."""
    items: list[SseItem] = []
    for item in stream:
        items.append(item)
        if told(wire, item)[0] == "artifact-update" and words in json.dumps(item.data):
            return items
    raise AssertionError(f"the stream ended before {words!r}: {items}")


def _final(receiver: Any) -> Any:
    """The notice that tells the end."""

    def last() -> Any:
        return next((each for each in receiver.got if each.body["status"]["state"] == "completed"), None)

    return eventually(last, "the end is told")
