"""The examples of the directory's dialect: at the hub, and at its agent's own endpoint there."""

import threading
from collections import defaultdict
from typing import Any, Final

import msgspec

from tests.end_to_end.example_files.index import Line, example, line_of
from tests.end_to_end.example_files.stage import Stage, answering, assert_fits, posted, shows
from tests.end_to_end.world import fresh
from tests.support.hub import HubProcess
from tests.support.speaking import StubAgent

AGENT: Final = "research-agent"
WORDS: Final = ("error.message",)
FACTS: Final = ("error.data", "error.data.reason", "error.data.errors", "error.data.method")


TOLD: Final = tuple(f"error.data.{name}" for name in ("message", "timeout_ms", "agent_id"))


class Scene(msgspec.Struct, frozen=True):
    """A hub and the document's agent, as the register example registers it, at an address of this machine."""

    hub: HubProcess
    agent: StubAgent
    said: dict[str, Any]  # what the agent answers from now on; without an answer it works until it is told to stop

    def places(self, line: Line) -> list[str]:
        """Where the index says that a task is taken; an agent's endpoint is its base, or where its dialect is alone."""
        own = [f"/agents/{AGENT}/", f"/agents/{AGENT}", f"/agents/{AGENT}/directory/", f"/v1/agents/{AGENT}/a2a"]
        return [each for path in line.paths for each in (own if path == "agent endpoint" else [path])]


def _shown(file: str) -> Any:
    return example("directory", f"{file}.json")


def researching(stage: Stage) -> Scene:
    """The document's agent at a hub of its own."""
    said: dict[str, Any] = {"answer": _shown("task-response")}
    stopped: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def answer(body: Any) -> dict[str, Any]:
        task_id = body["params"]["taskId"]
        if body["method"] == "a2a/cancel":
            stopped[task_id].set()
        elif said["answer"] is None:
            stopped[task_id].wait(20)
        return said["answer"] or {**_shown("task-cancelled-response"), "id": body["id"]}

    hub, agent = stage.hub(), stage.enter(answering("directory", answer))
    scene = Scene(hub, agent, said)
    agent.card = {**_shown("register-request")["params"], "endpoint": agent.url, "methods": ["a2a/task", "a2a/cancel"]}
    _register(scene)
    return scene


def _register(scene: Scene, **changes: Any) -> None:
    """The agent as it is shown when it is found: with two capabilities."""
    record = {**scene.agent.card, "capabilities": _shown("agent-response")["capabilities"], **changes}
    posted(scene.hub, "/a2a/register", record)
    scene.said["answer"] = _shown("task-response")


def _task(line: Line, **changes: Any) -> dict[str, Any]:
    """The request with a task's id that nobody has used yet."""
    body = line.body
    body["params"] |= {"taskId": fresh("task"), **changes}
    return body


@shows("register-request", "register-response", "bare-register-request", "bare-register-response")
def _registration(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    bare = line.file.startswith("bare-")
    request = line_of(f"directory/{'bare-' if bare else ''}register-request.json")
    for path in request.paths:
        assert posted(scene.hub, path, request.body) == request.like
        record = scene.hub.get(f"/a2a/agents/{AGENT}").json
        assert record["endpoint"] == "http://localhost:9001"
        assert record["capabilities"] == ["research", "search", "analysis"]
    _register(scene)


@shows("discover-request", "discover-response", "message-format", "register-as-go-discover-request")
def _search(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    request = line if line.direction == "request" else line_of("directory/discover-request.json")
    for path in request.paths:
        answer = posted(scene.hub, path, request.body)
        assert_fits(answer, {**_shown("discover-response"), "id": request.body["id"]})
        assert answer["result"]["agents"][0]["endpoint"] == scene.agent.url  # verbatim, for its own agents


@shows("bare-discover-request", "bare-discover-response")
def _bare_search(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    request = line_of("directory/bare-discover-request.json")
    for path in request.paths:
        assert_fits(posted(scene.hub, path, request.body), request.like)


@shows("agents-response", "agent-response")
def _records(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    (path,) = line.paths
    assert_fits(scene.hub.get(path.format(id=AGENT)).json, line.body)
    if "{id}" in path:
        unknown = scene.hub.get(path.format(id="nobody"))
        assert (unknown.status, unknown.json.keys()) == (404, {"error"})


@shows(
    *("task-request", "task-response", "task-response-emitted", "register-as-go-task-request"),
    *("transport-task-request", "transport-task-response"),
)
def _tasks(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    request = line
    if line.direction == "response":
        transport = "transport-" if line.file.startswith("transport") else ""
        request = line_of(f"directory/{transport}task-request.json")
    shown = _shown("task-response-emitted")
    for path in scene.places(request):
        asked = _task(request)
        answer = posted(scene.hub, path, asked)
        same = {**shown["result"]["result"], "taskId": asked["params"]["taskId"]}
        assert answer == {**shown, "id": asked["id"], "result": {**same, "result": same}}
        came = scene.agent.requests[-1][3]
        assert (came["method"], came["params"]["action"]) == ("a2a/task", asked["params"]["action"])
        assert came["params"]["input"] == asked["params"]["input"]


@shows("task-error-response", "task-timeout-response-emitted")
def _timeout(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    heard = line.file == "task-error-response.json"  # from the agent; else it says nothing until it is too late
    request = line_of("directory/task-request.json")
    for path in scene.places(request):
        scene.said["answer"] = _shown("task-response")
        posted(scene.hub, path, _task(request))  # An agent that never answers is left alone after a while.
        scene.said["answer"] = line.body if heard else None
        asked = _task(request, **({} if heard else {"timeoutMs": 200}))
        answer = posted(scene.hub, path, asked)
        shown = _shown("task-timeout-response-emitted")
        shown["error"]["data"]["taskId"] = asked["params"]["taskId"]
        assert_fits(answer, shown, varies=WORDS, added=TOLD)
    _register(scene)


@shows("task-cancelled-response")
def _cancelled(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    request = line_of("directory/task-request.json")
    for path in scene.places(request):
        scene.said["answer"] = None
        scene.agent.arrived.clear()
        asked = _task(request)
        answers: list[Any] = []
        waiting = threading.Thread(target=lambda: answers.append(posted(scene.hub, path, asked)))  # noqa: B023
        waiting.start()
        assert scene.agent.arrived.wait(10)
        cancel = {"jsonrpc": "2.0", "id": "c", "method": "a2a/cancel", "params": {"taskId": asked["params"]["taskId"]}}
        posted(scene.hub, path if path != "/a2a/task" else "/a2a", cancel)
        waiting.join(20)
        shown = {**line.body["result"], "taskId": asked["params"]["taskId"]}
        assert answers == [{**line.body, "id": asked["id"], "result": {**shown, "result": shown}}]
    _register(scene)


@shows("error-invalid-params", "bare-error-response")
def _incomplete(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    framed = {"jsonrpc": "2.0", "id": "reg-2", "method": "a2a/register", "params": {"agentId": "x"}}
    if line.file.startswith("bare"):
        assert posted(scene.hub, "/a2a/register", framed["params"], 400) == line.body
    else:
        assert_fits(posted(scene.hub, "/a2a/register", framed), line.body, varies=WORDS, added=FACTS)


@shows("error-method-not-found")
def _unknown(stage: Stage, line: Line) -> None:
    scene = stage.once(researching)
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": line.body["id"], "method": "a2a/nothing", "params": {}}
    for path in (*line.paths, f"/agents/{AGENT}/", f"/agents/{AGENT}/directory/"):
        assert_fits(posted(scene.hub, path, body), line.body, varies=WORDS, added=FACTS)
