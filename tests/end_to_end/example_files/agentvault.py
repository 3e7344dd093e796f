"""The examples of AgentVault: at an agent's URL that speaks nothing else, and at the hub's registry of cards."""

import itertools
import json
from typing import Any, Final

import msgspec

from dragoman.dialects.agentvault.streams import error_frame
from dragoman.dialects.sse import SseParser
from dragoman.model.errors import AgentError
from tests.end_to_end.example_files.index import Line, example, line_of
from tests.end_to_end.example_files.stage import Stage, answering, assert_fits, posted, shows
from tests.end_to_end.world import eventually
from tests.support.agents import agentvault
from tests.support.hub import HubProcess
from tests.support.oauth import ask, grant
from tests.support.speaking import StubAgent, json_answer
from tests.support.sse_client import sse

CARDS: Final = "/api/v1/agent-cards"
WORDS: Final = ("error.message",)
FACTS: Final = ("error.data", "error.data.reason", "error.data.errors", "error.data.call_id", "error.data.taskId")


class Scene(msgspec.Struct, frozen=True):
    """A hub and an agent that the registry knows by the document's card."""

    hub: HubProcess
    agent: StubAgent
    record: dict[str, Any]

    @property
    def url(self) -> str:
        """The path of the agent's URL, taken from the card that the hub serves."""
        place: str = self.record["card_data"]["url"].removeprefix(f"http://localhost:{self.hub.port}")
        return place

    @property
    def urls(self) -> list[str]:
        """That URL, with and without its final slash."""
        return [self.url, self.url.rstrip("/")]

    def settled(self, path: str, task_id: str) -> dict[str, Any]:
        """The answer to the documented question for a task, once the task is done or asks."""
        asked = {**_shown("tasks-get-request"), "params": {"id": task_id}}

        def look() -> dict[str, Any] | None:
            answer: dict[str, Any] = posted(self.hub, path, asked)
            return None if answer["result"]["state"] in ("SUBMITTED", "WORKING") else answer

        return eventually(look, f"{task_id} is done or asks")


def _shown(file: str) -> Any:
    return example("agentvault", f"{file}.json")


def _scene(hub: HubProcess, agent: StubAgent, **more: Any) -> Scene:
    card = {**_shown("agent-card-none"), "url": agent.card.get("url", f"{agent.url}/"), **more}
    return Scene(hub, agent, posted(hub, f"{CARDS}/", {"card_data": card}, 201))


def documented(stage: Stage) -> Scene:
    """The document's agent: to `echo:…` it answers as the document shows."""
    numbers = itertools.count(1)
    tasks: dict[str, dict[str, Any]] = {}

    def answer(body: Any) -> dict[str, Any]:
        frame = {"jsonrpc": "2.0", "id": body["id"]}
        if body["method"] == "tasks/send":
            shown = _shown("tasks-get-response")["result"]
            task_id = f"task-{next(numbers)}"
            messages = [body["params"]["message"], shown["messages"][1]]
            tasks[task_id] = {**shown, "id": task_id, "messages": messages}
            return {**frame, "result": {"id": task_id}}
        return {**frame, "result": tasks[body["params"]["id"]]}

    return _scene(stage.hub(), stage.enter(answering("agentvault", answer)))


def working(stage: Stage) -> Scene:
    """An agent that asks, or works until it is told to stop, or gives back what it was sent."""
    return _scene(stage.hub(), stage.enter(agentvault.agent()))


def guarded(stage: Stage) -> Scene:
    """An agent at a hub that wants to know who calls."""
    return _scene(stage.hub(auth="token"), stage.enter(agentvault.agent()), humanReadableId="examples/vault")


def shelf(stage: Stage) -> Scene:
    """A hub whose registry has the document's card alone, and none that could be called."""
    hub = stage.hub()
    return Scene(hub, StubAgent("agentvault"), posted(hub, f"{CARDS}/", _shown("registry-create-request"), 201))


def _send(scene: Scene, path: str, words: str = "hello", **params: Any) -> Any:
    body = _shown("tasks-send-request")
    body["params"]["message"]["parts"][0]["content"] = words
    body["params"] |= params
    return posted(scene.hub, path, body)


# -- cards


@shows("agent-card-none")
def _open_card(stage: Stage, line: Line) -> None:
    scene = stage.once(shelf)
    assert_fits(scene.hub.get(f"{scene.url}agent-card.json").json, line.body)


@shows("agent-card-protected")
def _protected_card(stage: Stage, line: Line) -> None:
    hub = stage.once(guarded).hub
    card = {**line.body, "url": "http://localhost:65001/a2a/", "humanReadableId": "examples/protected"}
    record = posted(hub, f"{CARDS}/", {"card_data": card}, 201)
    place = record["card_data"]["url"].removeprefix(f"http://localhost:{hub.port}")
    served = hub.get(f"{place}agent-card.json", {"Authorization": ""})
    assert served.status == 200
    assert_fits({**served.json, "humanReadableId": line.body["humanReadableId"]}, line.body)


