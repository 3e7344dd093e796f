"""One JSON-RPC URL for every dialect: whose words they are, which agent is meant, and how answers are framed."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.end_to_end.every_dialect import RPC, Asked, Everyone, Known, asked, framed
from tests.end_to_end.world import eventually, fresh, tracebacks
from tests.support.hub import HubProcess, running_hub
from tests.support.speaking import StubAgent, json_answer, serving

SHARED: Final = ("/agents/{}/", "/agents/{}", "/v1/agents/{}/a2a")
VERSION: Final = {"A2A-Version": "1.0"}
MESSAGES: Final = ("a2a-1.0", "a2a-0.3", "agentvault", "dotted")  # those that send a message, not a named task


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyone]:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path_factory.mktemp("urls") / "data", auth="none"))
        yield Everyone(hub, stack)
        assert tracebacks(hub) == []


def _at(request: Asked, path: str) -> Asked:
    return msgspec.structs.replace(request, path=path)


def _is_in(slug: str, result: Any) -> bool:
    """Whether a result has the shape of a dialect's answer to a message."""
    match slug:
        case "a2a-1.0":
            return result.keys() == {"task"}
        case "a2a-0.3":
            return result["kind"] == "task" and "history" in result and "messages" not in result
        case "dotted":
            return result["kind"] == "task" and "history" in result and "messages" in result
        case "directory":
            return result.keys() == {"taskId", "status", "output", "result"}
        case _:
            return result.keys() == {"id"} and result["id"].startswith("av-")


# -- whose words


@pytest.mark.req("X-04")
@pytest.mark.parametrize("target", ["a2a-1.0", "platform"])
@pytest.mark.parametrize("url", SHARED)
def test_one_url_understands_every_dialect_by_the_methods_name(everyone: Everyone, url: str, target: str) -> None:
    agent = everyone.agent(target)
    path = url.format(agent.id)
    for slug in RPC:
        reply = _at(asked(slug, agent.id, "hello"), path).post(everyone.hub)
        assert reply.status == 200, reply.body
        assert _is_in(slug, reply.json["result"]), (slug, reply.body)
    framed_by_none = {"skill": "echo", "input": {"text": "hello"}}
    answer = everyone.hub.post(path, framed_by_none).json
    assert (answer["status"], answer["result"]) == ("completed", {"text": "hello"})


@pytest.mark.req("X-04")
@pytest.mark.parametrize("url", SHARED)
def test_a_method_that_nobody_has_and_a_version_that_is_not_named_are_refused(everyone: Everyone, url: str) -> None:
    agent = everyone.agent("dotted")
    path = url.format(agent.id)
    for method in ("message.sent", "tasks/nothing", "SendMessages", "nothing"):
        assert everyone.hub.post(path, framed(method, {})).json["error"]["code"] == -32601, method
    without_version = asked("a2a-1.0", agent.id, "hello").body
    assert everyone.hub.post(path, without_version).json["error"]["code"] == -32009


@pytest.mark.req("X-04")
def test_the_hubs_own_root_understands_every_dialect_too(everyone: Everyone) -> None:
    agent = everyone.agent("a2a-0.3")
    for slug in MESSAGES:
        request = asked(slug, agent.id, "hello")
        request.body["params"]["message"]["metadata"] = {"dragoman": {"agent": agent.id}}
        assert _is_in(slug, _at(request, "/").post(everyone.hub).json["result"]), slug
    assert _is_in("directory", _at(asked("directory", agent.id, "hello"), "/").post(everyone.hub).json["result"])


# -- whose task


