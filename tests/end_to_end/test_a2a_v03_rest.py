"""A2A 0.3 over HTTP+JSON, over real sockets: callers of it at the hub, and agents of it behind the hub."""

import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.end_to_end.world import eventually, fresh, holds, join, skill
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent
from tests.support.quirks.protos import V03, strange_members
from tests.support.quirks.rest03 import RestStub, rest03
from tests.support.quirks.words import hello

MANY: Final = 2**60 + 1


@pytest.fixture
def stub(hub: HubProcess) -> Iterator[RestStub]:
    """An agent of 0.3 that speaks HTTP+JSON alone, registered by its card."""
    with rest03() as stub:
        stub.card["name"] = fresh("rest")
        stub.slug = hub.register(stub.card)["id"]
        yield stub


def _message(*content: Any, **more: Any) -> dict[str, Any]:
    return {"messageId": "m-1", "role": "ROLE_USER", "content": list(content) or [{"text": "hi"}], **more}


def _send(hub: HubProcess, agent: str, *content: Any, blocking: bool = True, **more: Any) -> Reply:
    body = {"message": _message(*content, **more), "configuration": {"blocking": blocking}}
    return hub.post(f"/agents/{agent}/v1/message:send", body)


def _task(reply: Reply) -> dict[str, Any]:
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "application/json"
    assert strange_members(reply.json, "SendMessageResponse", V03) == []
    task: dict[str, Any] = reply.json["task"]
    return task


def _platform(hub: HubProcess, agent: PlatformAgent) -> str:
    agent_id: str = join(hub, agent, skills=[skill("echo")])["id"]
    return agent_id


