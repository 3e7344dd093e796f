"""Calling agents of the directory: what they are sent, and what their answers say, in every form that is out there."""

import json
from typing import Any, Final

import msgspec
import pytest

from dragoman.dialects.dialect import Verb
from dragoman.dialects.directory import DIALECT
from dragoman.dialects.directory.inbound import read
from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    BadAgentReply,
)
from dragoman.model.http import HttpReply
from dragoman.model.lifecycle import fold, output_of
from dragoman.model.operations import (
    Discover,
    SendTask,
)
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.dialects.directory_samples import (
    AT,
    HUB,
    QUESTION,
    TASK,
    answer_of,
    end_of,
    example,
    exchange_of,
    heard_of,
    outgoing_of,
    rpc,
    task_of,
)

# -- calling an agent


def test_a_call_is_posted_to_the_endpoint_as_it_was_registered() -> None:
    request = DIALECT.ask(outgoing_of(Verb.SEND, (Data(value={"q": 1}),), headers={b"traceparent": b"t"}))
    assert request is not None
    assert (request.method, request.url) == ("POST", "http://agent.test/a2a?x=1")
    assert request.headers == {
        b"content-type": b"application/json",
        b"accept": b"application/json",
        b"traceparent": b"t",
        b"idempotency-key": b"dir-1",
    }
    assert json.loads(request.body) == {
        "jsonrpc": "2.0",
        "id": "dir-1",
        "method": "a2a/task",
        "params": {
            "taskId": "dir-1",
            "action": "search",
            "sender": "agt_caller",
            "input": {"q": 1},
            "timeoutMs": 29950,
        },
    }


def test_a_call_gives_no_more_time_than_another_hub_would_take() -> None:
    request = DIALECT.ask(outgoing_of(Verb.SEND, timeout_ms=86_400_000))
    assert request is not None
    assert json.loads(request.body)["params"]["timeoutMs"] == 3_600_000


def test_a_cancel_names_the_task_and_says_why() -> None:
    request = DIALECT.ask(outgoing_of(Verb.CANCEL, reason="timeout"))
    assert request is not None
    body = json.loads(request.body)
    assert (body["method"], body["params"]) == ("a2a/cancel", {"taskId": "dir-1", "reason": "timeout"})
    assert b"idempotency-key" not in request.headers


def test_a_task_cannot_be_asked_after() -> None:
    assert DIALECT.ask(outgoing_of(Verb.GET)) is None


# -- what an agent's answer says

DONE: Final[dict[str, Any]] = {"taskId": "task-1", "status": "completed", "output": {"a": 1}}


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ({"jsonrpc": "2.0", "id": "1", "result": DONE}, (Data(value={"a": 1}),)),
        ({"jsonrpc": "2.0", "id": "1", "result": DONE, "error": None}, (Data(value={"a": 1}),)),
        ({"jsonrpc": "2.0", "id": "unknown", "result": {**DONE, "result": DONE}}, (Data(value={"a": 1}),)),
        ({"result": {"result": DONE}}, (Data(value={"a": 1}),)),  # as the TypeScript client would have it
        (DONE, (Data(value={"a": 1}),)),  # without a frame
        ({"result": {**DONE, "status": "COMPLETED"}}, (Data(value={"a": 1}),)),
        ({"result": {"output": {"a": 1}}}, (Data(value={"a": 1}),)),
        ({"result": {"a": 1}}, (Data(value={"a": 1}),)),
        ({"result": {**DONE, "output": "words"}}, (Text(text="words"),)),
        ({"result": "words"}, (Text(text="words"),)),
        ({"result": {**DONE, "output": [1, 2]}}, (Data(value=[1, 2]),)),
        ({"result": {**DONE, "output": None}}, ()),
        ({"result": {**DONE, "error": None}}, (Data(value={"a": 1}),)),
        ({"result": {**DONE, "output": {"error": "of its own"}}}, (Data(value={"error": "of its own"}),)),
        (
            {"result": {**DONE, "output": {"parts": [{"kind": "file", "file": {"bytes": "AP9i"}}]}}},
            (Blob(raw=b"\x00\xffb"),),
        ),
    ],
)
def test_an_answer_is_found_wherever_it_stands(body: object, parts: tuple[Part, ...]) -> None:
    assert answer_of(heard_of(body)) == parts


