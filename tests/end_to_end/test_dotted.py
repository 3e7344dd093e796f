"""Dotted over the wire: its callers at the hub, and its agents behind it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.end_to_end.world import RFC_3339, eventually, fresh
from tests.support.agents import dotted
from tests.support.callers.dotted import DottedCaller
from tests.support.hub import ADMIN_TOKEN, HubProcess, Reply, running_hub
from tests.support.speaking import FAILURE, QUESTION, Content, File, Seen, StubAgent, json_answer, serving

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "dotted"
STATES: Final = ("submitted", "working", "input-required", "auth-required", "completed", "failed", "rejected")
TEXT: Final = {"kind": "text", "text": "hello"}


class World:
    """A dotted agent at a hub, and how it is talked to."""

    def __init__(self, hub: HubProcess, agent: StubAgent) -> None:
        self.hub = hub
        self.agent = agent
        self.name: str = hub.register(agent.card, id=fresh())["id"]
        self.caller = DottedCaller(hub.url, ADMIN_TOKEN)

    def post(self, body: Any, path: str = "/", **headers: str) -> Reply:
        """One request to the agent's base, or below it."""
        return self.hub.post(f"/agents/{self.name}{path}", body, headers)

    def rpc(self, method: str, params: Any = None, path: str = "/", **more: Any) -> Any:
        """The whole answer to one JSON-RPC request."""
        framed = {"jsonrpc": "2.0", "id": "req-1", "method": method, **({} if params is None else {"params": params})}
        reply = self.post({**framed, **more}, path)
        assert reply.status == 200, reply.body
        return reply.json

    def send(self, *parts: Mapping[str, Any], path: str = "/", **message: Any) -> Any:
        """The task that a message becomes."""
        body = self.rpc("message.send", {"message": {"role": "user", "parts": list(parts) or [TEXT], **message}}, path)
        return body["result"]

    def slow(self) -> Seen:
        """A task that the agent is known to work on."""
        seen = self.caller.call(self.name, Content(text="slow"), wait=False)
        assert self.agent.arrived.wait(10)
        eventually(lambda: self.caller.get(self.name, seen).state == "working", "the agent works")
        return seen

    @property
    def last(self) -> Any:
        """What the agent was sent last."""
        return [body for method, _, _, body in self.agent.requests if method == "POST"][-1]


@pytest.fixture
def world(hub: HubProcess) -> Iterator[World]:
    with dotted.agent(fresh("dotted")) as agent:
        yield World(hub, agent)


def _example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


# -- the card


@pytest.mark.req("D-01", "X-11")
@pytest.mark.parametrize("path", ["/.well-known/agent-card", "/agent-card", "/dotted/.well-known/agent-card"])
def test_an_agents_card_is_at_both_paths_below_its_base(world: World, path: str) -> None:
    reply = world.hub.get(f"/agents/{world.name}{path}")
    assert reply.status == 200
    card = reply.json
    assert card.keys() >= _example("agent-card").keys()
    mount = "dotted/" if path.startswith("/dotted") else ""
    assert card["url"].endswith(f"/agents/{world.name}/{mount}")
    assert card["skills"] == world.agent.card["skills"]
    assert card["capabilities"] == {"streaming": True, "pushNotifications": True, "longRunningTasks": True}


@pytest.mark.req("D-01")
def test_the_hub_has_a_card_of_its_own_at_its_root(world: World) -> None:
    for path in ("/.well-known/agent-card", "/agent-card"):
        card = world.hub.get(path).json
        assert card.keys() >= _example("agent-card").keys()
        assert "echo" in {skill["id"] for skill in card["skills"]}


def test_the_card_of_an_agent_that_is_not_there_is_a_404(hub: HubProcess) -> None:
    assert hub.get("/agents/agt_nobody/agent-card").status == 404


# -- sending


