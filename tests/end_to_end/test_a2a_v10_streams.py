"""Streams of A2A 1.0 through a real hub: callers and agents in both framings, and agents that tell it otherwise."""

import contextlib
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.end_to_end.world import eventually, fresh, join, says
from tests.support.agents.streaming_v10 import TASK, Streaming10Agent, streaming10, task10
from tests.support.hub import HubProcess
from tests.support.platform_agent import platform_agent
from tests.support.quirks import STUBS
from tests.support.quirks.words import hello
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.streaming_agent import streaming_agent

V10: Final = {"A2A-Version": "1.0"}
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")

every_binding = pytest.mark.parametrize("binding", BINDINGS)


@pytest.fixture
def teller(hub: HubProcess) -> Generator[tuple[str, Streaming10Agent]]:
    """A streaming agent and its id."""
    with streaming10() as agent:
        yield joined(hub, agent), agent


def joined(hub: HubProcess, agent: Streaming10Agent) -> str:
    agent_id: str = hub.register(agent.card, id=fresh("agt_teller"))["id"]
    return agent_id


def message(text: str = "tell", **more: Any) -> dict[str, Any]:
    return {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": text}], **more}


@contextlib.contextmanager
def streamed(
    hub: HubProcess, agent_id: str, params: dict[str, Any] | None = None, *, binding: str = "JSONRPC", **headers: str
) -> Generator[SseStream]:
    """A stream of a new call."""
    asked = params or {"message": message()}
    with opened(hub, agent_id, "SendStreamingMessage", asked, "/message:stream", binding=binding, **headers) as stream:
        yield stream


@contextlib.contextmanager
def followed(
    hub: HubProcess, agent_id: str, task_id: str, *, after: str = "", binding: str = "JSONRPC", verb: str = "POST"
) -> Generator[SseStream]:
    """A stream of a task that there is."""
    headers = {"Last-Event-ID": after} if after else {}
    path = f"/tasks/{quote(task_id, safe='')}:subscribe"
    params = {"id": task_id} if verb == "POST" else None
    with opened(hub, agent_id, "SubscribeToTask", params, path, binding=binding, **headers) as stream:
        yield stream


@contextlib.contextmanager
def opened(
    hub: HubProcess, agent_id: str, method: str, params: Any, path: str, *, binding: str, **headers: str
) -> Generator[SseStream]:
    base = f"{hub.url}/agents/{agent_id}"
    given = {**V10, "Authorization": f"Bearer {hub.token}", **headers}
    if binding == "JSONRPC":
        frame = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
        with sse(base, frame, headers=given) as stream:
            yield stream
    else:
        with sse(base + path, params, headers=given) as stream:
            yield stream


def bare(items: list[SseItem], binding: str = "JSONRPC") -> list[dict[str, Any]]:
    """The StreamResponses of some events, after a look at their frames."""
    found: list[dict[str, Any]] = []
    for item in items:
        assert item.name == ""
        if binding == "JSONRPC":
            assert set(item.data) == {"jsonrpc", "id", "result"}, item.data
            assert item.data["id"] == "r1"
        shown = item.data["result"] if binding == "JSONRPC" else item.data
        assert len(shown) == 1, shown
        found.append(shown)
    return found


def kinds(items: list[SseItem]) -> list[str]:
    return [next(iter(each)) for each in bare(items)]


def text(items: list[SseItem], binding: str = "JSONRPC") -> str:
    """The words of all artifacts, put together as the protocol says."""
    made: dict[str, str] = {}
    for shown in bare(items, binding):
        if "task" in shown:
            made = {each["artifactId"]: _words(each) for each in shown["task"].get("artifacts", ())}
        elif "artifactUpdate" in shown:
            update = shown["artifactUpdate"]
            name = update["artifact"]["artifactId"]
            made[name] = (made[name] if update.get("append") else "") + _words(update["artifact"])
    return "".join(made.values())


def _words(artifact: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in artifact["parts"])


def state(item: SseItem, binding: str = "JSONRPC") -> str:
    (shown,) = bare([item], binding)
    status = shown["task"]["status"] if "task" in shown else shown["statusUpdate"]["status"]
    found: str = status["state"]
    return found


def task_id(item: SseItem, binding: str = "JSONRPC") -> str:
    (shown,) = bare([item], binding)
    found: str = shown["task"]["id"]
    return found


# -- a streaming agent


@pytest.mark.req("O-01", "O-02", "O-16", "O-17")
@every_binding
@pytest.mark.parametrize("spoken", BINDINGS)
def test_what_an_agent_streams_is_shown_event_by_event(hub: HubProcess, binding: str, spoken: str) -> None:
    with streaming10(spoken) as agent, streamed(hub, joined(hub, agent), binding=binding) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert (stream.headers["cache-control"], stream.headers["x-accel-buffering"]) == ("no-cache", "no")
        call = agent.next_call()
        assert call.headers["accept"] == "application/json, text/event-stream"
        (first,) = stream.take(1)
        named = task_id(first, binding)
        assert named.startswith("task-")
        call.task()
        call.status("WORKING", "reading")
        (update,) = bare(stream.take(1), binding)
        about = update["statusUpdate"]
        assert (about["taskId"], about["status"]["state"]) == (named, "TASK_STATE_WORKING")
        assert about["contextId"] == bare([first], binding)[0]["task"]["contextId"]
        assert about["status"]["message"]["parts"] == [{"text": "reading"}]
        call.made("High ")
        (update,) = bare(stream.take(1), binding)
        assert update["artifactUpdate"]["artifact"] == {"artifactId": "made", "parts": [{"text": "High "}]}
        assert not {"append", "lastChunk"} & set(update["artifactUpdate"])
        call.made("water", append=True, last=True)
        (update,) = bare(stream.take(1), binding)
        assert (update["artifactUpdate"]["append"], update["artifactUpdate"]["lastChunk"]) == (True, True)
        call.status("COMPLETED")
        (last,) = list(stream)
        assert state(last, binding) == "TASK_STATE_COMPLETED"


@pytest.mark.req("O-16")
def test_a_stream_ends_at_a_question_and_the_answer_to_it_is_streamed(
    hub: HubProcess, teller: tuple[str, Streaming10Agent]
) -> None:
    agent_id, agent = teller
    with streamed(hub, agent_id) as stream:
        call = agent.next_call()
        call.task("WORKING")
        call.status("INPUT_REQUIRED", "Which port?")
        items = list(stream)
    assert state(items[-1]) == "TASK_STATE_INPUT_REQUIRED"
    asked = message("Bristol", taskId=task_id(items[0]))
    with streamed(hub, agent_id, {"message": asked}) as stream:
        call = agent.next_call()
        assert call.params["message"]["taskId"] == TASK
        call.task("INPUT_REQUIRED")
        call.made("High water", last=True)
        call.status("COMPLETED")
        items = list(stream)
    assert state(items[-1]) == "TASK_STATE_COMPLETED"
    assert text(items) == "High water"


@pytest.mark.req("O-04")
def test_a_stream_is_asked_for_wherever_1_0_is_spoken(hub: HubProcess, teller: tuple[str, Streaming10Agent]) -> None:
    agent_id, agent = teller
    frame = {"jsonrpc": "2.0", "id": "r1", "method": "SendStreamingMessage"}
    for path, body in (
        ("/", {**frame, "params": {"message": message(), "tenant": agent_id}}),
        (f"/agents/{agent_id}/a2a-1.0", {**frame, "params": {"message": message()}}),
        (f"/{agent_id}/message:stream", {"message": message()}),
        ("/message:stream", {"message": message(), "tenant": agent_id}),
        (f"/agents/{agent_id}/a2a-1.0/message:stream", {"message": message()}),
    ):
        binding = "JSONRPC" if "jsonrpc" in body else "HTTP+JSON"
        with sse(hub.url + path, body, headers={**V10, "Authorization": f"Bearer {hub.token}"}) as stream:
            call = agent.next_call()
            call.task("WORKING")
            call.made("here", last=True)
            call.status("COMPLETED")
            assert text(list(stream), binding) == "here", path


def test_a_stream_that_is_asked_for_again_under_its_key_is_that_of_the_same_call(
    hub: HubProcess, teller: tuple[str, Streaming10Agent]
) -> None:
    agent_id, agent = teller
    params, key = {"message": message()}, {"Idempotency-Key": fresh("key")}
    with streamed(hub, agent_id, params, **key) as stream:
        call = agent.next_call()
        call.task("WORKING")
        call.made("once", last=True)
        first = stream.take(3)
        with streamed(hub, agent_id, params, **key) as again:
            (same,) = again.take(1)
            assert task_id(same) == task_id(first[0])
            assert text([same]) == "once"
            call.status("COMPLETED")
            assert state(list(again)[-1]) == "TASK_STATE_COMPLETED"
    with streamed(hub, agent_id, params, **key) as ended:
        (whole,) = list(ended)
    assert (task_id(whole), state(whole), text([whole])) == (task_id(same), "TASK_STATE_COMPLETED", "once")
    assert agent.asked.count("SendStreamingMessage") == 1


# -- agents that tell it otherwise, or not at all


@pytest.mark.req("X-16", "O-16")
@pytest.mark.parametrize("server", STUBS)
def test_the_answer_of_every_framework_is_streamed_exactly_once(hub: HubProcess, server: str) -> None:
    with STUBS[server]() as stub:
        agent_id: str = hub.register(None, url=stub.url, id=fresh("agt_quirk"))["id"]
        with streamed(hub, agent_id) as stream:
            items = list(stream)
    assert text(items) == hello(server)
    assert kinds(items)[0] == "task"
    assert set(kinds(items)[1:]) <= {"statusUpdate", "artifactUpdate"}
    assert state(items[-1]) == "TASK_STATE_COMPLETED"


def test_an_agent_of_another_dialect_that_streams_is_shown_in_the_words_of_1_0(hub: HubProcess) -> None:
    with streaming_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(agent_id)}).status == 201
        with streamed(hub, agent_id) as stream:
            call = agent.next_call()
            stream.take(1)
            call.say("progress", {"progress": 0.5, "message": "half"})
            call.chunks("one ")
            call.chunks("two")
            call.complete()
            items = list(stream)
    assert text(items) == "one two"
    assert state(items[-1]) == "TASK_STATE_COMPLETED"