@pytest.mark.parametrize(
    "body",
    [
        example("task-error-response"),
        {"error": {"code": -32001, "message": "Task failed", "data": {"reason": "timeout"}}},
        {"error": {"code": -32002, "message": "Task timeout"}},
        {"result": {"taskId": "t", "status": "timeout", "output": {}}},
        {"taskId": "t", "status": "timeout"},
        {"result": {"error": {"code": -32002, "message": "Task timeout"}}},
        {"code": -32002, "message": "Task timeout"},
    ],
)
def test_a_timeout_is_heard_in_every_form(body: object) -> None:
    end = end_of(heard_of(body))
    assert end.state is TaskState.FAILED
    assert end.failure is not None
    assert end.failure.code == "AGENT_TIMEOUT"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"error": {"code": -32001, "message": "it broke"}}, 200, "it broke"),
        ({"error": {"code": -32001, "message": "Task failed", "data": {"message": "it broke"}}}, 200, "it broke"),
        ({"error": {"code": -32601, "message": "Method not found"}}, 200, "Method not found"),
        ({"error": "it broke"}, 200, "it broke"),
        ({"error": "Unknown endpoint"}, 404, "Unknown endpoint"),
        ({"error": {"code": -32603}}, 500, "The agent answered HTTP 500."),
        ({"result": {"error": {"code": -32001, "message": "No handler registered"}}}, 200, "No handler registered"),
        ({"result": {**DONE, "error": "it broke"}}, 200, "it broke"),
        ({"code": -32700, "message": "Parse error"}, 200, "Parse error"),
        ({"result": {"taskId": "t", "status": "failed"}}, 200, "The agent failed."),
        ({"result": {"taskId": "t", "status": "failed", "output": {"error": "it broke"}}}, 200, "it broke"),
        ({"result": {"taskId": "t", "status": "failed", "error": {"message": "it broke"}}}, 200, "it broke"),
        ({"result": {"taskId": "t", "status": "failed", "message": "it broke"}}, 200, "it broke"),
        ({"result": {"taskId": "t", "status": "failed", "output": "it broke"}}, 200, "it broke"),
        ({"taskId": "t", "status": "failed", "output": {}}, 200, "The agent failed."),
    ],
)
def test_a_failure_is_heard_in_every_form(body: object, status: int, words: str) -> None:
    end = end_of(heard_of(body, status))
    assert end.state is TaskState.FAILED
    assert end.failure is not None
    assert (end.failure.code, end.failure.message) == ("AGENT_ERROR", words)


def test_what_an_agent_says_of_its_failure_is_kept() -> None:
    end = end_of(heard_of({"error": {"code": -32001, "message": "x", "data": {"reason": "quota"}}}))
    assert end.failure is not None
    assert end.failure.details == {"reason": "quota", "agent_code": -32001}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"error": {"code": -32602, "message": "no"}}, 200, "VALIDATION_ERROR"),
        (
            {"error": {"code": -32602, "message": "no", "data": {"reason": "content_not_supported"}}},
            200,
            "CONTENT_NOT_SUPPORTED",
        ),
        ({"error": "slow down"}, 429, "RATE_LIMITED"),
        (b"<html>", 503, "AGENT_UNAVAILABLE"),
    ],
)
def test_what_is_not_the_agents_fault_keeps_its_meaning(body: object, status: int, code: str) -> None:
    end = end_of(heard_of(body, status, retry_after="7"))
    assert end.failure is not None
    assert end.failure.code == code
    if status != 200:
        assert end.failure.details == {"retry_after": 7, "agent_status": status}


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_the_hubs_own_credential_is_told_as_that(status: int) -> None:
    end = end_of(heard_of({"error": {"code": -32000, "message": "who are you"}}, status))
    assert end.failure is not None
    assert end.failure.details == {"agent_code": -32000, "agent_status": status, "reason": "agent_refused_hub"}


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": -32001, "message": "not this", "data": {"reason": "rejected"}}},
        {"result": {"taskId": "t", "status": "rejected", "message": "not this"}},
    ],
)
def test_a_rejection_is_heard_as_one(body: object) -> None:
    end = end_of(heard_of(body))
    assert end.state is TaskState.REJECTED
    assert end.message is not None
    assert end.message.parts == (Text(text="not this"),)


@pytest.mark.parametrize("word", ["cancelled", "canceled", "CANCELLED"])
def test_a_cancelled_task_is_heard_as_one(word: str) -> None:
    assert end_of(heard_of({"result": {"taskId": "t", "status": word, "output": {}}})).state is TaskState.CANCELED


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"<html>", 200),
        (b"<html>", 500),
        (b"[]", 200),
        ({}, 200),
        ({"jsonrpc": "2.0", "id": "1"}, 200),
        ({"result": None, "error": None}, 200),
        ({"detail": "Not Found"}, 404),
        ({"status": "ok"}, 500),
        ({"result": {"taskId": "t", "status": "working"}}, 200),
    ],
)
def test_what_cannot_be_used_is_a_bad_reply(body: object, status: int) -> None:
    with pytest.raises(BadAgentReply) as bad:
        heard_of(body, status)
    assert bad.value.details["agent_status"] == status


