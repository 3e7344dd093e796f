"""Streams and push with real, unmodified counterparts: the published SDK of A2A 0.3 on either side of the hub."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.world import eventually, fresh
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.peers import PeerProcess
from tests.support.platform_agent import platform_agent
from tests.support.quirks import STUBS
from tests.support.quirks.words import hello
from tests.support.receiver import callback_receiver
from tests.support.sdk_caller import CLIENTS, SdkCaller, SdkClient
from tests.support.streaming_agent import streaming_agent

OF_V03 = [client for client in CLIENTS if client.words == "0.3"]


@pytest.fixture(scope="module", params=OF_V03, ids=str)
def caller(hub: HubProcess, request: pytest.FixtureRequest) -> Iterator[SdkCaller]:
    """The published client, in each of its framings."""
    client: SdkClient = request.param
    with SdkCaller(client, hub.url, ADMIN_TOKEN) as caller:
        yield caller


def _message(text: str = "hi") -> dict[str, Any]:
    return {
        "kind": "message",
        "messageId": fresh("m"),
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }


def _task(said: dict[str, Any]) -> dict[str, Any]:
    """The task that the client made of a stream: it began with one, and told of its end."""
    assert "raised" not in said, said
    assert said["events"][0]["kind"] == "task"
    assert said["events"][-1]["final"] is True
    assert [event.get("final", False) for event in said["events"]].count(True) == 1
    task: dict[str, Any] = said["task"]
    return task


def _text(task: dict[str, Any]) -> str:
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


@pytest.mark.req("O-48", "O-43", "O-45")
@pytest.mark.parametrize(
    "server", ["strict10", "historyonly10", "mixedstream", "hybrid", "manyparts03", "statusonly03"]
)
def test_the_published_client_streams_from_agents_of_every_habit(
    hub: HubProcess, caller: SdkCaller, server: str
) -> None:
    with STUBS[server]() as stub:
        agent_id: str = hub.register(None, url=stub.url, id=fresh("agt_sdk"))["id"]
        task = _task(caller.say(agent_id, "stream", message=_message()))
    assert (task["status"]["state"], _text(task)) == ("completed", hello(server))


@pytest.mark.req("O-48")
def test_the_published_client_streams_from_agents_of_another_dialect(hub: HubProcess, caller: SdkCaller) -> None:
    with platform_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(id=agent_id)}).status == 201
        assert _task(caller.say(agent_id, "stream", message=_message()))["status"]["state"] == "completed"


@pytest.mark.req("O-48")
def test_the_published_client_subscribes_and_is_refused_where_the_task_has_ended(
    hub: HubProcess, caller: SdkCaller
) -> None:
    with streaming_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(agent_id)}).status == 201
        (sent,) = caller.say(agent_id, "send", message=_message(), wait=False)["events"]
        call = agent.next_call()
        call.chunks("High ")
        name = sent["id"]
        eventually(lambda: caller.say(agent_id, "get", id=name)["task"].get("artifacts"), "the first piece is there")
        call.chunks("water")
        call.say("progress", {"progress": 0.5})
        call.complete()
        refused = eventually(lambda: _ended(caller, agent_id, name), "it is done")
    unknown = caller.say(agent_id, "subscribe", id="task-unknown")
    # To this client every answer that is no stream is a 400, whatever it says.
    assert (refused["raised"], unknown["raised"]) == ("A2AClientHTTPError", "A2AClientHTTPError")


def _ended(caller: SdkCaller, agent_id: str, name: str) -> dict[str, Any] | None:
    said = caller.say(agent_id, "subscribe", id=name)
    if "raised" in said:
        return said
    assert _text(_task(said)) == "High water"
    return None


@pytest.mark.req("O-48", "O-44")
def test_the_published_client_sets_a_webhook_and_is_told_the_task(hub: HubProcess, caller: SdkCaller) -> None:
    with callback_receiver() as receiver, streaming_agent() as agent:
        agent_id = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(agent_id)}).status == 201
        (sent,) = caller.say(agent_id, "send", message=_message(), wait=False)["events"]
        call = agent.next_call()
        inner = {"id": "c-1", "url": f"{receiver.url}/hook", "token": "t0ken"}
        said = caller.say(agent_id, "push", config={"taskId": sent["id"], "pushNotificationConfig": inner})
        assert "raised" not in said, said
        kept, read = said["configs"]
        assert kept == read
        assert (kept["taskId"], kept["pushNotificationConfig"]["url"]) == (sent["id"], inner["url"])
        call.complete({"text": "High water"})
        got = eventually(
            lambda: next((each for each in receiver.got if each.body["status"]["state"] == "completed"), None),
            "the end is told",
        )
    assert (got.body["kind"], got.body["id"]) == ("task", sent["id"])
    assert got.headers["x-a2a-notification-token"] == "t0ken"


@pytest.mark.req("O-48")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_published_agent_is_streamed_and_asked_its_question(
    hub: HubProcess, caller: SdkCaller, binding: str
) -> None:
    with PeerProcess("a2a-0.3.26", "echo_agent_v03.py", "--binding", binding) as peer:
        agent_id: str = hub.register(None, url=peer.url, id=fresh("agt_peer"))["id"]
        task = _task(caller.say(agent_id, "stream", message=_message("hello")))
        assert (task["status"]["state"], _text(task)) == ("completed", "hello")
        task = _task(caller.say(agent_id, "stream", message=_message("ask")))
        assert task["status"]["state"] == "input-required"
        answer = {**_message("the blue one"), "taskId": task["id"]}
        task = _task(caller.say(agent_id, "stream", message=answer))
        assert (task["status"]["state"], _text(task)) == ("completed", "the blue one")
        task = _task(caller.say(agent_id, "stream", message=_message("fail")))
        assert task["status"]["state"] == "failed"


@pytest.mark.req("O-48")
@pytest.mark.parametrize("client", [each for each in CLIENTS if each.mount], ids=str)
def test_a_client_of_1_0_that_falls_back_to_0_3_streams_and_pushes(hub: HubProcess, client: SdkClient) -> None:
    message = {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    with (
        SdkCaller(client, hub.url, ADMIN_TOKEN) as caller,
        callback_receiver() as receiver,
        STUBS["manyparts03"]() as stub,
        streaming_agent() as agent,
    ):
        agent_id: str = hub.register(None, url=stub.url, id=fresh("agt_sdk"))["id"]
        said = caller.say(agent_id, "stream", message=message)
        assert "raised" not in said, said
        assert "task" in said["events"][0]
        assert said["events"][-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        held = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(held)}).status == 201
        (sent,) = caller.say(held, "send", message={**message, "messageId": fresh("m")}, wait=False)["events"]
        config = {"taskId": sent["task"]["id"], "url": f"{receiver.url}/hook", "token": "t0ken"}
        said = caller.say(held, "push", config=config)
        if client.binding == "JSONRPC":
            made, read, listed, left = said["configs"]
            assert made == read
            assert (made["taskId"], made["url"]) == (config["taskId"], config["url"])
            assert (listed, left) == ({"configs": [made]}, {})
        else:  # It sets and reads one there, and cannot list any.
            assert said["raised"] == "NotImplementedError", said
        agent.next_call().complete({"text": "done"})