def test_an_agent_that_cannot_stream_is_bridged(hub: HubProcess) -> None:
    with platform_agent(says({"result": {"answer": 42}})) as agent:
        agent_id = join(hub, agent)["id"]
        with streamed(hub, agent_id) as stream:
            items = list(stream)
    made = [each["artifactUpdate"]["artifact"] for each in bare(items) if "artifactUpdate" in each]
    assert [part["data"] for each in made for part in each["parts"]] == [{"answer": 42}]
    assert state(items[-1]) == "TASK_STATE_COMPLETED"


def test_an_agent_whose_card_promises_streams_it_does_not_have_gets_a_plain_send(
    hub: HubProcess, teller: tuple[str, Streaming10Agent]
) -> None:
    agent_id, agent = teller
    agent.streams = False
    for words in ("first", "second"):
        with streamed(hub, agent_id, {"message": message(words)}) as stream:
            assert text(list(stream)) == words
    assert agent.asked.count("SendStreamingMessage") == 1
    assert agent.asked.count("SendMessage") == 2


@pytest.mark.parametrize("spoken", BINDINGS)
def test_an_agents_stream_that_breaks_off_is_taken_up_by_subscribing(hub: HubProcess, spoken: str) -> None:
    with streaming10(spoken) as agent:
        agent.subscribes_by = {"GET"}
        agent.tasks[TASK] = task10("WORKING")
        with streamed(hub, joined(hub, agent)) as stream:
            call = agent.next_call()
            call.task("WORKING")
            call.made("one ")
            stream.take(3)
            call.hang_up()
            again = agent.next_call("SubscribeToTask")
            assert again.verb == ("POST" if spoken == "JSONRPC" else "GET")
            assert again.params["id"] == TASK
            again.task("WORKING", artifacts=[{"artifactId": "made", "parts": [{"text": "one two "}]}])
            again.made("three", append=True, last=True)
            again.status("COMPLETED")
            items = list(stream)
    pieces = [each["artifactUpdate"] for each in bare(items) if "artifactUpdate" in each]
    assert "".join(_words(each["artifact"]) for each in pieces) == "two three"
    assert all(each["append"] for each in pieces)
    assert state(items[-1]) == "TASK_STATE_COMPLETED"