@shows("oauth-token-response")
def _token(stage: Stage, line: Line) -> None:
    hub = stage.once(guarded).hub
    reply = ask(hub, grant(hub.new_key("a2a:call"), scope=line.body["scope"]))
    assert reply.status == line.outcomes[0][0]
    assert_fits(reply.json, line.body, varies=("access_token", "expires_in"))


@shows("agent-card-invalid-loopback-url")
def _loopback_card(stage: Stage, line: Line) -> None:
    hub = stage.hub()
    (path,) = line.paths
    place: str = posted(hub, path, {"card_data": line.body}, 201)["card_data"]["url"]
    assert place.startswith(f"http://localhost:{hub.port}/")
    served = hub.get(f"{place.removeprefix(f'http://localhost:{hub.port}')}agent-card.json").json
    assert_fits(served, line.body)
    assert served["url"] == place


# -- tasks


@shows("tasks-send-request", "tasks-send-response", "tasks-get-response", "tasks-send-parts-request")
def _sent(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    request = line if line.direction == "request" else line_of("agentvault/tasks-send-request.json")
    for path in scene.urls:
        answer = posted(scene.hub, path, request.body)
        assert_fits(answer, {**_shown("tasks-send-response"), "id": request.body["id"]})
        assert answer["result"]["id"].startswith("av-")
        shown = _shown("tasks-get-response")
        shown["result"]["messages"][0] = request.body["params"]["message"]
        assert_fits(scene.settled(path, answer["result"]["id"]), shown)
        sent = next(body for _, _, _, body in reversed(scene.agent.requests) if body["method"] == "tasks/send")
        message = sent["params"]["message"]
        assert message["parts"] == request.body["params"]["message"]["parts"]
        assert message.get("metadata", {}).items() >= request.body["params"]["message"].get("metadata", {}).items()


@shows("tasks-get-request", "error-task-not-found")
def _get(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    body = _shown("tasks-get-request")
    for path in scene.urls:
        unknown = posted(scene.hub, path, body)
        assert_fits(unknown, {**_shown("error-task-not-found"), "id": body["id"]}, varies=WORDS, added=FACTS)
        assert body["params"]["id"] in unknown["error"]["message"]
        task_id = posted(scene.hub, path, _shown("tasks-send-request"))["result"]["id"]
        assert_fits(scene.settled(path, task_id), line_of("agentvault/tasks-get-request.json").like)


@shows("tasks-send-continue-request", "error-invalid-state")
def _continued(stage: Stage, line: Line) -> None:
    scene = stage.once(working)
    body = _shown("tasks-send-continue-request")
    for path in scene.urls:
        assert posted(scene.hub, path, body)["error"]["code"] == -32001
        task_id = _send(scene, path, "ask")["result"]["id"]
        assert scene.settled(path, task_id)["result"]["state"] == "INPUT_REQUIRED"
        asked = {**body, "params": {**body["params"], "id": task_id}}
        assert posted(scene.hub, path, asked) == {"jsonrpc": "2.0", "id": body["id"], "result": {"id": task_id}}
        done = scene.settled(path, task_id)["result"]
        assert (done["state"], done["messages"][-1]["parts"][0]["content"]) == ("COMPLETED", "more")
        refused = posted(scene.hub, path, asked)
        shown = {**_shown("error-invalid-state"), "id": body["id"]}
        assert_fits(refused, shown, varies=WORDS, added=FACTS)


@shows("tasks-cancel-request", "tasks-cancel-response", "tasks-cancel-finished-response")
def _cancelled(stage: Stage, line: Line) -> None:
    scene = stage.once(working)
    body = _shown("tasks-cancel-request")
    for path in scene.urls:
        scene.agent.cancelled.clear()
        task_id = _send(scene, path, "slow")["result"]["id"]
        working_on = {**_shown("tasks-get-request"), "params": {"id": task_id}}
        eventually(lambda: posted(scene.hub, path, working_on)["result"]["state"] == "WORKING", "it works")  # noqa: B023
        asked = {**body, "params": {"id": task_id}}
        assert posted(scene.hub, path, asked) == _shown("tasks-cancel-response")
        assert scene.agent.cancelled.wait(10)
        assert scene.settled(path, task_id)["result"]["state"] == "CANCELED"
        done = _send(scene, path)["result"]["id"]
        scene.settled(path, done)
        finished = posted(scene.hub, path, {**body, "params": {"id": done}})
        assert finished == _shown("tasks-cancel-finished-response")


STREAM: Final = ("1-task-status", "2-task-status", "3-task-message", "4-task-artifact", "5-task-status")


@shows("tasks-send-subscribe-request", *(f"stream-{name}" for name in STREAM))
def _subscribed(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    body = _shown("tasks-send-subscribe-request")
    for path in scene.urls:
        unknown = posted(scene.hub, path, body, 404)
        assert_fits(unknown, {**_shown("error-task-not-found"), "id": body["id"]}, varies=WORDS, added=FACTS)
        task_id = _send(scene, path)["result"]["id"]
        scene.settled(path, task_id)
        asked = {**body, "params": {"id": task_id}}
        with sse(f"{scene.hub.url}{path}", asked, headers={"Last-Event-ID": "0"}) as stream:
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
            told: list[dict[str, Any]] = [{"event": item.name, "data": item.data} for item in stream]
        assert [each["data"]["taskId"] for each in told] == [task_id] * len(STREAM)
        for found, name in zip(told, STREAM, strict=True):
            assert_fits(found, _shown(f"stream-{name}"))


@shows("stream-error", "event-error-data")
def _broken(stage: Stage, line: Line) -> None:
    shown = _shown("stream-error")
    said = f"event: {shown['event']}\ndata: {json.dumps(shown['data'])}\n\n".encode()
    # From an agent: its stream is left, and the task asked for.
    answers = {"tasks/send": {"id": "task-1"}, "tasks/get": {**_shown("tasks-get-response")["result"], "id": "task-1"}}

    def answer(body: Any) -> Any:
        if body["method"] == "tasks/sendSubscribe":
            return 200, {"Content-Type": "text/event-stream"}, said
        return {"jsonrpc": "2.0", "id": body["id"], "result": answers[body["method"]]}

    scene = _scene(stage.hub(), stage.enter(answering("agentvault", answer)))
    task_id = _send(scene, scene.url)["result"]["id"]
    assert scene.settled(scene.url, task_id)["result"]["state"] == "COMPLETED"
    assert "tasks/sendSubscribe" in [body["method"] for *_, body in scene.agent.requests]
    # To a subscriber: the same shape, with a code of ours.
    (event,) = SseParser().feed(error_frame(AgentError(shown["data"]["message"], **shown["data"]["details"])))
    data = json.loads(event.data)
    assert_fits({"event": event.name, "data": {**data, "code": shown["data"]["code"]}}, shown)
    assert shown["data"] == _shown("event-error-data")


@shows("tasks-send-webhook-request", "webhook-request")
def _webhook(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    hook = stage.enter(answering("hook", lambda _: json_answer({})))
    body = _shown("tasks-send-webhook-request")
    body["params"]["webhookUrl"] = f"{hook.url}/hook"
    for path in scene.urls:
        task_id = posted(scene.hub, path, body)["result"]["id"]

        def told() -> list[Any]:
            return [each for each in hook.requests if (each[3]["taskId"], each[3]["state"]) == (task_id, "COMPLETED")]  # noqa: B023

        ((_, _, headers, said),) = eventually(told, "the webhook is told of the end")
        assert headers["x-a2a-event"] == "task_status"
        shown = _shown("webhook-request")
        assert_fits({"message": shown["message"], **said}, shown)
        states = [each[3]["state"] for each in hook.requests if each[3]["taskId"] == task_id]
        assert states in (["WORKING", "COMPLETED"], ["SUBMITTED", "WORKING", "COMPLETED"])


# -- refusals


@shows("error-invalid-params")
def _invalid(stage: Stage, line: Line) -> None:
    scene = stage.once(documented)
    for path in scene.urls:
        body: dict[str, Any] = {**_shown("tasks-get-request"), "id": line.body["id"], "params": {}}
        assert_fits(posted(scene.hub, path, body), line.body, varies=WORDS, added=FACTS)


@shows("error-authentication", "error-authorization")
def _not_allowed(stage: Stage, line: Line) -> None:
    scene = stage.once(guarded)
    body = {**_shown("tasks-get-request"), "id": line.body["id"]}
    ((status, _),) = line.outcomes
    how = {"headers": {"Authorization": ""}} if status == 401 else {"token": scene.hub.new_key("a2a:receive")}
    for path in scene.urls:
        answer = posted(scene.hub, path, body, status, **how)
        assert_fits(answer, line.body, varies=WORDS, added=(*FACTS, "error.data.scope", "error.data.scopes"))


# -- the registry of cards


@shows("registry-create-request", "registry-record-response")
def _record(stage: Stage, line: Line) -> None:
    scene = stage.once(shelf)
    shown = _shown("registry-record-response")
    assert_fits(scene.record, shown, varies=("developer_id", "developer_is_verified"))
    where = line_of("agentvault/registry-record-response.json").paths
    assert len(where) == 3
    org, name = shown["card_data"]["humanReadableId"].split("/")
    for path in (f"/{scene.record['id']}", f"/id/{org}/{name}", f"/by-hri?hri={org}%2F{name}"):
        assert scene.hub.get(CARDS + path).json == scene.record
    card = _shown("registry-create-request")["card_data"]
    del card["provider"]
    assert posted(scene.hub, f"{CARDS}/", {"card_data": card}, 422).keys() == {"detail"}


@shows("registry-list-response", "registry-error-response")
def _listed(stage: Stage, line: Line) -> None:
    scene = stage.once(shelf)
    for slash in ("", "/"):
        if line.file == "registry-list-response.json":
            assert_fits(scene.hub.get(CARDS + slash).json, line.body)
        else:
            missing = scene.hub.get(f"{CARDS}/8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b09{slash}")
            assert (missing.status, missing.json) == (404, line.body)


@shows("validate-card-response")
def _validated(stage: Stage, line: Line) -> None:
    scene = stage.once(shelf)
    (path,) = line.paths
    assert posted(scene.hub, path, _shown("registry-create-request")) == line.body