@pytest.mark.req("D-02", "D-03", "D-16", "D-17", "D-18")
def test_a_message_is_answered_with_a_finished_task(world: World) -> None:
    task = world.send()
    assert task["id"].startswith("task-")
    assert task["kind"] == "task"
    assert task["contextId"]
    assert task["status"]["state"] == "completed"
    assert task["artifacts"][0]["parts"] == [TEXT]
    assert task["artifacts"][0].keys() >= {"artifactId", "name"}
    assert task["messages"] == task["history"]
    assert task["messages"][0]["messageId"].startswith("msg-")
    assert (task["messages"][0]["taskId"], task["messages"][0]["contextId"]) == (task["id"], task["contextId"])
    for time in (task["status"]["timestamp"], task["createdAt"], task["updatedAt"]):
        assert RFC_3339.fullmatch(time)
    assert world.send()["contextId"] != task["contextId"]


@pytest.mark.req("D-02")
def test_the_root_of_the_hub_takes_messages_too(world: World) -> None:
    message = {"role": "user", "parts": [TEXT], "metadata": {"agentId": world.name}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message.send", "params": {"message": message}}
    reply = world.hub.post("/", body)
    assert reply.json["result"]["status"]["state"] == "completed"
    assert world.last["params"]["message"]["parts"] == [TEXT]


@pytest.mark.req("D-17")
def test_one_who_does_not_wait_is_answered_at_once(world: World) -> None:
    seen = world.caller.call(world.name, Content(text="slow"), wait=False)
    assert seen.state in ("submitted", "working")
    assert world.agent.arrived.wait(10)
    assert world.caller.get(world.name, seen).state in ("submitted", "working")
    assert world.caller.cancel(world.name, seen).state == "canceled"


@pytest.mark.req("D-04")
@pytest.mark.parametrize(
    "content",
    [
        Content(text="hello"),
        Content(data={"key": "value", "nested": {"big": 2**70}}),
        Content(file=File(raw=b"#!/bin/bash\n\x00\xff", name="script.sh", media_type="text/x-shellscript")),
        Content(file=File(uri="https://example.com/file.pdf", name="document.pdf", media_type="application/pdf")),
    ],
    ids=["text", "data", "bytes", "uri"],
)
def test_every_kind_of_part_goes_to_the_agent_and_back(world: World, content: Content) -> None:
    assert world.caller.call(world.name, content).content == (content,)


@pytest.mark.req("D-19", "D-11")
@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "parts": [{"kind": "video"}]},
        {"role": "user", "parts": [{"kind": "file", "file": {"bytes": "AP9i", "uri": "https://x.test/"}}]},
        {"role": "user", "parts": [{"kind": "file", "file": {"bytes": "not base64"}}]},
        {"role": "system", "parts": [TEXT]},
        {"role": "user", "parts": []},
    ],
)
def test_a_message_that_makes_no_sense_reaches_nobody(world: World, message: Any) -> None:
    error = world.rpc("message.send", {"message": message})["error"]
    assert error["code"] == -32602
    assert error["data"]["path"].startswith("message.")
    assert not world.agent.arrived.is_set()


# -- tasks


@pytest.mark.req("D-05")
def test_a_task_is_got_again_and_an_unknown_one_is_not(world: World) -> None:
    task = world.send()
    assert world.rpc("task.get", {"taskId": task["id"]})["result"] == task
    error = world.rpc("task.get", {"taskId": "task-none"})["error"]
    assert (error["code"], error["data"]["taskId"]) == (-32001, "task-none")


@pytest.mark.req("D-05")
def test_a_task_of_another_agent_is_unknown_here(world: World) -> None:
    with dotted.agent(fresh("dotted")) as other:
        elsewhere = World(world.hub, other)
        assert elsewhere.rpc("task.get", {"taskId": world.send()["id"]})["error"]["code"] == -32001


@pytest.mark.req("D-20")
def test_a_task_is_cancelled_with_its_reason_and_the_agent_is_told(world: World) -> None:
    seen = world.slow()
    task = world.rpc("task.cancel", {"taskId": seen.task_id, "reason": "User canceled the operation"})["result"]
    assert task["status"]["state"] == "canceled"
    assert task["status"]["message"] == "User canceled the operation"
    assert world.agent.cancelled.wait(10)
    assert world.rpc("task.get", {"taskId": seen.task_id})["result"] == task