@pytest.mark.req("X-08")
@pytest.mark.parametrize("url", (*SHARED, "/"))
def test_the_tasks_id_tells_in_which_dialect_it_is_got_and_cancelled(everyone: Everyone, url: str) -> None:
    agent = everyone.agent("a2a-1.0")
    path = url.format(agent.id)
    vaulted = asked("agentvault", agent.id, "hello").post(everyone.hub).json["result"]["id"]
    official = asked("a2a-0.3", agent.id, "hello").post(everyone.hub).json["result"]["id"]
    in_dotted = asked("dotted", agent.id, "hello").post(everyone.hub).json["result"]["id"]
    hub = everyone.hub

    def state() -> bool:
        return hub.post(path, framed("tasks/get", {"id": vaulted})).json["result"]["state"] == "COMPLETED"

    eventually(state, "the task is done, in agentvault's words")
    finished = hub.post(path, framed("tasks/cancel", {"id": vaulted})).json["result"]
    assert (finished.keys(), finished["success"]) == ({"success", "message"}, False)
    for task_id in (official, in_dotted):
        shown = hub.post(path, framed("tasks/get", {"id": task_id})).json["result"]
        assert (shown["kind"], shown["status"]["state"]) == ("task", "completed")
        assert "messages" not in shown
        assert hub.post(path, framed("tasks/cancel", {"id": task_id})).json["error"]["code"] == -32002
    for unknown in ("av-nobody", "task-nobody", "x"):
        for method in ("tasks/get", "tasks/cancel"):
            assert hub.post(path, framed(method, {"id": unknown})).json["error"]["code"] == -32001


@pytest.mark.req("X-08")
def test_who_is_not_known_learns_nothing_of_a_task_not_even_whether_it_is_there(tmp_path: Path) -> None:
    """The dialect is told by the id alone, so that nothing has to be looked up before authentication."""
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path / "data"))
        agent = Everyone(hub, stack).agent("agentvault")
        mine = asked("agentvault", agent.id, "hello").post(hub).json["result"]["id"]
        for task_id, code in ((mine, -32002), ("av-nobody", -32002), ("task-nobody", -32000)):
            for method in ("tasks/get", "tasks/cancel"):
                body = {**framed(method, {"id": task_id}), "id": "1"}
                reply = hub.post(f"/agents/{agent.id}/", body, {"Authorization": ""})
                assert (reply.status, reply.json["error"]["code"]) == (401, code)
                assert task_id not in reply.body.decode()


# -- which agent


def _sent_to(everyone: Everyone, slug: str, metadata: dict[str, Any] | None, **params: Any) -> Any:
    """A message at the hub's root, with what names its agent; the whole answer."""
    request = asked(slug, "", fresh("words"))
    request.body["params"] |= params
    if metadata is not None:
        request.body["params"]["message"]["metadata"] = metadata
    return _at(request, "/").post(everyone.hub).json


def _got_it(agent: Known) -> bool:
    came = agent.stub.arrived.wait(10)
    agent.stub.arrived.clear()
    return came


@pytest.mark.req("X-10")
@pytest.mark.parametrize("slug", MESSAGES)
def test_without_an_agent_in_the_url_the_target_is_named_or_found_by_its_skill(everyone: Everyone, slug: str) -> None:
    one, other = everyone.agent("dotted"), everyone.agent("a2a-1.0")
    for named, elsewhere in ((one, other), (other, one)):
        for metadata in ({"dragoman": {"agent": named.id}}, {"agentId": named.id}):
            assert "result" in _sent_to(everyone, slug, metadata)
            assert _got_it(named)
        assert "result" in _sent_to(everyone, slug, None, tenant=named.id)
        assert _got_it(named)
        # The name of the agent decides before the skill does.
        assert "result" in _sent_to(everyone, slug, {"dragoman": {"agent": named.id, "skill": "echo"}})
        assert _got_it(named)
        assert not elsewhere.stub.arrived.is_set()
    stub, rare = everyone.stub("platform"), fresh("rare")
    card = {**stub.card, "id": fresh("skilled"), "skills": [{"name": rare, "description": "d"}]}
    skilled = Known(everyone.hub.register(card)["id"], stub)
    for metadata in ({"dragoman": {"skill": rare}}, {"skill": rare}):
        assert "result" in _sent_to(everyone, slug, metadata)
        assert _got_it(skilled)


@pytest.mark.req("X-10")
@pytest.mark.parametrize("slug", MESSAGES)
def test_where_nothing_chooses_an_agent_the_refusal_says_where_to_name_one(everyone: Everyone, slug: str) -> None:
    assert everyone.agent("dotted").id != everyone.agent("platform").id
    error = _sent_to(everyone, slug, None)["error"]
    assert error["code"] == -32602
    assert "/agents/{id}" in error["message"]


