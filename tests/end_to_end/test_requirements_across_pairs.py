"""What passes through every pair of dialects beside the content: traces, conversations, states and priorities."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest

from tests.end_to_end.every_dialect import SLUGS, WITH_CONTEXT, Asked, Everyone, Known, asked, enveloped, framed
from tests.end_to_end.example_files.stage import answering
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.hub import HubProcess, running_hub

TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
SPAN: Final = "b7ad6b7169203331"
TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01")
PRIORITIES: Final = ("low", "normal", "high", "urgent")
# All but the directory's, which has neither a field for conversations nor metadata.
CONVERSING: Final = tuple(slug for slug in SLUGS if slug != "directory")
QUESTION: Final = "Which one?"


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyone]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("pairs") / "data", auth="none"))
        yield Everyone(hub, stack)
        assert tracebacks(hub) == []


def _sent(everyone: Everyone, agent: Known, request: Asked, **headers: str) -> tuple[dict[str, str], Any]:
    """Send a request, and what the agent was sent for it, known by its words."""
    before = len(agent.stub.requests)
    reply = request.post(everyone.hub, **headers)
    assert reply.status == 200, reply.body

    def came() -> tuple[dict[str, str], Any] | None:
        for _, _, found, body in agent.stub.requests[before:]:
            if request.text in str(body):
                return dict(found), body
        return None

    return eventually(came, "the agent was asked")


def _message(body: Any) -> dict[str, Any]:
    message: dict[str, Any] = body["params"]["message"]
    return message


# -- traces and conversations


@pytest.mark.req("X-18")
@pytest.mark.parametrize("target", SLUGS)
@pytest.mark.parametrize("caller", SLUGS)
def test_a_trace_passes_through_every_pair(everyone: Everyone, caller: str, target: str) -> None:
    agent, own = everyone.agent(target), fresh("trace")
    given = {"traceparent": f"00-{TRACE}-{SPAN}-01", "X_Trace_ID": own, "tracestate": "vendor=1"}
    headers, _ = _sent(everyone, agent, asked(caller, agent.id, fresh("words")), **given)
    found = TRACEPARENT.fullmatch(headers["traceparent"])
    assert found is not None
    assert (found[1], found[2] != SPAN) == (TRACE, True)
    assert (headers["x-trace-id"], headers["tracestate"]) == (own, "vendor=1")
    assert headers["x-parent-span-id"].endswith(SPAN)


def _context_at(slug: str, body: Any) -> Any:
    """The conversation that an agent is told; where its dialect has no field for one it is a hint."""
    match slug:
        case "platform":
            return body["context"]["conversation_id"]
        case "envelope":
            return body["payload"]["metadata"]["dragoman"]["context"]
        case "agentvault":
            return _message(body)["metadata"]["dragoman"]["context"]
        case _:
            return _message(body)["contextId"]


def _in_context(slug: str, agent: str, context: str) -> Asked:
    request = asked(slug, agent, fresh("words"), context=context)
    if slug == "envelope":
        request.body["payload"]["metadata"] = {"dragoman": {"context": context}}
    elif slug == "agentvault":
        request.body["params"]["message"]["metadata"] = {"dragoman": {"context": context}}
    return request


def _context_of(slug: str, answer: Any) -> Any:
    """The conversation that an answer names; a platform answer names none."""
    result = answer["result"]
    return result["task"]["contextId"] if slug == "a2a-1.0" else result["contextId"]


@pytest.mark.req("X-18")
@pytest.mark.parametrize("target", CONVERSING)
@pytest.mark.parametrize("caller", CONVERSING)
def test_a_conversation_passes_through_every_pair_that_can_name_it(
    everyone: Everyone, caller: str, target: str
) -> None:
    agent, context = everyone.agent(target), fresh("ctx")
    for _ in range(2):
        request = _in_context(caller, agent.id, context)
        assert _context_at(target, _sent(everyone, agent, request)[1]) == context
        if caller in WITH_CONTEXT and caller != "platform":
            assert _context_of(caller, request.post(everyone.hub).json) == context


# -- states

TELLS: Final = {  # how a caller of each dialect sees what an agent says of its task
    "completed": ("completed", "completed", "completed", "TASK_STATE_COMPLETED", "COMPLETED", "completed"),
    "failed": ("failed", "failed", "failed", "TASK_STATE_FAILED", "FAILED", -32001),
    "rejected": ("failed", "failed", "rejected", "TASK_STATE_REJECTED", "FAILED", -32001),
    "canceled": ("cancelled", "cancelled", "canceled", "TASK_STATE_CANCELED", "CANCELED", "cancelled"),
    "input_required": (
        "in_progress",
        "running",
        "input-required",
        "TASK_STATE_INPUT_REQUIRED",
        "INPUT_REQUIRED",
        -32001,
    ),
    "auth_required": ("in_progress", "running", "auth-required", "TASK_STATE_AUTH_REQUIRED", "INPUT_REQUIRED", -32001),
    "working": ("in_progress", "running", "working", "TASK_STATE_WORKING", "WORKING", -32002),
}
AWAITED: Final = {"input_required": "input", "auth_required": "auth"}


class Teller(msgspec.Struct, frozen=True):
    """An agent of A2A 1.0 whose task is in whatever state it is told."""

    id: str


@pytest.fixture(scope="module")
def teller(everyone: Everyone) -> Iterator[Teller]:
    tasks: dict[str, Any] = {}

    def answer(body: Any) -> dict[str, Any]:
        frame = {"jsonrpc": "2.0", "id": body["id"]}
        if body["method"] != "SendMessage":
            return {**frame, "result": tasks[body["params"]["id"]]}
        (part,) = body["params"]["message"]["parts"]
        state = part.get("text") or part["data"]["text"]
        task_id = fresh("told")
        words = {"messageId": fresh("m"), "role": "ROLE_AGENT", "parts": [{"text": QUESTION}]}
        tasks[task_id] = {
            "id": task_id,
            "contextId": "c",
            "status": {"state": f"TASK_STATE_{state.upper()}", "message": words},
        }
        return {**frame, "result": {"task": tasks[task_id]}}

    with answering("a2a-1.0", answer) as stub:
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        skill = {"id": "echo", "name": "Echo", "description": "d"}
        card = {"name": "Teller", "supportedInterfaces": [interface], "skills": [skill]}
        yield Teller(everyone.hub.register(card, id=fresh("teller"))["id"])


def _begun(hub: HubProcess, request: Asked) -> Any:
    """The answer to one who does not wait."""
    configuration = {"returnImmediately": True} if request.headers else {"blocking": False}
    request.body["params"]["configuration"] = configuration
    answer = request.post(hub).json["result"]
    return answer.get("task", answer)


@pytest.mark.req("X-06")
@pytest.mark.parametrize("state", TELLS)
def test_every_state_has_its_word_in_the_envelope(everyone: Everyone, teller: Teller, state: str) -> None:
    hub, me = everyone.hub, str(uuid4())
    ack = asked("envelope", teller.id, state, sender=me).post(hub).json
    assert ack["payload"]["status"] == "assigned"
    wanted = TELLS[state][0]

    def told() -> dict[str, Any] | None:
        box = hub.get(f"/a2a/messages?after=0&agent={me}").json["messages"]
        last: dict[str, Any] = box[-1]["payload"] if box else {}
        return (
            last if (last.get("status"), "awaiting" in last.get("metadata", {})) == (wanted, state in AWAITED) else None
        )

    report = eventually(told, f"the giver is told {wanted}")
    if state in AWAITED:
        assert (report["message"], report["metadata"]["awaiting"]) == (QUESTION, AWAITED[state])


@pytest.mark.req("X-06")
@pytest.mark.parametrize("state", TELLS)
def test_every_state_has_its_word_on_the_platform(everyone: Everyone, teller: Teller, state: str) -> None:
    hub, request = everyone.hub, asked("platform", teller.id, state)
    accepted = hub.post("/v1/a2a/call/async", request.body).json
    assert accepted["status"] == "queued"

    def shown() -> dict[str, Any] | None:
        answer = hub.get(f"/v1/a2a/call/{accepted['call_id']}/status").json
        return answer if (answer["status"], answer.get("awaiting")) == (TELLS[state][1], AWAITED.get(state)) else None

    answer = eventually(shown, f"the call is {TELLS[state][1]}")
    if state == "rejected":
        assert answer["error"]["details"]["reason"] == "rejected"
    if state in AWAITED:
        assert answer["message"] == QUESTION
        waited = request.post(hub)  # one who waits cannot be asked: the question is the answer, and the call stays open
        error = waited.json["error"]
        assert (waited.status, error["code"]) == (502, "AGENT_ERROR")
        assert (error["message"], error["details"]["reason"]) == (QUESTION, state)
        assert hub.get(f"/v1/a2a/call/{waited.json['id']}/status").json["status"] == "running"


@pytest.mark.req("X-06")
@pytest.mark.parametrize("slug", ["dotted", "a2a-0.3", "a2a-1.0"])
@pytest.mark.parametrize("state", TELLS)
def test_every_state_has_its_word_in_the_dialects_of_tasks(
    everyone: Everyone, teller: Teller, state: str, slug: str
) -> None:
    hub, wanted = everyone.hub, TELLS[state][3 if slug == "a2a-1.0" else 2]
    if state != "working":
        result = asked(slug, teller.id, state).post(hub).json["result"]
        assert result.get("task", result)["status"]["state"] == wanted
    task = _begun(hub, asked(slug, teller.id, state))
    assert task["status"]["state"].lower().endswith(("submitted", "working"))
    method, name = {"dotted": ("task.get", "taskId"), "a2a-0.3": ("tasks/get", "id")}.get(slug, ("GetTask", "id"))
    headers = {"A2A-Version": "1.0"} if slug == "a2a-1.0" else {}

    def shown() -> bool:
        body = framed(method, {name: task["id"]})
        return hub.post(f"/agents/{teller.id}/", body, headers).json["result"]["status"]["state"] == wanted

    eventually(shown, f"the task is {wanted}")


@pytest.mark.req("X-06")
@pytest.mark.parametrize("state", TELLS)
def test_every_state_has_its_word_in_agentvault(everyone: Everyone, teller: Teller, state: str) -> None:
    hub = everyone.hub
    task_id = asked("agentvault", teller.id, state).post(hub).json["result"]["id"]

    def shown() -> bool:
        body = framed("tasks/get", {"id": task_id})
        return hub.post(f"/agents/{teller.id}/", body).json["result"]["state"] == TELLS[state][4]

    eventually(shown, f"the task is {TELLS[state][4]}")


@pytest.mark.req("X-06")
@pytest.mark.parametrize("state", TELLS)
def test_every_state_has_its_word_at_the_directory(everyone: Everyone, teller: Teller, state: str) -> None:
    request = asked("directory", teller.id, state)
    if state == "working":
        request.body["params"]["timeoutMs"] = 300
    answer = request.post(everyone.hub).json
    wanted = TELLS[state][5]
    if isinstance(wanted, str):
        assert answer["result"]["status"] == wanted
        return
    reasons = {"rejected": "rejected", "input_required": state, "auth_required": state, "working": "timeout"}
    assert answer["error"]["code"] == wanted
    assert answer["error"]["data"]["reason"] == reasons.get(state, answer["error"]["data"]["reason"])
    if state in AWAITED:
        assert QUESTION in answer["error"]["message"]


# -- priorities


def _prioritised(slug: str, agent: str, priority: str) -> Asked:
    """A request with a priority in the dialect's own word, or as a hint; without one where it is the normal one."""
    request = asked(slug, agent, fresh("words"))
    match slug:
        case "platform":
            request.body["options"] = {"priority": priority}
        case "envelope":
            request.body["payload"]["priority"] = "medium" if priority == "normal" else priority
        case "directory":
            pass  # it has no word and no metadata
        case _:
            request.body["params"]["message"]["metadata"] = {"dragoman": {"priority": priority}}
    return request