# -- both halves together


@pytest.mark.parametrize(
    "parts",
    [
        (Data(value={"a": [1, 2**70, None]}),),
        (Data(value={}),),
        (Link(url="http://x/y", filename="y.png", media_type="image/png", metadata={"m": 1}),),
        (Text(text="see"), Blob(raw=b"\x00\xff", filename="b")),
    ],
)
def test_what_one_hub_sends_another_reads(parts: tuple[Part, ...]) -> None:
    request = DIALECT.ask(outgoing_of(Verb.SEND, parts))
    assert request is not None
    arrived = msgspec.structs.replace(request, id="2", at=AT, route="rpc", hub=HUB)
    asked = read(arrived).operation
    assert isinstance(asked, SendTask)
    assert asked.message.parts == parts
    assert (asked.skill, asked.alias, asked.sender, asked.timeout_s) == ("search", "dir-1", "agt_caller", 29.95)


@pytest.mark.parametrize(
    ("task", "state"),
    [
        (task_of(parts=(Data(value={"a": 1}),)), TaskState.COMPLETED),
        (task_of(parts=(Text(text="see"), Link(url="http://x/y"))), TaskState.COMPLETED),
        (task_of(TaskState.CANCELED), TaskState.CANCELED),
        (task_of(TaskState.REJECTED, status_message=QUESTION), TaskState.REJECTED),
        (task_of(TaskState.FAILED, failure=AgentError("it broke", reason="own").failure()), TaskState.FAILED),
        (task_of(TaskState.FAILED, failure=AgentTimeout("late").failure()), TaskState.FAILED),
        (task_of(TaskState.INPUT_REQUIRED, status_message=QUESTION), TaskState.FAILED),
    ],
)
def test_what_one_hub_answers_another_hears(task: Task, state: TaskState) -> None:
    reply = exchange_of(rpc("a2a/task", TASK)).reply(task)
    heard = DIALECT.hear(outgoing_of(Verb.SEND), reply, AT)
    again = fold(task_of(TaskState.WORKING), heard.events)
    assert again.state is state
    if state is TaskState.COMPLETED:
        assert output_of(again) == output_of(task)
    if task.failure is not None:
        assert again.failure is not None
        assert (again.failure.code, again.failure.message) == (task.failure.code, task.failure.message)


@pytest.mark.parametrize("name", ["task-response", "task-response-emitted", "transport-task-response"])
def test_the_examples_answers_are_understood(name: str) -> None:
    assert answer_of(heard_of(example(name))) == (Data(value={"results": ["AI news item"]}),)
    assert end_of(heard_of(example("task-cancelled-response"))).state is TaskState.CANCELED


@pytest.mark.parametrize("name", ["error-invalid-params", "error-method-not-found"])
def test_the_examples_errors_are_understood(name: str) -> None:
    said = example(name)
    end = end_of(heard_of(said))
    assert end.failure is not None
    assert end.failure.message == said["error"]["message"]


# -- is it one of ours?


def test_a_probe_looks_for_what_nobody_has() -> None:
    assert DIALECT.probe is not None
    request = DIALECT.probe("http://agent.test/")
    assert json.loads(request.body)["method"] == "a2a/discover"
    assert isinstance(read(msgspec.structs.replace(request, route="rpc", id="1")).operation, Discover)


@pytest.mark.parametrize(
    ("status", "body", "spoken"),
    [
        (200, {"jsonrpc": "2.0", "id": "p", "result": {"agents": []}}, True),
        (200, {"jsonrpc": "2.0", "id": "p", "error": {"code": -32602, "message": "x"}}, True),
        (401, {}, True),
        (200, {"jsonrpc": "2.0", "id": "p", "error": {"code": -32601, "message": "Method not found"}}, False),
        (200, {"jsonrpc": "2.0", "id": "p", "result": {"tasks": []}}, False),
        (404, {"error": "Unknown endpoint"}, False),
        (500, b"Internal Server Error", False),
    ],
)
def test_only_a_list_of_agents_shows_that_the_dialect_is_spoken(status: int, body: object, spoken: bool) -> None:
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert DIALECT.answers_probe is not None
    assert DIALECT.answers_probe(HttpReply(status=status, body=said)) is spoken
