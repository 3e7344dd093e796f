"""What belongs to one principal looks unknown to another, in every operation of every dialect."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import msgspec
import pytest

from tests.end_to_end.every_dialect import WITH_CONTEXT, Everyone, Known, asked, enveloped, framed
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.hub import HubProcess, Reply, running_hub

VERSION: Final = {"A2A-Version": "1.0"}
ID: Final = "ID"
UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"


class World(msgspec.Struct, frozen=True):
    """A hub, an agent that asks back, and two principals that have the same rights."""

    everyone: Everyone
    mine: str
    theirs: str

    @property
    def hub(self) -> HubProcess:
        """The hub."""
        return self.everyone.hub

    @property
    def agent(self) -> Known:
        """The agent."""
        return self.everyone.agent("a2a-1.0")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("owners") / "data"))
        keys = [hub.new_key("a2a:call", "a2a:register", "a2a:receive") for _ in range(2)]
        yield World(Everyone(hub, stack), *keys)
        assert tracebacks(hub) == []


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on a task or call; ID in path and body stands for its id."""

    path: str
    body: Any = None
    method: str = "POST"
    headers: dict[str, str] = {}

    def of(self, world: World, name: str, token: str) -> tuple[int, str]:
        """What it is answered, with nothing in it that only that id has."""
        body = None if self.body is None else json.loads(json.dumps(self.body).replace(ID, name))
        path = self.path.replace(ID, name).replace("AGENT", world.agent.id)
        reply = world.hub.request(self.method, path, body, self.headers, token)
        return reply.status, _without(reply, name)


def _without(reply: Reply, name: str) -> str:
    shown = reply.body.decode().replace(name, ID)
    answer: dict[str, Any] = json.loads(shown)
    own = ("id", "call_id", "timing")  # of this answer alone
    return json.dumps({name: value for name, value in answer.items() if name not in own}, sort_keys=True)


def _rpc(method: str, params: Any, **more: Any) -> Ask:
    return Ask(path="/agents/AGENT/", body={**framed(method, params), "id": "1"}, **more)


def _said(kind: str) -> dict[str, Any]:
    part = {"kind": "text", "text": "x"} if kind != "a2a-1.0" else {"text": "x"}
    role = "ROLE_USER" if kind == "a2a-1.0" else "user"
    return {
        "messageId": "m",
        "role": role,
        "parts": [part],
        "taskId": ID,
        **({} if kind == "a2a-1.0" else {"kind": "message"}),
    }


VAULT: Final = {"role": "user", "parts": [{"type": "text", "content": "x"}]}
PUSH: Final = {"url": "https://client.example/hook"}
OPERATIONS: Final[dict[str, tuple[Ask, ...]]] = {
    "platform": (
        Ask(method="GET", path="/v1/a2a/call/ID/status"),
        Ask(path="/v1/a2a/call/ID/cancel", body={}),
        Ask(path="/v1/a2a/call", body={"skill": "echo", "input": {}, "context": {"continue_call_id": ID}}),
    ),
    "dotted": (
        _rpc("task.get", {"taskId": ID}),
        _rpc("task.cancel", {"taskId": ID}),
        _rpc("message.send", {"message": _said("dotted")}),
    ),
    "a2a-0.3": (
        _rpc("tasks/get", {"id": ID}),
        _rpc("tasks/cancel", {"id": ID}),
        _rpc("tasks/resubscribe", {"id": ID}),
        _rpc("message/send", {"message": _said("a2a-0.3")}),
        _rpc("tasks/pushNotificationConfig/set", {"taskId": ID, "pushNotificationConfig": PUSH}),
        _rpc("tasks/pushNotificationConfig/get", {"id": ID}),
        _rpc("tasks/pushNotificationConfig/list", {"id": ID}),
        _rpc("tasks/pushNotificationConfig/delete", {"id": ID, "pushNotificationConfigId": "p"}),
        Ask(method="GET", path="/agents/AGENT/v1/tasks/ID"),
        Ask(path="/agents/AGENT/v1/tasks/ID:cancel", body={}),
        Ask(method="GET", path="/agents/AGENT/v1/tasks/ID/pushNotificationConfigs"),
    ),
    "a2a-1.0": (
        _rpc("GetTask", {"id": ID}, headers=VERSION),
        _rpc("CancelTask", {"id": ID}, headers=VERSION),
        _rpc("SubscribeToTask", {"id": ID}, headers=VERSION),
        _rpc("SendMessage", {"message": _said("a2a-1.0")}, headers=VERSION),
        _rpc("CreateTaskPushNotificationConfig", {"taskId": ID, **PUSH}, headers=VERSION),
        _rpc("GetTaskPushNotificationConfig", {"taskId": ID, "id": "p"}, headers=VERSION),
        _rpc("ListTaskPushNotificationConfigs", {"taskId": ID}, headers=VERSION),
        _rpc("DeleteTaskPushNotificationConfig", {"taskId": ID, "id": "p"}, headers=VERSION),
        Ask(method="GET", path="/agents/AGENT/tasks/ID", headers=VERSION),
        Ask(path="/agents/AGENT/tasks/ID:cancel", body={}, headers=VERSION),
        Ask(method="GET", path="/agents/AGENT/tasks/ID/pushNotificationConfigs", headers=VERSION),
    ),
    "agentvault": (
        _rpc("tasks/get", {"id": ID}),
        _rpc("tasks/cancel", {"id": ID}),
        _rpc("tasks/sendSubscribe", {"id": ID}),
        _rpc("tasks/send", {"id": ID, "message": VAULT}),
    ),
}
PREFIX: Final = {"platform": "a2a_call_", "agentvault": "av-"}


