"""The examples of the envelope dialect: each variant's flow at the hub's own path and at the agents' own paths."""

from typing import Any, Final

import msgspec

from tests.end_to_end.example_files.index import Line, example, line_of
from tests.end_to_end.example_files.stage import Stage, assert_fits, posted, shows
from tests.end_to_end.world import eventually, log_lines
from tests.support.agents.envelope import EnvelopeAgent, agent
from tests.support.hub import HubProcess

PATH: Final = "/a2a/messages"
LENIENT: Final = {"DRAGOMAN_ENVELOPE_IDS": "lenient"}
REQUESTS: Final = ("envelope-generic", "task-assignment", "status-update", "task-completion", "ping", "error")
# The hub's own words, and what it says beside the example's.
WORDS: Final = ("payload.error_message", "error")
FACTS: Final = ("payload.details.reason", "payload.details.skill", "payload.details.supported")


class Scene(msgspec.Struct, frozen=True):
    """A hub, the agent that gives the document's task, and the one that has it."""

    hub: HubProcess
    giver: EnvelopeAgent
    worker: EnvelopeAgent
    below: bool  # whether messages go to the paths of the agent they are for

    def send(self, message: Any, status: int = 200) -> Any:
        """Post one message."""
        base = f"/agents/{message['to']}" if self.below and "to" in message else ""
        return posted(self.hub, base + PATH, message, status)


def _shown(file: str) -> Any:
    return example("envelope", f"{file}.json")


def _scene(stage: Stage, variant: str, tasks: tuple[str, ...] = ("research",), *, below: bool = False) -> Scene:
    """The two agents of a variant at a hub of their own."""
    hub = stage.hub(environ=LENIENT if variant == "short" else None)
    giver, worker = stage.enter(agent()), stage.enter(agent())
    assigned = _shown(f"task-assignment.{variant}")
    worker.silent = True  # the examples speak for it
    hub.register({**giver.card, "id": assigned["from"]})
    hub.register({**worker.card, "id": assigned["to"], "supported_tasks": list(tasks)})
    if variant == "short":
        generic = stage.enter(agent())
        generic.silent = True
        hub.register({**generic.card, "id": _shown("envelope-generic.short")["to"], "supported_tasks": list(tasks)})
    return Scene(hub, giver, worker, below)


def plain(stage: Stage) -> Scene:
    """A hub with the strict variant's agents, for what changes nothing there."""
    return _scene(stage, "strict")


def lacking(stage: Stage) -> Scene:
    """The same, with a target that does not support `research`."""
    return _scene(stage, "strict", ("analysis", "writing"))


def lacking_lenient(stage: Stage) -> Scene:
    """The same for the short ids."""
    return _scene(stage, "short", ("analysis", "writing"))


def _like(line: Line) -> Any:
    """The acknowledgement that the index names, with the ids of this request."""
    body = line.body
    ack = {**line.like, "message_id": body["message_id"]}
    if "payload" in ack:
        ack |= {"from": body["to"], "to": body["from"]}
    if ack.get("type") == "status_update":
        ack["payload"] = {**ack["payload"], "task_id": body["payload"]["task_id"]}
    return ack


@shows(*(f"{name}.{variant}" for name in REQUESTS for variant in ("strict", "short")))
def _request(stage: Stage, line: Line) -> None:
    name, variant, _ = line.file.split(".")
    if variant == "short":
        refused = stage.once(plain).send(line.body, line.outcomes[0][0])
        assert refused["error_code"] == "INVALID_MESSAGE_FORMAT"
    for below in (False, True) if stage.full else (variant == "short",):
        with stage.apart() as own:
            scene = _scene(own, variant, below=below)
            _before(scene, line, name, variant)
            ack, shown = scene.send(line.body), _like(line)
            assert_fits(ack, shown)
            assert (ack["message_id"], ack.get("from")) == (shown["message_id"], shown.get("from"))
            _after(scene, line, name)


def _before(scene: Scene, line: Line, name: str, variant: str) -> None:
    """What comes before it in the document's flow, after a look at what it does without that."""
    if name not in ("status-update", "task-completion", "error"):
        return
    if name == "status-update":
        assert (404, "TASK_NOT_FOUND") in line.outcomes
    if name != "error":
        assert scene.send(line.body, 404)["error_code"] == "TASK_NOT_FOUND"
    scene.send(_shown(f"task-assignment.{variant}"))
    assert scene.worker.arrived.wait(10)
    if name == "task-completion":
        scene.send(_shown(f"status-update.{variant}"))