def test_an_agents_failure_is_the_end_of_the_stream(hub: HubProcess, teller: tuple[str, Streaming10Agent]) -> None:
    agent_id, agent = teller
    with streamed(hub, agent_id) as stream:
        call = agent.next_call()
        call.task("WORKING")
        call.status("FAILED", "the tide table is gone")
        items = list(stream)
    assert state(items[-1]) == "TASK_STATE_FAILED"
    last = bare(items)[-1]["statusUpdate"]["status"]
    assert last["message"]["parts"] == [{"text": "the tide table is gone"}]


# -- subscribing


@pytest.mark.req("O-18")
@every_binding
@pytest.mark.parametrize("verb", ["POST", "GET"])
def test_a_subscriber_sees_the_task_as_it_is_and_what_happens_then(
    hub: HubProcess, teller: tuple[str, Streaming10Agent], binding: str, verb: str
) -> None:
    if (binding, verb) == ("JSONRPC", "GET"):
        verb = "POST"  # JSON-RPC has no other
    agent_id, agent = teller
    with streamed(hub, agent_id) as stream:
        call = agent.next_call()
        call.task("WORKING")
        call.made("one ")
        named = task_id(stream.take(3)[0])
        with followed(hub, agent_id, named, binding=binding, verb=verb) as other:
            (first,) = other.take(1)
            assert text([first], binding) == "one "
            assert (task_id(first, binding), state(first, binding)) == (named, "TASK_STATE_WORKING")
            call.made("two", append=True, last=True)
            call.status("COMPLETED")
            items = [first, *other]
        assert text(items, binding) == "one two"
        assert state(items[-1], binding) == "TASK_STATE_COMPLETED"
    with followed(hub, agent_id, named, binding=binding, verb=verb) as ended:
        assert not ended.is_stream
        assert ended.status == (200 if binding == "JSONRPC" else 400)
        assert b"UNSUPPORTED_OPERATION" in ended.body()