def _open_task(world: World, slug: str) -> str:
    """A task of mine that waits for more input, so that every operation has something to do."""
    answer = asked(slug, world.agent.id, "ask").post(world.hub, world.mine).json
    if slug == "platform":
        return answer["call_id"]
    result = answer["result"]
    task_id: str = result.get("task", result)["id"]
    show = OPERATIONS[slug][0]
    eventually(lambda: "INPUT" in show.of(world, task_id, world.mine)[1].upper(), "the agent asks")
    return task_id


@pytest.mark.req("X-15")
@pytest.mark.parametrize("slug", OPERATIONS)
def test_another_principals_task_looks_unknown_in_every_operation(world: World, slug: str) -> None:
    task_id = _open_task(world, slug)
    nobody = PREFIX.get(slug, "task-") + UNKNOWN
    for operation in OPERATIONS[slug]:
        assert operation.of(world, task_id, world.theirs) == operation.of(world, nobody, world.theirs), operation
    # It is there all the same, as it was, and does what its owner wants.
    assert "INPUT" in OPERATIONS[slug][0].of(world, task_id, world.mine)[1].upper()
    assert OPERATIONS[slug][0].of(world, task_id, world.mine) != OPERATIONS[slug][0].of(world, nobody, world.mine)
    status, _ = OPERATIONS[slug][1].of(world, task_id, world.mine)
    assert status == 200


@pytest.mark.req("X-15")
def test_another_principals_tasks_and_conversations_are_not_listed(world: World) -> None:
    context = fresh("ctx")
    asked("a2a-1.0", world.agent.id, "hello", context=context).post(world.hub, world.mine)
    for query in ({}, {"contextId": context}):
        body = framed("ListTasks", query)
        for token, wanted in ((world.mine, True), (world.theirs, False)):
            found = world.hub.post(f"/agents/{world.agent.id}/", body, VERSION, token).json["result"]
            assert (context in {task["contextId"] for task in found["tasks"]}) is wanted
            if "contextId" in query:
                assert found["totalSize"] == (1 if wanted else 0)


@pytest.mark.req("X-15")
@pytest.mark.parametrize("slug", WITH_CONTEXT)
def test_who_names_another_principals_conversation_gets_one_of_its_own(world: World, slug: str) -> None:
    context = fresh("ctx")
    for token in (world.mine, world.theirs):
        assert asked(slug, world.agent.id, "hello", context=context).post(world.hub, token).status == 200
    (_, first), (_, second) = _last_two(world)
    assert first["params"]["message"]["contextId"] != second["params"]["message"]["contextId"]


def _last_two(world: World) -> list[tuple[str, Any]]:
    sent = [(path, body) for _, path, _, body in world.agent.stub.requests if body and body["method"] == "SendMessage"]
    return sent[-2:]


@pytest.mark.req("X-15")
def test_what_another_principals_task_made_is_not_handed_over(world: World) -> None:
    mine = asked("dotted", world.agent.id, "secret words").post(world.hub, world.mine).json["result"]["id"]
    for token, handed in ((world.theirs, False), (world.mine, True)):
        request = asked("dotted", world.agent.id, "hello")
        request.body["params"]["message"]["referenceTaskIds"] = [mine]
        assert request.post(world.hub, token).status == 200
        assert ("secret words" in json.dumps(_last_two(world)[-1])) is handed


# -- the two dialects whose callers name their tasks themselves


@pytest.mark.req("X-15")
def test_the_same_task_id_of_two_principals_is_two_tasks_at_the_directory(world: World) -> None:
    request = asked("directory", world.agent.id, "hello")
    own = request.body["params"]
    assert request.post(world.hub, world.mine).json["result"]["output"] == {"text": "hello"}
    request.body["params"] = {**own, "input": {"text": "something else"}}
    assert request.post(world.hub, world.theirs).json["result"]["output"] == {"text": "something else"}
    assert request.post(world.hub, world.mine).json["result"]["output"] == {"text": "hello"}
    cancel = framed("a2a/cancel", {"taskId": fresh("nobody")})
    stranger = world.hub.new_key("a2a:call")
    for task_id in (own["taskId"], fresh("nobody")):
        cancel["params"] = {"taskId": task_id}
        error = world.hub.post("/a2a", cancel, token=stranger).json["error"]
        assert (error["code"], error["data"]["reason"]) == (-32001, "task_not_found")


@pytest.mark.req("X-15")
def test_only_its_giver_cancels_an_assigned_task_and_reads_its_mail(world: World) -> None:
    hub, worker = world.hub, world.everyone.agent("envelope")
    assert isinstance(worker.stub, EnvelopeAgent)
    givers: list[str] = []
    for token in (world.mine, world.theirs):
        givers.append(fresh("giver"))
        card = {"id": givers[-1], "name": "Giver", "version": "1.0.0", "supported_tasks": ["listen"]}
        assert hub.post("/v1/a2a/registry", {"agent_card": card}, token=token).status == 201
    request = asked("envelope", worker.id, "slow", sender=givers[0])
    assert request.post(hub, world.mine).status == 200
    assert worker.stub.arrived.wait(10)
    cancelled = {"task_id": request.body["payload"]["task_id"], "status": "cancelled"}
    for name in (cancelled["task_id"], fresh("nobody")):
        told = enveloped(givers[1], worker.id, "status_update", {**cancelled, "task_id": name})
        reply = hub.post("/a2a/messages", told, token=world.theirs)
        assert (reply.status, reply.json["error_code"]) == (404, "TASK_NOT_FOUND")
    assert hub.get(f"/a2a/messages?agent={givers[0]}", token=world.theirs).status == 403
    assert not worker.stub.cancelled.is_set()
    told = enveloped(givers[0], worker.id, "status_update", cancelled)
    assert hub.post("/a2a/messages", told, token=world.mine).status == 200
    assert worker.stub.cancelled.wait(10)
