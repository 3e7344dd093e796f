"""Streams of dotted on a real hub, where it has words of its own; what it shares with A2A 0.3 is tested there."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.end_to_end.kind_streams import called, followed, joined, kinds, message_of, state, task_id, text, told
from tests.end_to_end.world import fresh, join, says
from tests.support.agents import dotted
from tests.support.hub import HubProcess
from tests.support.kind_streamer import DOTTED, V03, kind_streamer, refusal
from tests.support.platform_agent import platform_agent
from tests.support.sse_client import sse
from tests.support.streaming_agent import StreamingAgent, streaming_agent

SLASH: Final = "message/stream"


@pytest.fixture
def teller(hub: HubProcess) -> Iterator[tuple[str, StreamingAgent]]:
    """A streaming agent of the platform's, and its id."""
    with streaming_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(agent_id)}).status == 201
        yield agent_id, agent


@pytest.mark.req("D-14")
@pytest.mark.parametrize("method", ["message.stream", SLASH])
def test_in_its_mount_a_stream_has_either_name_and_the_objects_of_dotted(hub: HubProcess, method: str) -> None:
    with platform_agent(says({"result": {"text": "all at once"}})) as agent:
        agent_id = join(hub, agent)["id"]
        params = {"message": message_of(DOTTED, "hi")}
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        url = f"{hub.url}/agents/{agent_id}/dotted/"
        with sse(url, body, headers={"Authorization": f"Bearer {hub.token}"}) as stream:
            items = list(stream)
    assert {item.data["id"] for item in items} == {7}
    first = told(DOTTED, items[0])[1]
    assert first["createdAt"] == first["updatedAt"]
    assert first["messages"] == first["history"]
    assert told(DOTTED, items[-1])[1]["final"] is True


@pytest.mark.req("D-14", "X-08")
def test_on_a_shared_url_the_slash_name_is_that_of_0_3(hub: HubProcess) -> None:
    with (
        platform_agent(says({"result": {"text": "all at once"}})) as agent,
        called(hub, V03, join(hub, agent)["id"]) as stream,
    ):
        assert "createdAt" not in told(V03, stream.take(1)[0])[1]


def test_a_stream_is_not_one_of_several_answers(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    agent_id, agent = teller
    one: dict[str, Any] = {"jsonrpc": "2.0", "method": "message.stream", "params": {"message": message_of(DOTTED, "x")}}
    get = {"jsonrpc": "2.0", "id": "b", "method": "task.get", "params": {"taskId": "task-none"}}
    reply = hub.post(f"/agents/{agent_id}", [{**one, "id": "a"}, get])
    assert [(each["id"], each["error"]["code"]) for each in reply.json] == [("a", -32600), ("b", -32001)]
    agent.next_call().complete({"a": 1})


@pytest.mark.req("X-19", "X-20")
def test_one_who_asks_again_under_the_same_key_sees_the_task_as_it_is_and_the_rest(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    message = message_of(DOTTED, "tides")
    key = fresh("key")
    with called(hub, DOTTED, agent_id, message, key=key) as stream:
        call = agent.next_call()
        call.chunks("one ")
        seen = stream.take(2)
        while "artifact-update" not in kinds(DOTTED, seen):
            seen += stream.take(1)
    with called(hub, DOTTED, agent_id, message, key=key) as again:
        items = again.take(1)
        call.chunks("two")
        call.complete()
        items += list(again)
    assert task_id(DOTTED, items[0]) == task_id(DOTTED, seen[0])
    assert text(DOTTED, items) == "one two"
    assert state(DOTTED, items[-1]) == "completed"


def test_a_reader_that_was_cut_may_come_back_by_the_words_of_0_3(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    agent_id, agent = teller
    with called(hub, DOTTED, agent_id) as stream:
        call = agent.next_call()
        seen = stream.take(1)
    call.chunks("one")
    call.complete()
    with followed(hub, V03, agent_id, task_id(DOTTED, seen[0]), after=seen[-1].id) as again:
        assert text(V03, list(again)) == "one"


def test_an_agent_that_knows_streams_by_the_slash_name_alone_is_streamed(hub: HubProcess) -> None:
    with kind_streamer(DOTTED) as agent:
        agent.methods = frozenset({SLASH, "message/send", "tasks/get"})
        agent_id = joined(hub, agent)
        for _ in range(2):
            with called(hub, DOTTED, agent_id) as stream:
                call = agent.next_call()
                assert call.method == SLASH
                call.task("working")
                call.piece("High water", last=True)
                call.done()
                assert text(DOTTED, list(stream)) == "High water"


def test_an_agent_that_has_no_streams_but_the_documents_names_is_called_by_those(hub: HubProcess) -> None:
    with dotted.agent(fresh("dotted")) as agent:
        card = {**agent.card, "capabilities": {**agent.card["capabilities"], "streaming": True}}
        agent_id: str = hub.register(card, id=fresh())["id"]
        with called(hub, DOTTED, agent_id, "hello") as stream:
            assert text(DOTTED, list(stream)) == "hello"
    methods = [body["method"] for _, _, _, body in agent.requests if body and "tides" not in str(body)]
    assert methods[-3:] == ["message.stream", SLASH, "message.send"]


def test_an_agent_that_refuses_a_stream_for_another_reason_has_failed(hub: HubProcess) -> None:
    with kind_streamer(DOTTED) as agent:
        agent.instead["stream"] = refusal(-32603)
        with called(hub, DOTTED, joined(hub, agent)) as stream:
            items = list(stream)
    assert state(DOTTED, items[-1]) == "failed"
    assert "not here" in str(items[-1].data)
    assert agent.asked == ["stream"]
