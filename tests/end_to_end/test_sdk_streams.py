"""Streams and push with real, unmodified counterparts: the published SDK of A2A 1.0 on either side of the hub."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.world import eventually, fresh
from tests.support.agents.streaming_v10 import streaming10
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.peers import PeerProcess
from tests.support.platform_agent import platform_agent
from tests.support.quirks import STUBS
from tests.support.quirks.words import hello
from tests.support.receiver import callback_receiver
from tests.support.sdk_caller import CLIENTS, SdkCaller, SdkClient

OFFICIAL = [client for client in CLIENTS if client.peer == "a2a-1.3.0" and not client.mount]


@pytest.fixture(scope="module", params=OFFICIAL, ids=str)
def caller(hub: HubProcess, request: pytest.FixtureRequest) -> Iterator[SdkCaller]:
    """The published client, in each of its framings."""
    client: SdkClient = request.param
    with SdkCaller(client, hub.url, ADMIN_TOKEN) as caller:
        yield caller


def _message(text: str = "hi") -> dict[str, Any]:
    return {"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": text}]}


def _text(events: list[dict[str, Any]]) -> str:
    """The words of the artifacts that a client was shown."""
    made: dict[str, str] = {}
    for event in events:
        update = event.get("artifactUpdate")
        if update is not None:
            words = "".join(part.get("text", "") for part in update["artifact"]["parts"])
            name = update["artifact"]["artifactId"]
            made[name] = made.get(name, "") + words if update.get("append") else words
    return "".join(made.values())


def _streams(said: dict[str, Any]) -> list[dict[str, Any]]:
    assert "raised" not in said, said
    events: list[dict[str, Any]] = said["events"]
    assert "task" in events[0]
    assert all(len(event) == 1 for event in events)
    return events


@pytest.mark.req("O-48")
@pytest.mark.parametrize("server", ["strict10", "historyonly10", "mixedstream", "hybrid", "manyparts03"])
def test_the_published_client_streams_from_agents_of_every_habit(
    hub: HubProcess, caller: SdkCaller, server: str
) -> None:
    with STUBS[server]() as stub:
        agent_id: str = hub.register(None, url=stub.url, id=fresh("agt_sdk"))["id"]
        events = _streams(caller.say(agent_id, "stream", message=_message()))
    assert _text(events) == hello(server)
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("O-48")
def test_the_published_client_streams_from_an_agent_of_another_dialect(hub: HubProcess, caller: SdkCaller) -> None:
    with platform_agent() as agent:
        agent_id = fresh()
        body = {"agent_card": agent.card(id=agent_id)}
        assert hub.post("/v1/a2a/registry", body).status == 201
        events = _streams(caller.say(agent_id, "stream", message=_message()))
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("O-48")
def test_the_published_client_subscribes_and_is_refused_where_the_task_has_ended(
    hub: HubProcess, caller: SdkCaller
) -> None:
    with streaming10() as agent:
        agent_id: str = hub.register(agent.card, id=fresh("agt_sdk"))["id"]
        (sent,) = caller.say(agent_id, "send", message=_message(), wait=False)["events"]
        call = agent.next_call()
        call.task("WORKING")
        call.made("High ")
        task_id = sent["task"]["id"]
        eventually(lambda: caller.say(agent_id, "get", id=task_id)["task"].get("artifacts"), "the first piece is there")
        first, *_, last = _streams(caller.say(agent_id, "subscribe", id=task_id))
        assert first["task"]["artifacts"][0]["parts"] == [{"text": "High "}]
        assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
        refused = caller.say(agent_id, "subscribe", id=task_id)
    assert refused["raised"] == "UnsupportedOperationError", refused
    assert caller.say(agent_id, "subscribe", id="task-unknown")["raised"] == "TaskNotFoundError"


@pytest.mark.req("O-48")
def test_the_published_client_sets_reads_lists_and_deletes_configs(hub: HubProcess, caller: SdkCaller) -> None:
    with callback_receiver() as receiver, streaming10() as agent:
        agent_id: str = hub.register(agent.card, id=fresh("agt_sdk"))["id"]
        (sent,) = caller.say(agent_id, "send", message=_message(), wait=False)["events"]
        task_id = sent["task"]["id"]
        config = {
            "taskId": task_id,
            "url": f"{receiver.url}/hook",
            "token": "t0ken",
            "authentication": {"scheme": "Bearer", "credentials": "s3cret"},
        }
        said = caller.say(agent_id, "push", config=config)
        assert "raised" not in said, said
        made, read, listed, left = said["configs"]
        assert made == read
        assert (made["taskId"], made["url"]) == (task_id, config["url"])
        assert listed == {"configs": [made]}
        assert left == {}


@pytest.mark.req("O-48")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_published_agent_is_streamed_and_asked_its_question(
    hub: HubProcess, caller: SdkCaller, binding: str
) -> None:
    with PeerProcess("a2a-1.3.0", "echo_agent.py", "--binding", binding, "--mode", "told", "--delay", "1") as peer:
        agent_id: str = hub.register(None, url=peer.url, id=fresh("agt_peer"))["id"]
        events = _streams(caller.say(agent_id, "stream", message=_message("hello")))
        assert _text(events) == "hello"
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        events = _streams(caller.say(agent_id, "stream", message=_message("ask")))
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        answer = {**_message("the blue one"), "taskId": events[0]["task"]["id"]}
        events = _streams(caller.say(agent_id, "stream", message=answer))
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED", events
        assert _text(events) == "the blue one"
        events = _streams(caller.say(agent_id, "stream", message=_message("fail")))
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"