@pytest.mark.req("D-20")
def test_a_task_that_waits_for_input_is_cancelled(world: World) -> None:
    asking = world.caller.call(world.name, Content(text="ask"))
    assert world.caller.cancel(world.name, asking).state == "canceled"
    assert world.agent.cancelled.wait(10)


@pytest.mark.req("D-07")
@pytest.mark.parametrize("wish", ["hello", "fail", "reject"])
def test_a_finished_task_never_restarts(world: World, wish: str) -> None:
    task = world.send({"kind": "text", "text": wish})
    error = world.rpc("message.send", {"message": {"role": "user", "parts": [TEXT], "taskId": task["id"]}})["error"]
    assert (error["code"], error["data"]["taskId"]) == (-32004, task["id"])
    error = world.rpc("task.cancel", {"taskId": task["id"]})["error"]
    assert (error["code"], error["data"]["taskId"]) == (-32002, task["id"])
    assert world.rpc("task.get", {"taskId": task["id"]})["result"] == task


@pytest.mark.req("D-06")
@pytest.mark.parametrize("state", STATES)
def test_every_state_of_an_agent_is_shown_as_it_is(hub: HubProcess, state: str) -> None:
    agent = StubAgent("dotted")

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        agent.arrived.set()
        task: Any = {"id": "T", "kind": "task", "contextId": "C", "status": {"state": state}, "artifacts": []}
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "result": task})

    with serving(agent, handle):
        agent.card = {"name": "states", "url": agent.url, "skills": [{"id": "s"}]}
        world = World(hub, agent)
        seen = world.caller.call(world.name, Content(text="hello"), wait=state not in STATES[:2])
        if state in STATES[:2]:
            assert agent.arrived.wait(10)
            seen = world.caller.get(world.name, seen)
            assert seen.state in STATES[:2]
        else:
            assert seen.state == state
        ends = state in ("completed", "failed", "rejected")
        assert world.caller.cancel(world.name, seen).error == (-32002 if ends else None)


@pytest.mark.req("D-06")
def test_a_failure_is_a_state_with_the_agents_words(world: World) -> None:
    seen = world.caller.call(world.name, Content(text="fail"))
    assert (seen.state, seen.message, seen.error) == ("failed", FAILURE, None)


@pytest.mark.req("D-10")
def test_a_message_to_a_task_that_asks_continues_it(world: World) -> None:
    asking = world.caller.call(world.name, Content(text="ask"))
    assert (asking.state, asking.message) == ("input-required", QUESTION)
    done = world.caller.follow_up(world.name, asking, Content(text="blue"))
    assert (done.task_id, done.context_id, done.state) == (asking.task_id, asking.context_id, "completed")
    assert done.content == (Content(text="blue"),)
    texts = [turn["parts"][0]["text"] for turn in done.raw["result"]["messages"]]
    assert texts == ["ask", "blue"]
    assert world.last["params"]["message"]["taskId"].startswith("remote-")


def test_a_message_to_a_task_that_nobody_has_is_refused(world: World) -> None:
    message = {"role": "user", "parts": [TEXT], "taskId": "task-none"}
    assert world.rpc("message.send", {"message": message})["error"]["code"] == -32001


# -- contexts


@pytest.mark.req("D-08")
def test_a_context_is_the_callers_own_and_the_agent_sees_one_conversation(world: World) -> None:
    first = world.send(contextId="ctx-of-mine")
    assert first["contextId"] == "ctx-of-mine"
    said = world.last["params"]["message"]
    second = world.send(contextId="ctx-of-mine")
    assert second["id"] != first["id"]
    assert world.last["params"]["message"]["contextId"] == said["contextId"]