def _priority_at(slug: str, body: Any) -> str:
    match slug:
        case "platform":
            word: str = body["options"]["priority"]
        case "envelope":
            word = body["payload"]["priority"]
        case _:
            word = _message(body)["metadata"]["dragoman"].get("priority", "normal")
    return word


@pytest.mark.req("X-06")
@pytest.mark.parametrize("target", [slug for slug in SLUGS if slug != "directory"])
@pytest.mark.parametrize("caller", SLUGS)
def test_a_priority_passes_through_every_pair_that_has_a_word_for_it(
    everyone: Everyone, caller: str, target: str
) -> None:
    agent = everyone.agent(target)
    for priority in PRIORITIES:
        wanted = "normal" if caller == "directory" else priority
        _, body = _sent(everyone, agent, _prioritised(caller, agent.id, priority))
        assert _priority_at(target, body) == ("medium" if (wanted, target) == ("normal", "envelope") else wanted)
    _, body = _sent(everyone, agent, asked(caller, agent.id, fresh("words")))
    assert _priority_at(target, body) in ("normal", "medium")


@pytest.mark.req("X-06")
def test_each_dialect_takes_its_own_words_for_a_priority(everyone: Everyone) -> None:
    hub, agent = everyone.hub, everyone.agent("platform")
    body = asked("platform", agent.id, "hello").body
    for word, status in (("medium", 200), ("normal", 200), ("highest", 400)):
        assert hub.post("/v1/a2a/call", {**body, "options": {"priority": word}}).status == status
    payload: dict[str, Any] = {"task_type": "echo", "title": "t", "description": "d", "payload": {}}
    for word, status in (("medium", 200), ("normal", 400)):
        own = {**payload, "task_id": fresh("t"), "priority": word}
        message = enveloped(str(uuid4()), agent.id, "task_assignment", own)
        assert hub.post("/a2a/messages", message).status == status