def _after(scene: Scene, line: Line, name: str) -> None:
    """What the message did."""
    payload = line.body["payload"]
    if name == "task-assignment":
        assert scene.worker.arrived.wait(10)
        (came,) = scene.worker.assignments
        for member in ("task_type", "title", "description", "payload", "priority"):
            assert came["payload"][member] == payload[member]
        assert came["payload"]["metadata"].items() >= payload["metadata"].items()
    elif name in ("status-update", "task-completion"):

        def told() -> list[dict[str, Any]]:
            return [body for _, _, _, body in scene.giver.requests if body["payload"] == payload]

        (report,) = eventually(told, "the giver of the task is told the same")
        assert report["type"] == line.body["type"]
    elif name == "error":
        _recorded(scene, payload)


def _recorded(scene: Scene, payload: dict[str, Any]) -> None:
    """It stands against the message that it names: the task fails with its words, or the log has them."""

    def seen() -> bool:
        told = [body["payload"] for _, _, _, body in scene.giver.requests if body["type"] == "task_completion"]
        return any(payload["error_message"] in str(each) for each in told) or any(
            payload["original_message_id"] in str(each) for each in log_lines(scene.hub)
        )

    eventually(seen, "the error is on record")


@shows("ack-task-assignment", "ack-plain", "ack-ping")
def _ack(stage: Stage, line: Line) -> None:
    """The flow of the strict variant, from which the ids of the acknowledgements are."""
    with stage.apart() as own:
        scene = _scene(own, "strict")
        for name in REQUESTS[1:]:
            request = line_of(f"envelope/{name}.strict.json")
            ack = scene.send(request.body)
            if request.like == line.body:
                assert_fits(ack, {**line.body, "message_id": request.body["message_id"]})
                assert (ack.get("from"), ack.get("to")) == (line.body.get("from"), line.body.get("to"))


@shows("error-answer")
def _error_answer(stage: Stage, line: Line) -> None:
    for scene, variant in ((stage.once(lacking), "strict"), (stage.once(lacking_lenient), "short")):
        request = line_of(f"envelope/task-assignment.{variant}.json")
        assert request.outcomes[-1] == (400, "INVALID_TASK_TYPE")
        shown = line.body
        shown |= {"from": request.body["to"], "to": request.body["from"]}
        shown["payload"]["original_message_id"] = request.body["message_id"]
        for path in (PATH, f"/agents/{request.body['to']}{PATH}"):
            answer = posted(scene.hub, path, request.body, 400)
            assert_fits(answer, shown, varies=(*WORDS, "message_id"), added=FACTS)


@shows("agent-card")
def _card(stage: Stage, line: Line) -> None:
    hub = stage.hub()
    base = f"/agents/{hub.register(line.body)['id']}"
    for path in line.paths:
        card = hub.get(path.replace("…", base))
        assert card.status == 200
        assert_fits(card.json, line.body)
        assert card.json["endpoint"] == f"http://localhost:{hub.port}{base}"
        own = hub.get(path.replace("…", ""))  # the hub's own card
        assert own.json.keys() >= {"id", "name", "version", "capabilities", "endpoint", "supported_tasks"}
    ping = {**_shown("ping.strict"), "to": line.body["id"]}
    assert posted(hub, base + PATH, ping)["nonce"] == ping["payload"]["nonce"]


@shows(
    *("invalid-version", "invalid-message-id", "invalid-timestamp", "invalid-type", "invalid-payload-not-object"),
    *("invalid-payload-unknown-field", "invalid-payload-missing-field", "invalid-missing-from"),
)
def _invalid(stage: Stage, line: Line) -> None:
    scene = stage.once(plain)
    ((status, code),) = line.outcomes
    named = {
        "invalid-version": "supported_versions",
        "invalid-payload-unknown-field": "extra",
        "invalid-payload-missing-field": "nonce",
    }
    for path in (PATH, f"/agents/{line.body['to']}{PATH}"):
        answer = posted(scene.hub, path, line.body, status)
        assert answer.keys() >= _shown("error-answer").keys() - {"to"}
        assert (answer["type"], answer["status"], answer["error_code"]) == ("error", "error", code)
        assert answer["payload"].keys() == _shown("error-answer")["payload"].keys()
        assert answer["payload"]["original_message_id"] == line.body["message_id"]
        assert named.get(line.file.removesuffix(".json"), "") in str(answer["payload"]["details"])