@pytest.mark.req("D-08")
def test_a_context_outlives_the_hub(tmp_path: Path) -> None:
    with dotted.agent() as agent, running_hub(tmp_path / "data") as hub:
        world = World(hub, agent)
        asking = world.caller.call(world.name, Content(text="ask"))
        said = world.last["params"]["message"]["contextId"]
        hub.stop()
        hub.start()
        done = world.caller.follow_up(world.name, asking, Content(text="blue"))
        assert (done.state, done.context_id) == ("completed", asking.context_id)
        again = world.send(contextId=asking.context_id)
        assert again["contextId"] == asking.context_id
        assert world.last["params"]["message"]["contextId"] == said


@pytest.mark.req("D-09")
def test_what_a_named_task_made_is_handed_to_the_agent(world: World) -> None:
    first = world.send()
    task = world.send(contextId=first["contextId"], referenceTaskIds=[first["id"], "task-unknown"])
    assert task["status"]["state"] == "completed"
    message = world.last["params"]["message"]
    assert message["referenceTaskIds"][1] == "task-unknown"
    (handed,) = message["metadata"]["referencedTasks"].values()
    assert handed[0]["parts"] == [TEXT]


# -- frames


@pytest.mark.req("D-11")
@pytest.mark.parametrize(
    ("body", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b'{"jsonrpc":"1.0","id":"x","method":"message.send"}', -32600, "x"),
        (b'{"jsonrpc":"2.0","id":5,"method":"message.sent"}', -32601, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"message.send"}', -32602, 5),
    ],
)
@pytest.mark.parametrize("path", ["/", "", "/dotted", "/dotted/"])
def test_the_codes_of_json_rpc_come_with_http_200(
    world: World, path: str, body: bytes, code: int, request_id: object
) -> None:
    reply = world.post(body, path)
    assert reply.status == 200
    assert (reply.json["error"]["code"], reply.json["id"]) == (code, request_id)
    assert "result" not in reply.json


@pytest.mark.req("D-11")
def test_an_agent_that_is_away_is_minus_32603(world: World) -> None:
    assert world.hub.request("PATCH", f"/v1/agents/{world.name}", {"status": "paused"}).status == 200
    assert world.rpc("message.send", {"message": {"role": "user", "parts": [TEXT]}})["error"]["code"] == -32603


@pytest.mark.req("D-21")
@pytest.mark.parametrize("path", ["/", "/dotted/"])
def test_a_batch_is_answered_by_an_array_and_a_notification_by_nothing(world: World, path: str) -> None:
    send = {"jsonrpc": "2.0", "method": "message.send", "params": {"message": {"role": "user", "parts": [TEXT]}}}
    batch = [{**send, "id": 1}, send, {"jsonrpc": "2.0", "id": "2", "method": "task.get", "params": {"taskId": "no"}}]
    answers = world.post(batch, path).json
    assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [(1, None), ("2", -32001)]
    assert answers[0]["result"]["status"]["state"] == "completed"
    for nothing in (send, [send]):
        reply = world.post(nothing, path)
        assert (reply.status, reply.body) == (204, b"")
    assert world.post([], path).json["error"]["code"] == -32600


@pytest.mark.req("D-22")
@pytest.mark.parametrize("request_id", ["req-001", 7, "", 2**70])
def test_the_id_comes_back_as_sent(world: World, request_id: object) -> None:
    answered = world.rpc("message.send", {"message": {"role": "user", "parts": [TEXT]}}, id=request_id)
    assert answered["id"] == request_id


@pytest.mark.req("D-23")
def test_the_slash_names_are_dotted_in_its_mount_and_0_3_elsewhere(world: World) -> None:
    params = {"message": {"role": "user", "parts": [TEXT]}}
    mine = world.rpc("message/send", params, "/dotted/")["result"]
    assert mine.keys() >= {"messages", "createdAt"}
    theirs = world.rpc("message/send", params)["result"]
    assert "messages" not in theirs
    assert theirs["status"]["state"] == "completed"
    for task, path in ((mine, "/dotted/"), (theirs, "/")):
        assert world.rpc("tasks/get", {"id": task["id"]}, path)["result"] == task
        error = world.rpc("tasks/cancel", {"id": task["id"], "reason": "late"}, path)["error"]
        assert error["code"] == -32002