@pytest.mark.req("O-18", "O-20", "X-20")
def test_who_was_cut_comes_back_to_where_it_was(hub: HubProcess, teller: tuple[str, Streaming10Agent]) -> None:
    agent_id, agent = teller
    with streamed(hub, agent_id) as stream:
        call = agent.next_call()
        call.task("WORKING")
        call.made("one ")
        seen = stream.take(3)
    named = task_id(seen[0])
    call.made("two ", append=True)
    with followed(hub, agent_id, named, after=seen[-1].id) as again:
        seen += again.take(1)
    call.made("three", append=True, last=True)
    call.status("COMPLETED")
    eventually(lambda: _state(hub, agent_id, named) == "TASK_STATE_COMPLETED", "the task ends")
    with followed(hub, agent_id, named, after=seen[-1].id) as again:
        assert again.is_stream
        seen += list(again)
    assert text(seen) == "one two three"
    assert kinds(seen).count("task") == 1
    assert state(seen[-1]) == "TASK_STATE_COMPLETED"
    numbers = [int(item.id) for item in seen]
    assert numbers == sorted(set(numbers))
    with followed(hub, agent_id, named, after=seen[-1].id) as nothing:
        assert list(nothing) == []


@pytest.mark.req("O-20", "O-50")
def test_who_comes_back_after_the_hub_was_killed_misses_nothing(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        with streaming10() as agent:
            agent.tasks[TASK] = task10("WORKING")
            agent_id = joined(hub, agent)
            with streamed(hub, agent_id) as stream:
                call = agent.next_call()
                call.task("WORKING")
                call.made("before ")
                seen = stream.take(3)
                hub.kill()
            hub.start()
            # The agent has named its task: it is not sent again, only listened to.
            again = agent.next_call("SubscribeToTask")
            again.task("WORKING", artifacts=[{"artifactId": "made", "parts": [{"text": "before "}]}])
            again.made("after", append=True, last=True)
            again.status("COMPLETED")
            with followed(hub, agent_id, task_id(seen[0]), after=seen[-1].id) as rest:
                seen += list(rest)
            assert agent.asked.count("SendStreamingMessage") == 1
    finally:
        hub.stop()
    assert text(seen) == "before after"
    assert state(seen[-1]) == "TASK_STATE_COMPLETED"
    numbers = [int(item.id) for item in seen]
    assert numbers == sorted(set(numbers))


@pytest.mark.req("O-19")
def test_all_who_follow_a_task_see_the_same_and_one_that_leaves_disturbs_nobody(
    hub: HubProcess, teller: tuple[str, Streaming10Agent]
) -> None:
    agent_id, agent = teller
    seen: list[list[SseItem]] = []
    with streamed(hub, agent_id) as stream:
        call = agent.next_call()
        call.task("WORKING")
        named = task_id(stream.take(2)[0])
        ready = threading.Barrier(4)

        def read() -> None:
            with followed(hub, agent_id, named) as own:
                first = own.take(1)
                ready.wait(10)
                seen.append(first + list(own))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        ready.wait(10)
        with followed(hub, agent_id, named) as short:
            short.take(1)
        call.made("a")
        call.made("b", append=True, last=True)
        call.status("COMPLETED")
        for reader in readers:
            reader.join(20)
        own = list(stream)
    assert len(seen) == 3
    assert all(each[1:] == own for each in seen)
    assert text(seen[0]) == "ab"


# -- refusals, and who leaves


@every_binding
def test_what_is_refused_begins_no_stream(hub: HubProcess, teller: tuple[str, Streaming10Agent], binding: str) -> None:
    agent_id, agent = teller
    unknown = message(taskId="task-unknown")
    for target, params, word, status in (
        ("agt_nobody", {"message": message()}, b"AGENT_NOT_FOUND", 404),
        (agent_id, {"message": {"role": "ROLE_USER"}}, b"INVALID_PARAMS", 400),
        (agent_id, {"message": unknown}, b"TASK_NOT_FOUND", 404),
    ):
        with streamed(hub, target, params, binding=binding) as refused:
            assert not refused.is_stream
            body = refused.body()
            assert word in body, body
            if binding == "HTTP+JSON":
                assert refused.status == status
    with followed(hub, agent_id, "task-unknown", binding=binding) as refused:
        assert not refused.is_stream
        assert b"TASK_NOT_FOUND" in refused.body()
        assert refused.status == (200 if binding == "JSONRPC" else 404)
    assert "SendStreamingMessage" not in agent.asked


@pytest.mark.req("O-31")
def test_anybody_elses_task_cannot_be_followed(hub: HubProcess, teller: tuple[str, Streaming10Agent]) -> None:
    agent_id, agent = teller
    with streamed(hub, agent_id) as stream:
        agent.next_call().task("WORKING")
        named = task_id(stream.take(1)[0])
        made = hub.post("/v1/keys", {"name": "other", "scopes": ["a2a:call"]})
        frame = {"jsonrpc": "2.0", "id": "r1", "method": "SubscribeToTask", "params": {"id": named}}
        other = hub.post(f"/agents/{agent_id}", frame, V10, made.json["key"])
        assert other.json["error"]["code"] == -32001


def test_who_leaves_does_not_end_the_call(hub: HubProcess, teller: tuple[str, Streaming10Agent]) -> None:
    agent_id, agent = teller
    with streamed(hub, agent_id) as stream:
        call = agent.next_call()
        call.task("WORKING")
        named = task_id(stream.take(2)[0])
    call.made("all of it", last=True)
    call.status("COMPLETED")
    eventually(lambda: _state(hub, agent_id, named) == "TASK_STATE_COMPLETED", "the task ends")


def _state(hub: HubProcess, agent_id: str, named: str) -> str:
    found: str = hub.request("GET", f"/agents/{agent_id}/tasks/{named}", None, V10).json["status"]["state"]
    return found
