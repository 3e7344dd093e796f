"""The directory's dialect at a real hub: registering, finding, and giving tasks."""

import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.end_to_end.world import RFC_3339, fresh, holds, join, refused, says, skill
from tests.support.agents import directory
from tests.support.callers.directory import DirectoryCaller
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent
from tests.support.speaking import FAILURE, Content, File, StubAgent

RECORD = {"agentId", "name", "capabilities", "endpoint", "registeredAt"}


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with directory.agent(fresh("dir-agent")) as stub:
        yield stub


def _rpc(method: str, params: Any, request_id: Any = "r-1") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _card(capability: str, **more: Any) -> dict[str, Any]:
    return {
        "agentId": fresh("dir"),
        "name": "Research Agent",
        "capabilities": [capability],
        "endpoint": "http://localhost:9001",
        **more,
    }


def _task(action: str, given: Any = None, **more: Any) -> dict[str, Any]:
    return {"taskId": fresh("task"), "action": action, "sender": "my-agent", "input": given or {"q": 1}, **more}


def _result(reply: Reply, request_id: Any = "r-1") -> dict[str, Any]:
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"jsonrpc", "id", "result"}, reply.json
    assert reply.json["id"] == request_id
    result: dict[str, Any] = reply.json["result"]
    assert "error" not in result
    return result


def _error(reply: Reply, code: int, status: int = 200) -> dict[str, Any]:
    assert reply.status == status, reply.body
    assert set(reply.json) == {"jsonrpc", "id", "error"}, reply.json
    error: dict[str, Any] = reply.json["error"]
    assert error["code"] == code, error
    assert error["message"]
    return error


def _register(hub: HubProcess, card: dict[str, Any]) -> None:
    assert hub.post("/a2a/register", card).json == {"status": "registered", "agentId": card["agentId"]}


# -- registering


@pytest.mark.req("R-01")
@pytest.mark.parametrize("path", ["/a2a/register", "/a2a", "/a2a/", "/"])
def test_an_agent_is_registered(hub: HubProcess, path: str) -> None:
    card = _card("research")
    answer = _result(hub.post(path, _rpc("a2a/register", card)))
    assert answer == {"status": "registered", "agentId": card["agentId"]}
    record = hub.get(f"/a2a/agents/{card['agentId']}").json
    assert {name: record[name] for name in card} == card


@pytest.mark.req("R-13")
@pytest.mark.parametrize("field", ["agentId", "name", "capabilities", "endpoint"])
@pytest.mark.parametrize("wrong", [None, 7, ""])
def test_each_field_of_a_registration_is_required_and_typed(hub: HubProcess, field: str, wrong: Any) -> None:
    card = _card("research")
    without = {name: value for name, value in card.items() if name != field}
    for params in (without, {**card, field: wrong}):
        error = _error(hub.post("/a2a/register", _rpc("a2a/register", params)), -32602)
        assert field in error["message"]
        assert [each["path"] for each in error["data"]["errors"]] == [field]
    assert hub.get(f"/a2a/agents/{card['agentId']}").status == 404


@pytest.mark.req("R-13")
def test_every_field_that_is_missing_is_named(hub: HubProcess) -> None:
    error = _error(hub.post("/a2a/register", _rpc("a2a/register", {"agentId": "x"})), -32602)
    assert error["data"]["missing"] == ["name", "capabilities", "endpoint"]


@pytest.mark.req("R-14")
def test_registering_again_replaces(hub: HubProcess) -> None:
    capability = fresh("cap")
    card = _card(capability)
    _register(hub, card)
    first = hub.get(f"/a2a/agents/{card['agentId']}").json
    again = {**card, "name": "Renamed", "capabilities": [fresh("cap")], "endpoint": "http://localhost:9002"}
    _register(hub, again)
    assert hub.get(f"/a2a/agents/{card['agentId']}").json == {**first, **again}
    assert hub.post("/a2a/discover", {"capabilities": [capability]}).json == {"agents": []}
    assert len(hub.post("/a2a/discover", {"capabilities": again["capabilities"]}).json["agents"]) == 1


