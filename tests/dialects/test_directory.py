"""The directory's requests, read: what is meant, and whether it came framed or bare."""

import json
from typing import Any

import pytest

from dragoman.dialects.directory.inbound import read
from dragoman.model.agent import Endpoint
from dragoman.model.answers import AgentPage, Registered
from dragoman.model.content import Data, Link, Message, Role, Text
from dragoman.model.errors import (
    AgentNotFound,
)
from dragoman.model.fit import Feature
from dragoman.model.operations import (
    CancelTask,
    Discover,
    GetCard,
    Match,
    RegisterAgent,
    SendTask,
    Wait,
)
from dragoman.model.states import TaskState
from tests.dialects.directory_samples import (
    CARD,
    TASK,
    agent_of,
    exchange_of,
    refusal_of,
    request_of,
    rpc,
    task_of,
)

# -- what is asked


def test_a_task_is_read_with_everything_it_says() -> None:
    asked = exchange_of(
        rpc("a2a/task", {**TASK, "timeoutMs": 1500}), agent="research-agent", x_request_id="req-1"
    ).operation
    assert asked == SendTask(
        message=Message(id="msg_1", role=Role.USER, parts=(Data(value={"q": 1}),)),
        agent="research-agent",
        skill="search",
        alias="task-123",
        wait=Wait.END,
        interactive=False,
        timeout_s=1.5,
        sender="my-agent",
        idempotency_key="my-agent\nagent\nresearch-agent\ntask-123",
        key_scope="directory",
        key_decides=True,
        request_id="req-1",
    )


def test_a_task_needs_no_sender_input_or_time() -> None:
    asked = exchange_of(rpc("a2a/task", {"taskId": "t", "action": "search", "sender": None, "input": None})).operation
    assert isinstance(asked, SendTask)
    assert asked.message.parts == (Data(value={}),)
    assert (asked.agent, asked.sender, asked.timeout_s) == (None, None, 30.0)


def test_the_key_of_a_task_holds_its_sender_its_target_and_its_name() -> None:
    def key(agent: str | None = None, **changes: str) -> str | None:
        asked = exchange_of(rpc("a2a/task", {**TASK, **changes}), agent=agent).operation
        assert isinstance(asked, SendTask)
        return asked.idempotency_key

    same = exchange_of(rpc("a2a/task", {**TASK, "input": {"another": "input"}})).operation
    assert isinstance(same, SendTask)
    assert same.idempotency_key == key()
    assert len({key(), key(sender="b"), key(action="b"), key(taskId="b"), key("search"), key("b")}) == 6
    assert key("b", action="c") == key("b", action="d")  # the URL names the target, not the action


def test_a_key_in_the_header_is_a_key_like_any_other() -> None:
    asked = exchange_of(rpc("a2a/task", TASK), idempotency_key="k-1").operation
    assert isinstance(asked, SendTask)
    assert (asked.idempotency_key, asked.key_scope, asked.key_decides) == ("k-1", "key", False)


def test_files_in_an_input_become_parts() -> None:
    files = {"parts": [{"kind": "text", "text": "see"}, {"kind": "file", "file": {"uri": "http://x/y", "name": "y"}}]}
    asked = exchange_of(rpc("a2a/task", {**TASK, "input": files})).operation
    assert isinstance(asked, SendTask)
    assert asked.message.parts == (Text(text="see"), Link(url="http://x/y", filename="y"))


def test_numbers_keep_every_digit() -> None:
    body = b'{"jsonrpc":"2.0","id":"1","method":"a2a/task","params":{"taskId":"t","action":"a","input":{"n":%d}}}'
    asked = exchange_of(body % 2**70).operation
    assert isinstance(asked, SendTask)
    assert asked.message.parts == (Data(value={"n": 2**70}),)


def test_a_cancel_names_the_callers_own_task() -> None:
    asked = exchange_of(rpc("a2a/cancel", {"taskId": "task-123", "reason": "no more"}), agent="x").operation
    assert asked == CancelTask(task_id="task-123", reason="no more", agent="x", alias=True)


def test_a_search_takes_any_of_the_capabilities() -> None:
    asked = exchange_of(rpc("a2a/discover", {"capabilities": ["search", "code", "search"]})).operation
    assert asked == Discover(skills=("search", "code"), match=Match.ANY, limit=100)


def test_the_lists_of_agents_are_read() -> None:
    assert read(request_of(b"", "agents")).operation == Discover(limit=1000)
    assert read(request_of(b"", "agent", "research-agent")).operation == GetCard(agent="research-agent")


