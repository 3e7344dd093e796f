"""A2A 0.3 over JSON-RPC and real sockets: its callers at the hub, and its agents as they are met in the field."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.end_to_end.world import RFC_3339, eventually, fresh
from tests.support.agents import a2a_v03
from tests.support.callers.a2a_v03 import A2aV03Caller
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.speaking import FAILURE, QUESTION, Content, File, Seen, StubAgent, json_answer, serving

TEXT: Final = {"kind": "text", "text": "hello"}
MESSAGE: Final = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [TEXT]}
HELLO: Final = [{"kind": "text", "text": "hello from X"}]
PUSH: Final = "tasks/pushNotificationConfig"


class World:
    """A 0.3 agent at a hub, and how it is talked to."""

    def __init__(self, hub: HubProcess, agent: StubAgent) -> None:
        self.hub = hub
        self.agent = agent
        self.name: str = hub.register(agent.card, id=fresh())["id"]
        self.caller = A2aV03Caller(hub.url, ADMIN_TOKEN)

    def rpc(self, method: str, params: Any = None, path: str = "/", **headers: str) -> Any:
        """The whole answer to one JSON-RPC request."""
        framed = {"jsonrpc": "2.0", "id": "req-1", "method": method, **({} if params is None else {"params": params})}
        reply = self.hub.post(f"/agents/{self.name}{path}", framed, headers)
        assert reply.status == 200, reply.body
        assert ("result" in reply.json) is not ("error" in reply.json)
        return reply.json

    def code(self, method: str, params: Any = None, path: str = "/", **headers: str) -> int:
        """The code with which a request is refused."""
        code: int = self.rpc(method, params, path, **headers)["error"]["code"]
        return code

    def slow(self) -> Seen:
        """A task that the agent is known to work on."""
        seen = self.caller.call(self.name, Content(text="slow"), wait=False)
        assert self.agent.arrived.wait(10)
        eventually(lambda: self.caller.get(self.name, seen).state == "working", "the agent works")
        return seen


@pytest.fixture
def world(hub: HubProcess) -> Iterator[World]:
    with a2a_v03.agent(fresh("v03")) as agent:
        yield World(hub, agent)


# -- callers


@pytest.mark.req("O-42", "O-43")
@pytest.mark.parametrize("path", ["/", "", "/a2a-0.3", "/a2a-0.3/"])
def test_a_message_is_answered_with_the_finished_task(world: World, path: str) -> None:
    task = world.rpc("message/send", {"message": MESSAGE}, path)["result"]
    assert task["kind"] == "task"
    assert task["id"].startswith("task-")
    assert task["status"]["state"] == "completed"
    assert RFC_3339.fullmatch(task["status"]["timestamp"])
    assert task["artifacts"][0]["parts"] == [TEXT]
    ids = {"contextId": task["contextId"], "taskId": task["id"]}
    assert task["history"] == [{**MESSAGE, **ids}]
    assert world.rpc("tasks/get", {"id": task["id"]}, path)["result"] == task


@pytest.mark.req("O-43")
@pytest.mark.parametrize(
    "content",
    [
        Content(text="hello"),
        Content(data={"nested": {"big": 2**70}}),
        Content(data=[1, "two", None]),
        Content(file=File(raw=b"\x00\xff", name="f.bin", media_type="application/x-f")),
        Content(file=File(uri="https://example.com/f.pdf", name="f.pdf", media_type="application/pdf")),
    ],
    ids=["text", "data", "list", "bytes", "uri"],
)
def test_every_kind_of_part_goes_to_the_agent_and_back(world: World, content: Content) -> None:
    assert world.caller.call(world.name, content).content == (content,)


@pytest.mark.req("O-43")
def test_every_field_of_a_message_arrives_at_an_agent_of_the_same_version(world: World) -> None:
    message = {
        **MESSAGE,
        "role": "agent",
        "parts": [{**TEXT, "metadata": {"part": 1}}],
        "extensions": ["https://x.test/e"],
        "metadata": {"message": 1},
    }
    params = {"message": message, "metadata": {"params": 1}, "configuration": {"acceptedOutputModes": ["text/plain"]}}
    world.rpc("message/send", params, **{"X-A2A-Extensions": "https://x.test/e"})
    _, _, headers, body = world.agent.requests[-1]
    sent = body["params"]
    assert sent["message"] == {
        **message,
        "contextId": sent["message"]["contextId"],
        "metadata": {"message": 1, "dragoman": sent["message"]["metadata"]["dragoman"]},
    }
    assert sent["metadata"] == {"params": 1}
    assert sent["configuration"] == {"acceptedOutputModes": ["text/plain"], "blocking": True}
    assert headers["x-a2a-extensions"] == "https://x.test/e"
    assert headers["a2a-version"] == "0.3"


@pytest.mark.req("O-43")
def test_one_who_does_not_wait_is_answered_at_once_and_finds_the_task_again(world: World) -> None:
    seen = world.slow()
    assert seen.state in ("submitted", "working")
    world.agent.release.set()
    eventually(lambda: world.caller.get(world.name, seen).state == "completed", "it is done")
    assert world.caller.get(world.name, seen).content == (Content(text="slow"),)


@pytest.mark.req("O-42")
def test_a_task_is_cancelled_and_the_agent_is_told(world: World) -> None:
    seen = world.slow()
    assert world.caller.cancel(world.name, seen).state == "canceled"
    assert world.agent.cancelled.wait(10)
    assert world.caller.cancel(world.name, seen).error == -32002
    assert world.code("tasks/cancel", {"id": "task-none"}) == -32001
    assert world.code("tasks/get", {"id": "task-none"}) == -32001


@pytest.mark.req("O-43")
def test_states_are_shown_as_they_are(world: World) -> None:
    failed = world.caller.call(world.name, Content(text="fail"))
    assert (failed.state, failed.message) == ("failed", FAILURE)
    assert world.caller.call(world.name, Content(text="reject")).state == "rejected"
    asking = world.caller.call(world.name, Content(text="ask"))
    assert (asking.state, asking.message) == ("input-required", QUESTION)
    done = world.caller.follow_up(world.name, asking, Content(text="blue"))
    assert (done.task_id, done.state, done.content) == (asking.task_id, "completed", (Content(text="blue"),))
    message = {**MESSAGE, "taskId": done.task_id}
    assert world.code("message/send", {"message": message}) == -32004


@pytest.mark.req("O-43")
def test_a_follow_up_by_its_task_alone_keeps_the_context_and_another_context_is_refused(world: World) -> None:
    asking = world.caller.call(world.name, Content(text="ask"))
    wrong = {**MESSAGE, "taskId": asking.task_id, "contextId": "another"}
    assert world.code("message/send", {"message": wrong}) == -32602
    done = world.rpc("message/send", {"message": {**MESSAGE, "taskId": asking.task_id}})["result"]
    assert (done["id"], done["contextId"]) == (asking.task_id, asking.context_id)


def test_history_is_as_long_as_asked(world: World) -> None:
    asking = world.caller.call(world.name, Content(text="ask"))
    done = world.caller.follow_up(world.name, asking, Content(text="blue"))
    for length, count in ((None, 2), (0, 2), (1, 1), (9, 2)):
        task = world.rpc("tasks/get", {"id": done.task_id, "historyLength": length})["result"]
        assert len(task["history"]) == count
    assert world.code("tasks/get", {"id": done.task_id, "historyLength": -1}) == -32602
    params = {"message": MESSAGE, "configuration": {"historyLength": -1}}
    assert world.code("message/send", params) == -32602


@pytest.mark.req("O-39")
@pytest.mark.parametrize("said", ["", "0.3", "0.3.0"])
def test_0_3_in_any_spelling_or_none_is_taken(world: World, said: str) -> None:
    assert world.rpc("message/send", {"message": MESSAGE}, **{"A2A-Version": said})["result"]
    assert world.rpc("message/send", {"message": MESSAGE}, f"/?A2A-Version={said}")["result"]


@pytest.mark.req("O-39")
@pytest.mark.parametrize("said", ["1.0", "1.0.1", "0.2", "2.0", "x"])
@pytest.mark.parametrize("path", ["/", "/a2a-0.3/"])
def test_another_version_is_refused(world: World, path: str, said: str) -> None:
    assert world.code("message/send", {"message": MESSAGE}, path, **{"A2A-Version": said}) == -32009
    assert world.code("message/send", {"message": MESSAGE}, f"{path}?A2A-Version={said}") == -32009


@pytest.mark.req("O-42", "O-47")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("message/send", None, -32602),
        ("message/send", {}, -32602),
        ("message/send", {"message": {**MESSAGE, "parts": []}}, -32602),
        ("message/send", {"message": {**MESSAGE, "role": "ROLE_USER"}}, -32602),
        ("message/send", {"message": {**MESSAGE, "parts": [{"kind": "video"}]}}, -32602),
        ("message/send", {"message": {**MESSAGE, "taskId": "task-none"}}, -32001),
        ("tasks/get", {}, -32602),
        ("message/stream", {"message": {**MESSAGE, "parts": []}}, -32602),
        ("message/stream", {"message": {**MESSAGE, "taskId": "task-none"}}, -32001),
        ("tasks/resubscribe", {"id": "task-none"}, -32001),
        (f"{PUSH}/set", {"taskId": "task-none"}, -32602),
        *((f"{PUSH}/{verb}", {"id": "task-none"}, -32001) for verb in ("get", "list")),
        (f"{PUSH}/delete", {"id": "task-none", "pushNotificationConfigId": "c"}, -32001),
        ("agent/getAuthenticatedExtendedCard", None, -32004),
    ],
)
@pytest.mark.parametrize("path", ["/", "/a2a-0.3/"])
def test_what_cannot_be_done_is_refused_with_its_code(
    world: World, path: str, method: str, params: object, code: int
) -> None:
    assert world.code(method, params, path) == code
    assert not world.agent.arrived.is_set()


@pytest.mark.req("O-47")
def test_the_extended_card_needs_authentication(world: World) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard"}
    reply = world.hub.post(f"/agents/{world.name}/", body, {"Authorization": ""})
    assert (reply.status, reply.json["error"]["code"]) == (401, -32000)
    assert reply.headers["www-authenticate"].startswith("Bearer resource_metadata=")


@pytest.mark.req("O-47", "X-11")
@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
def test_the_mount_serves_the_card_of_0_3_alone(world: World, path: str) -> None:
    reply = world.hub.get(f"/agents/{world.name}/a2a-0.3{path}", {"Authorization": ""})
    assert reply.status == 200
    card = reply.json
    assert card["protocolVersion"] == "0.3.0"
    assert "supportedInterfaces" not in card
    assert card["url"].endswith(f"/agents/{world.name}/a2a-0.3/")
    assert card["url"] in {each["url"] for each in card["additionalInterfaces"]}
    assert [skill["id"] for skill in card["skills"]] == ["echo"]
    assert reply.headers["etag"]


@pytest.mark.req("X-09")
def test_the_mount_speaks_nothing_else(world: World) -> None:
    for method in ("SendMessage", "message.send", "tasks/send", "a2a/task"):
        assert world.code(method, {}, "/a2a-0.3/") == -32601


@pytest.mark.req("X-16")
def test_no_answer_has_a_null_sibling(world: World) -> None:
    for body in (world.rpc("message/send", {"message": MESSAGE}), world.rpc("tasks/get", {"id": "none"})):
        assert None not in body.values()
        assert set(body) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})


def test_the_same_message_twice_is_two_tasks_unless_a_key_says_otherwise(world: World) -> None:
    first, second = (world.rpc("message/send", {"message": MESSAGE})["result"]["id"] for _ in range(2))
    assert first != second
    keyed = {"Idempotency-Key": fresh("key")}
    once, again = (world.rpc("message/send", {"message": MESSAGE}, **keyed)["result"]["id"] for _ in range(2))
    assert once == again
    other = {**MESSAGE, "parts": [{"kind": "text", "text": "other"}]}
    assert world.code("message/send", {"message": other}, **keyed) == -32602


def test_an_agent_that_is_not_there_is_a_404_in_json_rpc(hub: HubProcess) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": MESSAGE}}
    for path in ("/agents/agt_nobody/", "/agents/agt_nobody/a2a-0.3/"):
        reply = hub.post(path, body)
        assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (404, -32000, 1)


def test_another_media_type_is_refused(world: World) -> None:
    reply = world.hub.post(f"/agents/{world.name}/", b"{}", {"Content-Type": "text/plain"})
    assert (reply.status, reply.json["error"]["code"]) == (415, -32600)


def test_a_client_between_the_versions_finds_its_answer(world: World) -> None:
    message = {"messageId": "m-1", "role": "user", "parts": [{"text": "hello"}]}
    result = world.rpc("message/send", {"message": message})["result"]
    assert result["task"]["artifacts"][0]["parts"][0]["text"] == "hello"
    assert {name: value for name, value in result.items() if name != "task"} == result["task"]
    got = world.hub.post(
        f"/agents/{world.name}/",
        {"jsonrpc": "2.0", "id": None, "method": "tasks/get", "params": {"id": result["task"]["id"]}},
    )
    assert (got.json["id"], got.json["result"]) == (None, result["task"])


# -- agents


Answers = Mapping[str, Any]


def _call(hub: HubProcess, answers: Answers, **card: Any) -> tuple[Seen, StubAgent]:
    """What a caller sees of an agent that answers each method with what is printed here, the last one for ever."""
    agent = StubAgent("a2a-0.3")
    left = {method: list(said) for method, said in answers.items()}

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        said = left[body["method"]]
        answer: Any = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(answer, bytes):
            return 500, {"Content-Type": "text/plain"}, answer
        return json_answer({"jsonrpc": "2.0", "id": "unknown", **answer})

    with serving(agent, handle):
        agent.card = {"protocolVersion": "0.3.0", "name": "field", "url": agent.url, **card}
        name = hub.register(agent.card, id=fresh())["id"]
        seen = A2aV03Caller(hub.url, ADMIN_TOKEN).call(name, Content(text="hi"), timeout_ms=15_000)
    return seen, agent


def _task(state: str = "completed", **more: Any) -> dict[str, Any]:
    return {"kind": "task", "id": "T:1", "contextId": "C", "status": {"state": state}, **more}


def _said(parts: Any = HELLO) -> dict[str, Any]:
    return {"kind": "message", "messageId": "m", "role": "agent", "parts": parts}


def _texts(seen: Seen) -> str:
    return "".join(content.text or "" for content in seen.content)


@pytest.mark.req("X-16")
@pytest.mark.parametrize(
    "answer",
    [
        {"result": _task(artifacts=[{"artifactId": "a", "parts": HELLO}]), "error": None},
        {
            "result": _task(
                artifacts=[
                    {"artifactId": "a", "parts": [{"kind": "text", "text": text} for text in ("hello ", "from X", "")]}
                ]
            )
        },
        {"result": {**_task(), "status": {"state": "completed", "message": _said()}}},
        {"result": _task(artifacts=[{"artifactId": "a", "parts": HELLO}], history=[_said()])},
        {"result": _said()},
        {
            "result": {
                "task": {
                    "id": "T",
                    "status": {"state": "TASK_STATE_COMPLETED"},
                    "artifacts": [{"parts": [{"text": "hello from X"}]}],
                }
            }
        },
    ],
    ids=["null error", "many parts", "status only", "twice", "message", "hybrid"],
)
def test_the_answer_is_found_once_wherever_the_agent_put_it(hub: HubProcess, answer: Any) -> None:
    seen, _ = _call(hub, {"message/send": [answer]})
    assert (seen.state, _texts(seen)) == ("completed", "hello from X")


def test_an_agent_that_never_answers_at_once_is_asked_again(hub: HubProcess) -> None:
    submitted = {"task": {"id": "T:1", "contextId": "C", "status": {"state": "submitted"}}}
    answers = {
        "message/send": [{"result": submitted}],
        "tasks/get": [{"result": _task("working")}, {"result": _task(artifacts=[{"parts": HELLO}])}],
    }
    seen, agent = _call(hub, answers)
    assert (seen.state, _texts(seen)) == ("completed", "hello from X")
    assert [body["method"] for _, _, _, body in agent.requests] == ["message/send", "tasks/get", "tasks/get"]
    assert agent.requests[-1][3]["params"] == {"id": "T:1"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": {"code": -32603, "message": "Boom", "data": None}, "result": None}, "Boom"),
        ({"error": {"code": -32601, "message": "Method not found"}}, "Method not found"),
        (b"Internal Server Error", "HTTP 500"),
        ({"result": {"kind": "message", "role": "user", "parts": HELLO}}, "own message"),
        ({"result": None}, "not a JSON-RPC answer"),
    ],
)
def test_an_agent_that_fails_is_a_failed_task_with_the_reason(hub: HubProcess, answer: Any, words: str) -> None:
    seen, _ = _call(hub, {"message/send": [answer]})
    assert seen.state == "failed"
    assert words in (seen.message or "")


def test_an_agent_is_registered_by_its_url(hub: HubProcess) -> None:
    with a2a_v03.agent(fresh("by_url")) as agent:
        found = hub.register(None, url=agent.url, id=fresh())
        assert found["dialect"] == "a2a-0.3"
        assert not agent.arrived.is_set()
        seen = A2aV03Caller(hub.url, ADMIN_TOKEN).call(found["id"], Content(text="hello"))
        assert seen.content == (Content(text="hello"),)
        assert json.dumps(seen.raw).count('"hello"') == 2  # the artifact and the caller's own turn
