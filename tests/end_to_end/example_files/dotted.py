"""The examples of the dotted dialect, at the hub's root (which knows one agent only) and at that agent's own URLs."""

from typing import Any, Final

import msgspec

from tests.end_to_end.example_files.index import Line, example, line_of
from tests.end_to_end.example_files.stage import Stage, answering, assert_fits, posted, shows
from tests.end_to_end.world import eventually
from tests.support.agents import dotted
from tests.support.hub import HubProcess
from tests.support.speaking import StubAgent

# A refusal has the hub's own words, and says more than the example does.
WORDS: Final = ("error.message",)
FACTS: Final = ("error.data", "error.data.reason", "error.data.errors", "error.data.method")


class Scene(msgspec.Struct, frozen=True):
    """A hub and its only agent."""

    hub: HubProcess
    agent: StubAgent
    name: str

    @property
    def bases(self) -> list[str]:
        """Where this agent is spoken to: the root, its base, and the base at which dotted alone is spoken."""
        base = f"/agents/{self.name}"
        return ["/", f"{base}/", base, f"{base}/dotted/", f"{base}/dotted", f"/v1{base}/a2a"]

    @property
    def asked(self) -> Any:
        """The message that the agent was sent last."""
        return self.agent.requests[-1][3]["params"]["message"]