@pytest.mark.req("X-09")
def test_the_mount_speaks_nothing_else(world: World) -> None:
    for method in ("SendMessage", "tasks/send", "a2a/task", "tasks/resubscribe"):
        assert world.rpc(method, {}, "/dotted/")["error"]["code"] == -32601


# -- the document's own examples and client


@pytest.mark.req("D-02", "D-16", "D-22", "D-23")
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*-request.json")))
def test_every_printed_request_has_its_printed_outcome(world: World, name: str) -> None:
    request = _example(name)
    reply = world.post(request)
    assert reply.status == 200
    assert reply.json["id"] == request["id"]
    if request["method"] in ("message.send", "message/send"):
        assert reply.json["result"]["status"]["state"] == "completed"
        printed = _example("task-get-response")["result"].keys()
        assert reply.json["result"].keys() >= printed - (
            {"messages", "createdAt", "updatedAt"} if "/" in request["method"] else set()
        )
    else:
        printed = _example("error-task-not-found")
        assert reply.json["error"]["code"] == printed["error"]["code"]
        assert reply.json["error"]["data"].keys() >= printed["error"]["data"].keys()


@pytest.mark.req("D-12")
def test_the_documents_client_works_as_written(tmp_path: Path) -> None:
    with dotted.agent("terminal_bench_agent") as agent, running_hub(tmp_path / "data", auth="none") as hub:
        hub.register({**_example("agent-card"), "url": agent.url})
        card = hub.get("/.well-known/agent-card").json
        assert card["name"]
        assert [skill["name"] for skill in card["skills"]] == ["Terminal Problem Solving", "Code Analysis"]
        task = hub.post("/", _example("client-send-request")).json["result"]
        assert task["id"]
        assert task["status"]["state"] == "completed"
        assert task["artifacts"][0]["parts"][0]["text"] == "Write a bash script to monitor disk usage"
        followup = _example("client-followup-request")
        followup["params"]["message"] |= {"contextId": task["contextId"], "referenceTaskIds": [task["id"]]}
        second = hub.post("/", followup).json["result"]
        assert second["contextId"] == task["contextId"]
        assert second["id"] != task["id"]
        got = hub.post("/", {**_example("task-get-request"), "params": {"taskId": task["id"]}}).json["result"]
        assert got == task


# -- agents as they are published


@pytest.mark.req("D-24", "X-16")
def test_a_published_server_is_called_under_the_names_it_knows(hub: HubProcess) -> None:
    with dotted.agent(fresh("published"), published=True) as agent:
        world = World(hub, agent)
        assert world.caller.call(world.name, Content(text="hello")).content == (Content(text="hello"),)
        assert world.caller.call(world.name, Content(data={"a": 1})).content == (Content(data={"a": 1}),)
        methods = [body["method"] for method, _, _, body in agent.requests if method == "POST"]
        assert methods == ["message.send", "message/send", "message/send"]  # and it is remembered
        assert all(isinstance(body["id"], str) for _, _, _, body in agent.requests)
        asking = world.caller.call(world.name, Content(text="ask"))
        assert asking.message == QUESTION
        assert world.caller.follow_up(world.name, asking, Content(text="blue")).content == (Content(text="blue"),)
        assert world.caller.cancel(world.name, world.slow()).state == "canceled"
        assert agent.cancelled.wait(10)


@pytest.mark.req("D-24")
@pytest.mark.parametrize("published", [False, True])
def test_a_dotted_agent_is_registered_by_its_url(hub: HubProcess, published: bool) -> None:
    with dotted.agent(fresh("by_url"), published=published) as agent:
        found = hub.register(None, url=agent.url, id=fresh())
        assert found["dialect"] == "dotted"
        seen = DottedCaller(hub.url, ADMIN_TOKEN).call(found["id"], Content(text="hello"))
        assert seen.content == (Content(text="hello"),)