@pytest.mark.req("R-14", "X-13")
def test_an_id_belongs_to_whoever_registered_it_first(hub: HubProcess, agent: PlatformAgent) -> None:
    first, second = hub.new_key("a2a:call", "a2a:register"), hub.new_key("a2a:call", "a2a:register")
    card = _card("research")
    assert hub.post("/a2a/register", card, token=first).status == 200
    taken = hub.post("/a2a/register", {**card, "endpoint": "http://localhost:6666"}, token=second)
    assert (taken.status, set(taken.json)) == (403, {"error"})
    _error(hub.post("/a2a", _rpc("a2a/register", {**card, "name": "Mine"}), token=second), -32000, 403)
    platform = agent.card(id=card["agentId"])
    reply = hub.post("/v1/a2a/registry", {"agent_card": platform}, token=second)
    refused(reply, 403, "AUTHORIZATION_ERROR")
    record = hub.get(f"/a2a/agents/{card['agentId']}").json
    assert (record["name"], record["endpoint"]) == (card["name"], card["endpoint"])


# -- finding


@pytest.mark.req("R-02", "R-15")
def test_agents_are_found_by_any_of_the_capabilities(hub: HubProcess) -> None:
    one, two, three = fresh("cap"), fresh("cap"), fresh("cap")
    cards = [_card(one), _card(two, capabilities=[two, three]), _card(three)]
    for card in cards:
        _register(hub, card)
    found = _result(hub.post("/a2a/discover", _rpc("a2a/discover", {"capabilities": [one, two, fresh("cap")]})))
    assert [each["agentId"] for each in found["agents"]] == sorted(card["agentId"] for card in cards[:2])
    for each in found["agents"]:
        assert set(each) == RECORD
        assert RFC_3339.fullmatch(each["registeredAt"])
        assert datetime.fromisoformat(each["registeredAt"]).tzinfo is not None
    assert found["agents"][1]["capabilities"] == [two, three]
    assert _result(hub.post("/a2a/discover", _rpc("a2a/discover", {"capabilities": [fresh("cap")]}))) == {"agents": []}


@pytest.mark.req("R-15")
@pytest.mark.parametrize("params", [{}, {"capabilities": []}, {"capabilities": None}, {"capabilities": "search"}])
def test_a_search_for_nothing_is_refused(hub: HubProcess, params: Any) -> None:
    assert "capabilities" in _error(hub.post("/a2a", _rpc("a2a/discover", params)), -32602)["message"]
    bare = hub.post("/a2a/discover", params)
    assert bare.status == 400
    assert "capabilities" in bare.json["error"]


@pytest.mark.req("R-07", "R-21", "R-22")
def test_agents_are_listed_and_shown(hub: HubProcess, agent: PlatformAgent) -> None:
    card = _card("research", error="of its own", endpoint="http://localhost:9001/deep/?x=1")
    _register(hub, card)
    other = join(hub, agent, skills=[skill("echo"), skill("shout")])
    listed = hub.get("/a2a/agents")
    assert (listed.status, set(listed.json)) == (200, {"agents"})
    records = {each["agentId"]: each for each in listed.json["agents"]}
    for agent_id in (card["agentId"], other["id"]):
        shown = hub.get(f"/a2a/agents/{agent_id}")
        assert shown.status == 200
        assert shown.json == records[agent_id]
        assert set(shown.json) == RECORD
    assert records[card["agentId"]]["endpoint"] == card["endpoint"]
    assert records[other["id"]]["capabilities"] == ["echo", "shout"]
    unknown = hub.get("/a2a/agents/nobody")
    assert (unknown.status, set(unknown.json)) == (404, {"error"})
    assert isinstance(unknown.json["error"], str)


@pytest.mark.req("R-07")
def test_a_list_of_many_agents_is_whole(hub: HubProcess) -> None:
    cards = [_card("crowd") for _ in range(105)]  # more than any page of another dialect's
    for card in cards:
        _register(hub, card)
    listed = {each["agentId"] for each in hub.get("/a2a/agents").json["agents"]}
    assert {card["agentId"] for card in cards} <= listed