@pytest.mark.req("X-10")
def test_the_only_agent_is_meant_and_a_default_one_before_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hub = HubProcess(tmp_path / "data", auth="none").start()
        stack.callback(hub.stop)
        everyone = Everyone(hub, stack)
        only = everyone.another("a2a-1.0", id="only")
        for slug in MESSAGES:
            assert "result" in _sent_to(everyone, slug, None)
            assert _got_it(only)
        chosen = everyone.another("dotted", id="chosen")
        hub.stop()
        hub.start({"DRAGOMAN_DEFAULT_AGENT": "chosen"})
        for slug in MESSAGES:
            assert "result" in _sent_to(everyone, slug, None)
            assert _got_it(chosen)
            assert "result" in _sent_to(everyone, slug, {"agentId": "only"})
            assert _got_it(only)


# -- frames


def _refusals(slug: str, agent: str) -> list[tuple[dict[str, str], Any]]:
    """Requests of a dialect that are refused, each for another reason."""
    send = asked(slug, agent, "hello")
    get = {"a2a-1.0": "GetTask", "dotted": "task.get", "directory": "a2a/cancel"}.get(slug, "tasks/get")
    name = "taskId" if slug in ("dotted", "directory") else "id"
    return [
        (send.headers, framed(get, {name: f"{'av' if slug == 'agentvault' else 'task'}-nobody"})),
        (send.headers, {**send.body, "params": {}}),
        (send.headers, {**send.body, "params": 7}),
        (send.headers, {**send.body, "method": "nothing"}),
        (send.headers, {**send.body, "jsonrpc": "1.0"}),
        (send.headers, b"{"),
        (send.headers, []),
    ]


@pytest.mark.req("X-16")
@pytest.mark.parametrize("slug", RPC)
def test_no_answer_has_a_null_result_or_error(everyone: Everyone, slug: str) -> None:
    hub, agent = everyone.hub, everyone.agent("a2a-1.0")
    for path in (f"/agents/{agent.id}/", f"/agents/{agent.id}/{slug}/"):
        for text in ("hello", "fail"):
            answer = _at(asked(slug, agent.id, text), path).post(hub).json
            assert ("result" in answer) is not ("error" in answer)
            assert answer.get("result", answer.get("error")) is not None
        for headers, body in _refusals(slug, agent.id):
            answer = hub.post(path, body, headers).json
            assert answer["error"]["code"] < 0
            assert "result" not in answer


RESULTS: Final[dict[str, Any]] = {
    "a2a-1.0": {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}},
    "a2a-0.3": {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}},
    "dotted": {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}},
    "directory": {"taskId": "t", "status": "completed", "output": {}},
    "agentvault": {"id": "t", "state": "COMPLETED", "createdAt": "2026-01-12T10:00:00Z", "messages": []},
}


@pytest.mark.req("X-16")
@pytest.mark.parametrize("slug", RPC)
def test_an_agent_that_sends_null_siblings_is_understood(everyone: Everyone, slug: str) -> None:
    shape, stub = everyone.agent(slug).stub.card, StubAgent(slug)
    said: dict[str, Any] = {}

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        return json_answer({"jsonrpc": "2.0", "id": body["id"], **said})

    with serving(stub, handle):
        name = fresh("nulls")
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        own = {"name": name, "agentId": name, "humanReadableId": f"tests/{name}", "url": f"{stub.url}/"}
        own |= {"endpoint": stub.url, "supportedInterfaces": [interface]}
        card = {member: own.get(member, value) for member, value in shape.items()}
        target = everyone.hub.register(card, id=name, dialect=slug)["id"]
        said |= {"result": RESULTS[slug], "error": None}
        done = everyone.hub.call("echo", {"text": "x"}, target)
        assert (done.status, done.json["status"]) == (200, "completed"), done.body
        said |= {"result": None, "error": {"code": -32001, "message": "it broke"}}
        failed = everyone.hub.call("echo", {"text": "x"}, target)
        assert (failed.status, failed.json["error"]["message"]) == (502, "it broke"), failed.body