def documented(stage: Stage) -> Scene:
    """The document's agent, which answers what the document shows."""
    solved = example("dotted", "message-send-response.json")["result"]

    def answer(body: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": body["id"], "result": solved}

    hub, agent = stage.hub(), stage.enter(answering("dotted", answer))
    agent.card = {**example("dotted", "agent-card.json"), "url": agent.url}
    return Scene(hub, agent, hub.register(agent.card)["id"])


def working(stage: Stage) -> Scene:
    """An agent that works until it is told to stop, or gives back what it was sent."""
    hub, agent = stage.hub(), stage.enter(dotted.agent())
    return Scene(hub, agent, hub.register(agent.card)["id"])


def _sent(scene: Scene, line: Line, path: str) -> Any:
    """Post the file as it is; the task that came of it, with the ids of the request."""
    answer = posted(scene.hub, path, line.body)
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == line.body["id"]
    assert type(answer["id"]) is type(line.body["id"])
    message = line.body["params"]["message"]
    first = answer["result"]["history"][0]
    assert first["parts"] == scene.asked["parts"] == message["parts"]
    assert first["messageId"] == message.get("messageId", first["messageId"])
    return answer["result"]


@shows("agent-card")
def _card(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    for path in line.paths:
        for base in (f"/agents/{scene.name}", f"/agents/{scene.name}/dotted"):
            card = scene.hub.get(base + path).json
            # The hub streams and pushes for every agent, also for one that does neither.
            offered = {**line.body["capabilities"], "streaming": True, "pushNotifications": True}
            assert_fits(card, {**line.body, "capabilities": offered})
            assert card["url"] == f"http://localhost:{scene.hub.port}{base}/"
        card = scene.hub.get(path).json  # the hub's own: it offers its agents' skills
        assert card.keys() == line.body.keys()
        assert card["skills"] == line.body["skills"]


@shows("message-send-request", "message-send-response")
def _send(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    request, response = line_of("dotted/message-send-request.json"), line_of("dotted/message-send-response.json")
    added = {f"result.{name}" for name in response.added}
    for path in scene.bases:
        task = _sent(scene, request, path)
        answer = {"jsonrpc": "2.0", "id": request.body["id"], "result": task}
        assert_fits(answer, response.body, added=added)
        assert task["messages"] == task["history"]
        assert task["id"] != "task-abc123"  # the agent's own word for it


@shows("message-send-context-request")
def _context(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    given = line.body["params"]["message"]
    for path in scene.bases:
        task = _sent(scene, line, path)
        assert task["status"]["state"] == "completed"
        assert task["contextId"] == given["contextId"]
        assert "referencedTasks" not in scene.asked.get("metadata", {})


@shows("client-send-request", "curl-send-request")
def _without_id(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    for path in scene.bases:
        task = _sent(scene, line, path)
        assert task["status"]["state"] == "completed"
        assert task["messages"][0]["messageId"].startswith("msg-")


@shows("slash-send-request")
def _slash_send(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    for path in scene.bases:
        task = _sent(scene, line, path)
        assert task["status"]["state"] == "completed"
        assert ("messages" in task) is ("/dotted" in path)  # a shared URL answers those names as 0.3


@shows("client-followup-request")
def _follow_up(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    first = example("dotted", "client-send-request.json")
    for path in scene.bases:
        before = posted(scene.hub, path, first)["result"]
        body = line.body
        body["params"]["message"] |= {"contextId": before["contextId"], "referenceTaskIds": [before["id"]]}
        task = posted(scene.hub, path, body)["result"]
        assert task["id"] != before["id"]
        assert (task["contextId"], task["status"]["state"]) == (before["contextId"], "completed")
        (handed,) = scene.asked["metadata"]["referencedTasks"].values()
        assert handed[0]["parts"] == before["artifacts"][0]["parts"]


@shows("task-get-request", "task-get-response", "slash-task-get-request", "error-task-not-found")
def _get(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    body = line.body if "method" in line.body else example("dotted", "task-get-request.json")
    slashed = body["method"] == "tasks/get"
    name = "id" if slashed else "taskId"
    for path in scene.bases:
        unknown = posted(scene.hub, path, body)
        shown = example("dotted", "error-task-not-found.json")
        shown = {**shown, "id": body["id"], "error": {**shown["error"], "data": {"taskId": body["params"][name]}}}
        assert_fits(unknown, shown, varies=WORDS, added=FACTS)
        task = posted(scene.hub, path, example("dotted", "message-send-request.json"))["result"]
        known = posted(scene.hub, path, {**body, "params": {name: task["id"]}})
        assert known["id"] == body["id"]
        if slashed and "/dotted" not in path:
            assert known["result"]["artifacts"] == task["artifacts"]  # as 0.3, on a shared URL
        else:
            shown = example("dotted", "task-get-response.json")
            assert_fits(known, {**shown, "id": body["id"]})
            assert known["result"] == task


@shows("task-cancel-request", "error-task-not-cancelable")
def _cancel(stage: Stage, line: Line) -> None:
    scene = stage.once(working)
    body = example("dotted", "task-cancel-request.json")
    for path in scene.bases:
        scene.agent.cancelled.clear()
        assert posted(scene.hub, path, body)["error"]["code"] == -32001
        begun = _begin(scene, path)
        asked = {**body, "params": {**body["params"], "taskId": begun}}
        task = posted(scene.hub, path, asked)["result"]
        assert (task["id"], task["status"]["state"]) == (begun, "canceled")
        assert task["status"]["message"] == body["params"]["reason"]
        assert scene.agent.cancelled.wait(10)
        done = posted(scene.hub, path, example("dotted", "curl-send-request.json"))["result"]["id"]
        refused = posted(scene.hub, path, {**body, "params": {"taskId": done}})
        shown = example("dotted", "error-task-not-cancelable.json")
        assert_fits(refused, shown, varies=WORDS, added=(*FACTS, "error.data.taskId"))


def _begin(scene: Scene, path: str) -> str:
    """A task that the agent has taken and works on."""
    body = example("dotted", "curl-send-request.json")
    body["params"]["message"]["parts"] = [{"kind": "text", "text": "slow"}]
    body["params"]["configuration"] = {"blocking": False}
    task_id: str = posted(scene.hub, path, body)["result"]["id"]

    def works() -> bool:
        asked = {"jsonrpc": "2.0", "id": "1", "method": "task.get", "params": {"taskId": task_id}}
        return posted(scene.hub, path, asked)["result"]["status"]["state"] == "working"

    eventually(works, "the agent works")
    return task_id


@shows("part-text", "part-file-bytes", "part-file-uri", "part-data")
def _part(stage: Stage, line: Line) -> None:
    scene = stage.once(working)
    for path in scene.bases:
        body = example("dotted", "client-send-request.json")
        body["params"]["message"]["parts"] = [line.body]
        task = posted(scene.hub, path, body)["result"]
        assert scene.asked["parts"] == [line.body]
        assert task["messages"][0]["parts"] == [line.body]
        assert task["artifacts"][0]["parts"] == [line.body]


@shows("error-method-not-found", "error-invalid-params", "error-parse")
def _refused(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    bodies: dict[int, object] = {
        -32601: {"jsonrpc": "2.0", "id": line.body["id"], "method": "message.sent", "params": {}},
        -32602: {"jsonrpc": "2.0", "id": line.body["id"], "method": "message.send", "params": {}},
        -32700: b'{"jsonrpc": "2.0", "id": "req-006", "method": ',
    }
    for path in scene.bases:
        answer = posted(scene.hub, path, bodies[line.body["error"]["code"]])
        assert_fits(answer, line.body, varies=WORDS, added=FACTS)


@shows("status-response", "health-response")
def _status(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    (path,) = line.paths
    base = f"/agents/{scene.name}"
    reply = scene.hub.get(base + path)
    shown = {**line.body, "agent_card_url": f"{base}/.well-known/agent-card"} if path == "/" else line.body
    assert (reply.status, reply.json) == (200, shown)
    root = scene.hub.get(path)
    assert root.status == 200
    assert root.json.items() >= {"status": line.body["status"]}.items()
    assert root.json.keys() >= line.body.keys()
    assert root.json.get("agent_card_url") == line.body.get("agent_card_url")