@pytest.mark.req("R-08")
def test_agents_of_each_dialect_are_found_in_the_others_discovery(hub: HubProcess, agent: PlatformAgent) -> None:
    capability = fresh("cap")
    card = _card(capability)
    _register(hub, card)
    other = join(hub, agent, skills=[skill(capability)])
    both = {card["agentId"], other["id"]}
    platform = hub.get(f"/v1/a2a/discover?skill={capability}").json["agents"]
    assert {each["id"] for each in platform} == both
    assert {each["id"]: each["dialect"] for each in platform}[card["agentId"]] == "directory"
    found = hub.post("/a2a/discover", {"capabilities": [capability]}).json["agents"]
    assert {each["agentId"] for each in found} == both
    assert hub.get(f"/v1/a2a/agents/{card['agentId']}/card").json["skills"][0]["name"] == capability


# -- framed and bare


@pytest.mark.req("R-19", "R-21")
def test_a_request_is_answered_in_kind(hub: HubProcess) -> None:
    card = _card(fresh("cap"))
    _register(hub, card)
    search = {"capabilities": card["capabilities"]}
    bare = hub.post("/a2a/discover", search)
    assert (bare.status, set(bare.json)) == (200, {"agents"})
    assert _result(hub.post("/a2a/discover", _rpc("a2a/discover", search))) == bare.json
    for path, body in (("/a2a/register", {"agentId": "x"}), ("/a2a/discover", {}), ("/a2a/register", b"{not json")):
        refusal = hub.post(path, body)
        assert (refusal.status, set(refusal.json)) == (400, {"error"})
        assert isinstance(refusal.json["error"], str)
    assert hub.post("/a2a/register", {"agentId": "x"}).json == {"error": "Missing fields: name, capabilities, endpoint"}
    _error(hub.post("/a2a/register", _rpc("a2a/register", {"agentId": "x"})), -32602)


@pytest.mark.req("R-20")
def test_the_path_decides_though_the_method_says_register(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, {**stub.card, "capabilities": [capability := fresh("cap")]})
    found = _result(hub.post("/a2a/discover", _rpc("a2a/register", {"capabilities": [capability]})))
    assert [each["agentId"] for each in found["agents"]] == [stub.card["agentId"]]
    done = _result(hub.post("/a2a/task", _rpc("a2a/register", _task(capability))))
    assert done["status"] == "completed"
    # Elsewhere the shape of the params does.
    for path in ("/a2a", "/", f"/agents/{stub.card['agentId']}/", f"/agents/{stub.card['agentId']}/directory"):
        assert _result(hub.post(path, _rpc("a2a/register", {"capabilities": [capability]}))) == found
        assert _result(hub.post(path, _rpc("a2a/register", _task(capability))))["status"] == "completed"


@pytest.mark.req("R-05", "R-06")
@pytest.mark.parametrize("path", ["/a2a", "/a2a/task", "/agents/{agent}/directory"])
def test_what_is_no_request_is_refused_by_its_number(hub: HubProcess, stub: StubAgent, path: str) -> None:
    _register(hub, stub.card)
    url = path.format(agent=stub.card["agentId"])
    assert hub.post(url, b'{"jsonrpc": "2.0", "id":').json["id"] is None
    _error(hub.post(url, b'{"jsonrpc": "2.0", "id":'), -32700)
    _error(hub.post(url, b"\xff\xfe"), -32700)
    _error(hub.post(url, {"jsonrpc": "1.0", "id": "r-1", "method": "a2a/task"}), -32600)
    _error(hub.post(url, {"jsonrpc": "2.0", "id": "r-1"}), -32600)
    _error(hub.post(url, b"7"), -32600)
    for method in ("a2a/unknown", "a2a/streams", "a2a/event"):
        assert _error(hub.post(url, _rpc(method, _task("echo"), 7)), -32601)
    for params in ({}, {"taskId": "t"}, {"action": "echo"}, _task("echo", timeoutMs=0), [1]):
        _error(hub.post(url, _rpc("a2a/task", params)), -32602)
    assert stub.requests == []