@pytest.mark.parametrize("route", ["rpc", "register"])
def test_a_registration_is_read_framed(route: str) -> None:
    exchange = exchange_of(rpc("a2a/register", CARD), route)
    assert isinstance(exchange.operation, RegisterAgent)
    card = exchange.operation.card
    assert card is not None
    assert (card.id, card.name, [skill.id for skill in card.skills]) == (
        "research-agent",
        "Research Agent",
        ["research", "search"],
    )
    assert card.endpoints == (
        Endpoint(dialect="directory", url="http://localhost:9001", features=frozenset({Feature.ANSWERS})),
    )
    said = exchange.reply(Registered(agent=agent_of(CARD), created=True, token="secret", signing_secret="secret"))
    assert json.loads(said.body) == {
        "jsonrpc": "2.0",
        "id": "r-1",
        "result": {"status": "registered", "agentId": "research-agent"},
    }


@pytest.mark.parametrize(
    ("route", "method", "params", "kind"),
    [
        ("register", "a2a/register", CARD, RegisterAgent),
        ("discover", "a2a/register", {"capabilities": ["search"]}, Discover),
        ("task", "a2a/register", TASK, SendTask),
        ("register", "a2a/task", CARD, RegisterAgent),
        ("task", "a2a/discover", TASK, SendTask),
        ("task", "a2a/cancel", {"taskId": "t"}, CancelTask),
        ("rpc", "a2a/register", {"capabilities": ["search"]}, Discover),
        ("rpc", "a2a/register", TASK, SendTask),
        ("rpc", "a2a/register", CARD, RegisterAgent),
        ("rpc", "a2a/register", {**CARD, "taskId": "t"}, RegisterAgent),
    ],
)
def test_the_path_decides_what_is_meant_and_elsewhere_the_shape(
    route: str, method: str, params: dict[str, Any], kind: type
) -> None:
    assert type(exchange_of(rpc(method, params), route).operation) is kind


def test_a_registration_that_lacks_everything_is_still_one() -> None:
    refused = refusal_of(exchange_of(rpc("a2a/register", {})))
    assert refused["error"]["data"]["missing"] == ["agentId", "name", "capabilities", "endpoint"]


@pytest.mark.parametrize("method", ["a2a/", "a2a/unknown", "a2a/streams", "tasks/get", ""])
@pytest.mark.parametrize("route", ["rpc", "task", "register"])
def test_an_unknown_method_is_not_found(method: str, route: str) -> None:
    refused = refusal_of(exchange_of(rpc(method, TASK), route))
    assert (refused["http"], refused["id"], refused["error"]["code"]) == (200, "r-1", -32601)


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("a2a/task", {"action": "search"}, "taskId"),
        ("a2a/task", {"taskId": "t"}, "action"),
        ("a2a/task", {**TASK, "action": ""}, "action"),
        ("a2a/task", {**TASK, "taskId": 7}, "taskId"),
        ("a2a/task", {**TASK, "taskId": "x" * 257}, "taskId"),
        ("a2a/task", {**TASK, "input": "text"}, "input"),
        ("a2a/task", {**TASK, "sender": 5}, "sender"),
        ("a2a/task", {**TASK, "timeoutMs": 0}, "timeoutMs"),
        ("a2a/task", {**TASK, "timeoutMs": 3_600_001}, "timeoutMs"),
        ("a2a/task", {**TASK, "timeoutMs": "30"}, "timeoutMs"),
        ("a2a/task", {**TASK, "steps": [{"capability": "x"}]}, "steps[0].action"),
        ("a2a/task", ["task-123"], "params"),
        ("a2a/task", None, "params"),
        ("a2a/cancel", {}, "taskId"),
        ("a2a/discover", {}, "capabilities"),
        ("a2a/discover", {"capabilities": []}, "capabilities"),
        ("a2a/discover", {"capabilities": "search"}, "capabilities"),
        ("a2a/discover", {"capabilities": ["search", 5]}, "capabilities[1]"),
        ("a2a/register", {**CARD, "agentId": "no spaces"}, "agentId"),
        ("a2a/register", {**CARD, "agentId": 5}, "agentId"),
        ("a2a/register", {**CARD, "name": ""}, "name"),
        ("a2a/register", {**CARD, "name": None}, "name"),
        ("a2a/register", {**CARD, "capabilities": ["\u200bsearch"]}, "capabilities[0]"),
        ("a2a/register", {**CARD, "capabilities": "search"}, "capabilities"),
        ("a2a/register", {**CARD, "capabilities": ["x"] * 101}, "capabilities"),
        ("a2a/register", {**CARD, "endpoint": 7}, "endpoint"),
    ],
)
def test_wrong_params_are_refused_by_the_fields_name(method: str, params: object, path: str) -> None:
    refused = refusal_of(exchange_of(rpc(method, params)))
    assert (refused["http"], refused["error"]["code"]) == (200, -32602)
    assert [each["path"] for each in refused["error"]["data"]["errors"]] == [path]
    assert path in refused["error"]["message"]