@pytest.mark.req("O-45")
def test_a_message_is_carried_and_answered_in_the_protobufs_json(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = _platform(hub, agent)
    task = _task(_send(hub, agent_id, {"data": {"data": {"n": MANY, "a_b": [1, None]}}}, contextId="ctx-mine"))
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["contextId"] == "ctx-mine"
    assert agent.requests[-1][2]["input"] == {"n": MANY, "a_b": [1, None]}
    assert task["history"][0]["content"] == [{"data": {"data": {"n": MANY, "a_b": [1, None]}}}]
    assert task["artifacts"][0]["parts"][0]["data"]["data"]


@pytest.mark.req("O-45")
def test_who_does_not_say_blocking_is_answered_at_once_and_looks_later(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    agent_id = _platform(hub, agent)
    task = _task(_send(hub, agent_id, {"data": {"data": {"q": 1}}}, blocking=False))
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    agent.release.set()

    def done() -> dict[str, Any] | None:
        looked = hub.get(f"/agents/{agent_id}/v1/tasks/{task['id']}")
        assert looked.status == 200, looked.body
        assert strange_members(looked.json, "Task", V03) == []
        return looked.json if looked.json["status"]["state"] == "TASK_STATE_COMPLETED" else None

    assert eventually(done, "the task is completed")["id"] == task["id"]


@pytest.mark.req("O-45")
@pytest.mark.parametrize("body", [b"", b"{}"])
def test_a_task_is_cancelled_with_or_without_a_body(hub: HubProcess, agent: PlatformAgent, body: bytes) -> None:
    agent.respond = holds(agent)
    agent_id = _platform(hub, agent)
    task = _task(_send(hub, agent_id, {"data": {"data": {"q": 1}}}, blocking=False))
    path = f"/agents/{agent_id}/v1/tasks/{task['id']}:cancel"
    cancelled = hub.post(path, body)
    assert cancelled.status == 200, cancelled.body
    assert cancelled.json["status"]["state"] == "TASK_STATE_CANCELLED"
    again = hub.post(path, body)
    assert (again.status, again.json["code"], again.json["type"]) == (400, -32002, "TaskNotCancelableError")


@pytest.mark.req("O-45")
def test_a_task_nobody_has_is_told_in_every_clients_words(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = _platform(hub, agent)
    for reply in (
        hub.get(f"/agents/{agent_id}/v1/tasks/task-nobody"),
        hub.post(f"/agents/{agent_id}/v1/tasks/task-nobody:cancel", {}),
        _send(hub, agent_id, taskId="task-nobody"),
    ):
        assert (reply.status, reply.json["code"], reply.json["type"]) == (404, -32001, "TaskNotFoundError")
        assert reply.json["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"


@pytest.mark.req("O-45")
def test_the_card_is_0_3s_own(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = _platform(hub, agent)
    for path in (f"/agents/{agent_id}/v1/card", f"/agents/{agent_id}/a2a-0.3/v1/card"):
        card = hub.get(path).json
        assert card["protocolVersion"] == "0.3.0"
        assert "supportedInterfaces" not in card
        assert card["url"] in [each["url"] for each in card["additionalInterfaces"] if each["transport"] == "HTTP+JSON"]
    ours = hub.get("/v1/card")
    assert ours.status == 200, ours.body
    assert ours.json["url"].count("/") == 3


def test_a_wrong_type_and_a_wrong_version_are_refused_before_the_body_is_read(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    path = f"/agents/{_platform(hub, agent)}/v1/message:send"
    typed = hub.post(path, b"{", {"Content-Type": "text/plain"})
    assert (typed.status, typed.json["code"]) == (415, -32005)
    versioned = hub.post(path, b"{", {"A2A-Version": "1.0"})
    assert (versioned.status, versioned.json["code"]) == (400, -32009)
    unread = hub.post(path, b"{")
    assert (unread.status, unread.json["code"]) == (400, -32700)


def test_without_a_key_nobody_is_served(hub: HubProcess, agent: PlatformAgent) -> None:
    path = f"/agents/{_platform(hub, agent)}/v1/message:send"
    refused = hub.post(path, {"message": _message()}, {"Authorization": "Bearer ap_wrong"})
    assert (refused.status, refused.json["code"]) == (401, -32000)
    assert refused.headers["www-authenticate"].startswith("Bearer resource_metadata=")


def test_the_same_key_is_the_same_task(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = _platform(hub, agent)
    body = {"message": _message({"data": {"data": {"q": 1}}}), "configuration": {"blocking": True}}
    path, key = f"/agents/{agent_id}/v1/message:send", {"Idempotency-Key": fresh("key")}
    first, second, third = hub.post(path, body, key), hub.post(path, body, key), hub.post(path, body)
    assert _task(first)["id"] == _task(second)["id"] != _task(third)["id"]


def test_a_task_looked_at_below_another_agent_is_not_found(hub: HubProcess, agent: PlatformAgent) -> None:
    mine, other = _platform(hub, agent), _platform(hub, agent)
    task = _task(_send(hub, mine, {"data": {"data": {"q": 1}}}))
    assert hub.get(f"/agents/{mine}/v1/tasks/{task['id']}").status == 200
    assert hub.get(f"/agents/{other}/v1/tasks/{task['id']}").status == 404
    assert hub.get(f"/v1/tasks/{task['id']}").status == 200


# -- the agent is the one who speaks it


def test_an_agent_of_http_and_json_alone_is_called_by_it(hub: HubProcess, stub: RestStub) -> None:
    task = _task(_send(hub, stub.slug))
    assert task["artifacts"][0]["parts"] == [{"text": hello("rest03")}]
    (sent,) = [each for each in stub.requests if each[1] == "/v1/message:send"]
    assert sent[2]["a2a-version"] == "0.3"
    assert sent[2]["idempotency-key"] == task["id"]
    assert sent[3]["configuration"] == {"blocking": True}
    assert strange_members(sent[3]["message"], "Message", V03) == []


def test_a_platform_caller_reaches_it_too(hub: HubProcess, stub: RestStub) -> None:
    reply = hub.call("greet", {"text": "hi"}, stub.slug)
    assert reply.status == 200, reply.body
    assert reply.json["result"] == {"text": hello("rest03")}


def test_such_an_agent_gets_a_file_by_its_address_which_no_sdk_reads_wrong(hub: HubProcess, stub: RestStub) -> None:
    file = {"fileWithBytes": "AP9i", "mimeType": "application/octet-stream", "name": "b.bin"}
    _task(_send(hub, stub.slug, {"text": "hi"}, {"file": file}))
    (sent,) = (part["file"] for part in stub.requests[-1][3]["message"]["content"] if "file" in part)
    assert (sent["name"], sent["mimeType"]) == ("b.bin", "application/octet-stream")
    with urllib.request.urlopen(sent["fileWithUri"], timeout=10) as reply:
        assert reply.read() == b"\x00\xffb"


def test_an_agent_that_is_not_where_its_card_says_is_an_agents_error(hub: HubProcess) -> None:
    with rest03() as stub:
        agent_id = hub.register({**stub.card, "name": fresh("rest"), "url": f"{stub.url}/nowhere"})["id"]
        lost = hub.call("greet", {"text": "hi"}, agent_id)
        assert [path for _, path, _, _ in stub.requests] == ["/nowhere/v1/message:send"]
    assert (lost.status, lost.json["error"]["code"]) == (502, "AGENT_ERROR")