@pytest.mark.req("R-20", "X-09")
def test_a_mount_of_its_own_knows_no_other_method(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    for method in ("message/send", "SendMessage", "tasks/get", "message.send"):
        _error(hub.post(f"/agents/{stub.card['agentId']}/directory", _rpc(method, {})), -32601)


@pytest.mark.req("R-06")
def test_a_batch_is_answered_by_as_many(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, {**stub.card, "capabilities": [capability := fresh("cap")]})
    silent = _rpc("a2a/task", _task(capability))
    del silent["id"]
    batch = [
        _rpc("a2a/discover", {"capabilities": [capability]}, 1),
        _rpc("a2a/task", _task(capability), "b"),
        silent,
        _rpc("a2a/task", {}, 3),
    ]
    reply = hub.post("/a2a", batch)
    assert reply.status == 200
    answers = {each["id"]: each for each in reply.json}
    assert set(answers) == {1, "b", 3}
    assert answers["b"]["result"]["status"] == "completed"
    assert answers[3]["error"]["code"] == -32602
    assert len(stub.requests) == 2
    alone = hub.post("/a2a", silent)
    assert (alone.status, alone.body) == (204, b"")


# -- tasks


@pytest.mark.req("R-03", "R-06", "R-17", "R-21")
@pytest.mark.parametrize("path", ["/agents/{agent}/", "/agents/{agent}", "/agents/{agent}/directory/"])
def test_a_task_is_carried_out_at_the_agents_endpoint(hub: HubProcess, agent: PlatformAgent, path: str) -> None:
    joined = join(hub, agent)
    params = _task("echo", {"query": "latest AI news", "n": 2**70})
    answer = _result(hub.post(path.format(agent=joined["id"]), _rpc("a2a/task", params)))
    same = {"taskId": params["taskId"], "status": "completed", "output": params["input"]}
    assert answer == {**same, "result": same}
    assert agent.requests[-1][2]["input"] == params["input"]
    assert agent.requests[-1][2]["skill"] == "echo"


@pytest.mark.req("R-03")
@pytest.mark.parametrize("said", [{"result": "just text"}, {"status": "completed"}, {"result": {"a": 1}}])
def test_an_output_is_always_an_object(hub: HubProcess, agent: PlatformAgent, said: dict[str, Any]) -> None:
    agent.respond = says(said)
    joined = join(hub, agent)
    output = _result(hub.post(f"/agents/{joined['id']}/", _rpc("a2a/task", _task("echo"))))["output"]
    assert output == {"just text": {"text": "just text"}}.get(str(said.get("result")), said.get("result") or {})


@pytest.mark.req("R-22", "R-24")
def test_the_endpoint_of_a_record_takes_tasks(hub: HubProcess, agent: PlatformAgent) -> None:
    joined = join(hub, agent)
    endpoint = hub.get(f"/a2a/agents/{joined['id']}").json["endpoint"]
    path = "/" + endpoint.split("/", 3)[3]
    assert path == f"/agents/{joined['id']}/"
    assert _result(hub.post(path, _rpc("a2a/task", _task("echo"))))["status"] == "completed"


@pytest.mark.req("R-03")
@pytest.mark.parametrize(
    "content",
    [
        Content(text="hello"),
        Content(data={"a": [1, None, {"b": 2**70}]}),
        Content(data=[1, 2]),
        Content(file=File(uri="http://files.test/y.png", name="y.png", media_type="image/png")),
    ],
    ids=["text", "object", "list", "link"],
)
def test_what_is_sent_comes_back_from_an_agent_that_repeats_it(
    hub: HubProcess, stub: StubAgent, content: Content
) -> None:
    _register(hub, stub.card)
    seen = DirectoryCaller(hub.url, hub.token or "").call(stub.card["agentId"], content)
    assert (seen.state, seen.content, seen.error) == ("completed", (content,), None)


@pytest.mark.req("R-06", "R-16")
@pytest.mark.parametrize("path", ["/", "/a2a", "/a2a/", "/a2a/task", "/a2a/task/"])
def test_at_the_hub_a_task_goes_to_an_agent_with_that_capability(hub: HubProcess, stub: StubAgent, path: str) -> None:
    capability = fresh("cap")
    _register(hub, {**stub.card, "capabilities": ["other", capability]})
    params = _task(capability, {"text": "hello"})
    answer = _result(hub.post(path, _rpc("a2a/task", params)))
    assert (answer["taskId"], answer["output"]) == (params["taskId"], {"text": "hello"})
    (request,) = stub.requests
    method, target, headers, body = request
    assert (method, target, body["method"]) == ("POST", "/", "a2a/task")
    assert body["id"] == body["params"]["taskId"] == headers["idempotency-key"]
    assert (body["params"]["action"], body["params"]["input"]) == (capability, {"text": "hello"})
    assert body["params"]["sender"]


@pytest.mark.req("R-16", "R-05")
def test_a_task_that_nobody_can_do_is_told_so(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    for path, params in (
        ("/a2a/task", _task(fresh("cap"))),
        ("/", _task(fresh("cap"))),
        (f"/agents/{stub.card['agentId']}/", _task(fresh("cap"))),
        ("/agents/nobody/directory", _task("echo")),
    ):
        error = _error(hub.post(path, _rpc("a2a/task", params)), -32001)
        assert (error["data"]["reason"], error["data"]["taskId"]) == ("no_agent", params["taskId"])
    assert stub.requests == []


@pytest.mark.req("R-04", "R-05", "R-23")
def test_a_failed_task_is_an_error_with_the_agents_words(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    url = f"/agents/{stub.card['agentId']}/"
    params = _task("echo", {"text": "fail"})
    error = _error(hub.post(url, _rpc("a2a/task", params)), -32001)
    assert error["message"] == error["data"]["message"] == FAILURE
    assert (error["data"]["reason"], error["data"]["taskId"]) == ("broken", params["taskId"])
    rejected = _error(hub.post(url, _rpc("a2a/task", _task("echo", {"text": "reject"}))), -32001)
    assert rejected["data"]["reason"] == "rejected"
    asking = _error(hub.post(url, _rpc("a2a/task", _task("echo", {"text": "ask"}))), -32001)
    assert asking["data"]["reason"] == "input_required"


@pytest.mark.req("R-05")
def test_an_agent_that_cannot_be_reached_is_told_as_unavailable(hub: HubProcess) -> None:
    with directory.agent(fresh("dir")) as gone:
        card = gone.card
    _register(hub, card)
    error = _error(hub.post(f"/agents/{card['agentId']}/", _rpc("a2a/task", _task("echo"))), -32001)
    assert error["data"]["reason"] == "unavailable"


@pytest.mark.req("R-04", "R-18")
def test_a_task_over_its_time_is_a_timeout(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    params = _task("echo", {"text": "slow"}, timeoutMs=300)
    error = _error(hub.post(f"/agents/{stub.card['agentId']}/", _rpc("a2a/task", params)), -32002)
    assert error["message"] == "Task timeout"
    assert (error["data"]["reason"], error["data"]["taskId"]) == ("timeout", params["taskId"])
    assert stub.cancelled.wait(10)


@pytest.mark.req("R-10")
def test_a_task_sent_twice_is_carried_out_once(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    url = f"/agents/{stub.card['agentId']}/"
    params = _task("echo", {"text": "hello"})
    first = _result(hub.post(url, _rpc("a2a/task", params)))
    assert _result(hub.post(url, _rpc("a2a/task", params, 2)), 2) == first
    # Another input under the same name gets the stored answer, too.
    assert _result(hub.post(url, _rpc("a2a/task", {**params, "input": {"text": "other"}}))) == first
    assert len(stub.requests) == 1
    failed = _task("echo", {"text": "fail"})
    errors = [_error(hub.post(url, _rpc("a2a/task", failed)), -32001) for _ in range(2)]
    assert errors[0] == errors[1]
    assert len(stub.requests) == 2


@pytest.mark.req("R-10")
def test_the_same_task_sent_at_once_by_many_is_carried_out_once(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    joined = join(hub, agent)
    params = _task("echo", {"text": "hello"})
    answers: list[Any] = []

    def send() -> None:
        answers.append(hub.post(f"/agents/{joined['id']}/", _rpc("a2a/task", params)).json)

    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert agent.arrived.wait(10)
    agent.release.set()
    for thread in threads:
        thread.join(10)
    assert len(answers) == 5
    assert all(each["result"]["output"] == {"text": "hello"} for each in answers)
    assert len(agent.requests) == 1


@pytest.mark.req("R-10")
def test_a_tasks_name_is_its_senders_and_its_targets(hub: HubProcess, stub: StubAgent, agent: PlatformAgent) -> None:
    _register(hub, stub.card)
    joined = join(hub, agent)
    params = _task("echo", {"text": "hello"})
    first, second = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    for token in (first, second):
        for agent_id in (stub.card["agentId"], joined["id"]):
            _result(hub.post(f"/agents/{agent_id}/", _rpc("a2a/task", params), token=token))
    assert len(stub.requests) == 2
    assert len(agent.requests) == 2


@pytest.mark.req("R-11", "R-04")
@pytest.mark.parametrize("path", ["/a2a", "/agents/{agent}/", "/a2a/task"])
def test_a_running_task_is_cancelled_by_its_name(hub: HubProcess, stub: StubAgent, path: str) -> None:
    _register(hub, stub.card)
    params = _task("echo", {"text": "slow"})
    waiting: list[Reply] = []
    url = f"/agents/{stub.card['agentId']}/"
    thread = threading.Thread(target=lambda: waiting.append(hub.post(url, _rpc("a2a/task", params))))
    thread.start()
    assert stub.arrived.wait(10)
    cancel = _rpc("a2a/cancel", {"taskId": params["taskId"]})
    where = path.format(agent=stub.card["agentId"])
    assert _result(hub.post(where, cancel)) == {"taskId": params["taskId"], "status": "cancelled"}
    thread.join(10)
    assert stub.cancelled.is_set()
    # The one who waits gets a result, not an error.
    answer = _result(waiting[0])
    assert (answer["status"], answer["output"]) == ("cancelled", {})
    late = _error(hub.post(where, cancel), -32001)
    assert (late["data"]["reason"], late["data"]["taskId"]) == ("finished", params["taskId"])


@pytest.mark.req("R-11", "X-15")
def test_only_ones_own_tasks_can_be_cancelled(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    params = _task("echo", {"text": "hello"})
    _result(hub.post(f"/agents/{stub.card['agentId']}/", _rpc("a2a/task", params)))
    for token, task_id in ((hub.new_key("a2a:call"), params["taskId"]), ("", fresh("task"))):
        error = _error(hub.post("/a2a", _rpc("a2a/cancel", {"taskId": task_id}), token=token), -32001)
        assert error["data"]["reason"] == "task_not_found"


@pytest.mark.req("R-06")
def test_without_a_credential_everything_is_refused(hub: HubProcess, stub: StubAgent) -> None:
    _register(hub, stub.card)
    nobody = {"Authorization": ""}
    for path, body in (
        ("/a2a/task", _rpc("a2a/task", _task("echo"))),
        (f"/agents/{stub.card['agentId']}/", _rpc("a2a/task", _task("echo"))),
        ("/a2a", _rpc("a2a/discover", {"capabilities": ["echo"]})),
        ("/a2a/register", _rpc("a2a/register", _card("x"))),
    ):
        _error(hub.post(path, body, nobody), -32000, 401)
    for reply in (hub.post("/a2a/register", _card("x"), nobody), hub.get("/a2a/agents", nobody)):
        assert (reply.status, set(reply.json)) == (401, {"error"})
    assert stub.requests == []