@pytest.mark.parametrize("request_id", ["r-1", 7, None])
def test_an_id_comes_back_as_it_was_sent(request_id: object) -> None:
    assert refusal_of(exchange_of(rpc("a2a/nothing", {}, request_id)))["id"] == request_id
    said = exchange_of(rpc("a2a/discover", {"capabilities": ["x"]}, request_id)).reply(AgentPage(agents=(), total=0))
    assert json.loads(said.body) == {"jsonrpc": "2.0", "id": request_id, "result": {"agents": []}}


def test_a_request_without_id_is_carried_out_and_not_answered() -> None:
    exchange = exchange_of({"jsonrpc": "2.0", "method": "a2a/task", "params": TASK})
    assert isinstance(exchange.operation, SendTask)
    for reply in (
        exchange.reply(task_of()),
        exchange.reply(task_of(TaskState.FAILED)),
        exchange.refuse(AgentNotFound()),
    ):
        assert (reply.status, reply.body) == (204, b"")


# -- framed and bare


@pytest.mark.parametrize(
    ("route", "body", "kind"),
    [("register", CARD, RegisterAgent), ("discover", {"capabilities": ["search"]}, Discover)],
)
def test_a_bare_body_gets_a_bare_answer(route: str, body: dict[str, Any], kind: type) -> None:
    exchange = exchange_of(body, route)
    assert type(exchange.operation) is kind
    shown = exchange.reply(AgentPage(agents=(agent_of(CARD),), total=1))
    assert (shown.status, set(json.loads(shown.body))) == (200, {"agents"})


@pytest.mark.parametrize(
    ("route", "body", "text"),
    [
        ("register", {"agentId": "x"}, "Missing fields: name, capabilities, endpoint"),
        ("register", {}, "Missing fields: agentId, name, capabilities, endpoint"),
        ("register", {**CARD, "name": 5}, "name: Expected str, got int"),
        ("discover", {}, "Missing fields: capabilities"),
        ("discover", {"capabilities": []}, "capabilities: Expected array of length >= 1"),
        ("discover", [], "A JSON-RPC request is one object."),
        ("register", b"{", "The body is not JSON."),
        ("register", b"", "The body is not JSON."),
    ],
)
def test_a_bare_body_gets_its_refusal_as_text(route: str, body: object, text: str) -> None:
    refused = refusal_of(exchange_of(body, route))
    assert set(refused) == {"http", "error"}
    assert (refused["http"], refused["error"]) == (400, text)


@pytest.mark.parametrize("route", ["register", "discover", "task", "rpc"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc": "2.0", ', -32700),
        (b'{"jsonrpc": "1.0", "id": "r-1", "method": "a2a/task"}', -32600),
        (b'{"jsonrpc": "2.0", "id": "r-1"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "a2a/task"}', -32600),
        (b'[{"jsonrpc": "2.0"}]', -32600),
        (b'{"id": "r-1", "method": "a2a/register", "params": {}}', -32600),
    ],
)
def test_a_broken_frame_is_refused_as_a_frame(route: str, body: bytes, code: int) -> None:
    refused = refusal_of(exchange_of(body, route))
    assert (refused["http"], refused["jsonrpc"], refused["error"]["code"]) == (200, "2.0", code)
    assert refused["id"] in ("r-1", None)


@pytest.mark.parametrize("route", ["task", "rpc"])
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"7", b'{"taskId": "t", "action": "a"}'])
def test_tasks_come_framed(route: str, body: bytes) -> None:
    refused = refusal_of(exchange_of(body, route))
    assert refused["id"] is None
    assert refused["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize(("route", "body"), [("rpc", rpc("a2a/task", TASK)), ("register", CARD)])
def test_another_media_type_is_refused_in_kind(route: str, body: dict[str, Any]) -> None:
    refused = refusal_of(exchange_of(body, route, content_type="text/plain"))
    assert refused["http"] == 415
    assert ("jsonrpc" in refused) is (route == "rpc")
