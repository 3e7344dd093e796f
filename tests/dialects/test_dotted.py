"""Dotted: its requests, answers, errors and cards, and what its agents say."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dragoman.dialects.dialect import Level, Place, Verb, wire_error
from dragoman.dialects.dotted import DIALECT
from dragoman.dialects.hints import HINTS
from dragoman.model import errors
from dragoman.model.agent import Agent, AgentCard, Endpoint, Provider, Skill
from dragoman.model.answers import Card
from dragoman.model.content import Artifact, Data, Message, Role, Text
from dragoman.model.errors import BadAgentReply, BadParams
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.lifecycle import fold, output_of
from dragoman.model.operations import CancelTask, GetCard, GetTask, SendTask
from dragoman.model.states import TaskState
from tests.dialects.goldens import AT, HUB, task_of
from tests.dialects.kind_world import (
    TEXT,
    answer,
    asked,
    failure,
    heard,
    outgoing,
    posted,
    read,
    refusal,
    refused_as,
    result,
    rpc_body,
    with_asked,
)

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "dotted"
BASE: Final = f"{HUB}/agents/agt_x/"


def _example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


# -- coming in


@pytest.mark.req("D-23")
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*-request.json")))
def test_every_request_of_the_document_is_understood(name: str) -> None:
    body = _example(name)
    operation = read(DIALECT, posted(json.dumps(body).encode())).operation
    assert isinstance(operation, SendTask | GetTask | CancelTask)
    if isinstance(operation, SendTask):
        assert operation.message.parts == (Text(text=body["params"]["message"]["parts"][0]["text"]),)
    else:
        assert operation.task_id == "task-abc123"


@pytest.mark.req("D-04")
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("part-*.json")))
def test_every_part_of_the_document_comes_back_as_it_went(name: str) -> None:
    part = _example(name)
    body = rpc_body("message.send", {"message": {"role": "user", "parts": [part]}})
    operation = read(DIALECT, posted(body)).operation
    assert isinstance(operation, SendTask)
    task = with_asked(task_of({}), message=operation.message)
    assert answer(DIALECT, "task.get", {"taskId": "x"}, task)["messages"][0]["parts"] == [part]


@pytest.mark.req("D-05", "D-20", "D-23")
def test_a_task_is_named_by_either_name() -> None:
    for method in ("task.get", "tasks/get"):
        for name in ("taskId", "id"):
            get = read(DIALECT, posted(rpc_body(method, {name: "task-1"})))
            assert get.operation == GetTask(task_id="task-1", agent="agt_x")
    cancel = read(DIALECT, posted(rpc_body("task.cancel", {"taskId": "task-1", "id": "other", "reason": "late"})))
    assert cancel.operation == CancelTask(task_id="task-1", reason="late", agent="agt_x")


@pytest.mark.parametrize("params", [None, {}, {"taskId": ""}, {"taskId": 1}, {"reason": "x"}, []])
@pytest.mark.parametrize("method", ["task.get", "task.cancel", "tasks/get", "tasks/cancel"])
def test_a_task_without_a_name_is_refused(method: str, params: object) -> None:
    status, body = refusal(DIALECT, posted(rpc_body(method, params)))
    assert (status, body["error"]["code"]) == (200, -32602)


@pytest.mark.req("D-11")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"message.send"}', -32600),
        (rpc_body("message.sent"), -32601),
        (rpc_body("SendMessage"), -32601),
        (rpc_body("tasks/send"), -32601),
        (rpc_body("message.send"), -32602),
    ],
)
def test_what_is_no_request_is_refused_with_the_codes_of_json_rpc(body: bytes, code: int) -> None:
    status, said = refusal(DIALECT, posted(body))
    assert (status, said["error"]["code"]) == (200, code)
    assert "result" not in said
    if code == -32700:
        assert said["id"] is None


def test_only_json_is_taken() -> None:
    status, body = refusal(DIALECT, posted(rpc_body("message.send"), content_type="text/plain"))
    assert (status, body["error"]["code"]) == (415, -32600)


# -- the answers


@pytest.mark.req("D-03")
def test_a_task_has_every_member_of_the_document() -> None:
    task = task_of(
        {
            "id": "task-1",
            "state": "completed",
            "updated_at": "2026-01-12T10:00:02.500Z",
            "artifacts": [{"id": "a", "name": "n", "description": "d", "parts": [{"type": "text", "text": "x"}]}],
        }
    )
    turn = {
        "kind": "message",
        "messageId": "msg_1",
        "role": "user",
        "parts": [{"kind": "data", "data": {"q": 1}}],
        "contextId": "conv_1",
        "taskId": "task-1",
    }
    shown = answer(DIALECT, "message.send", {"message": {"role": "user", "parts": [TEXT]}}, task)
    assert shown == {
        "id": "task-1",
        "kind": "task",
        "contextId": "conv_1",
        "status": {"state": "completed", "timestamp": "2026-01-12T10:00:02.500Z"},
        "artifacts": [{"artifactId": "a", "name": "n", "description": "d", "parts": [{"kind": "text", "text": "x"}]}],
        "messages": [turn],
        "history": [turn],
        "createdAt": "2026-01-12T10:00:00.000Z",
        "updatedAt": "2026-01-12T10:00:02.500Z",
    }
    assert _example("message-send-response")["result"].keys() <= shown.keys()


@pytest.mark.req("D-18")
def test_an_answer_that_is_only_words_is_an_artifact() -> None:
    said = Message(id="m", role=Role.AGENT, parts=(Text(text="the answer"),))
    for changes in ({"status_message": said}, {"messages": (said,)}, {"messages": (said,), "direct": True}):
        task = msgspec.structs.replace(task_of({"state": "completed"}), **changes)
        shown = answer(DIALECT, "message.send", {"message": {"role": "user", "parts": [TEXT]}}, task)
        assert shown["kind"] == "task"
        assert shown["artifacts"] == [
            {"artifactId": "result", "name": "result", "parts": [{"kind": "text", "text": "the answer"}]}
        ]


@pytest.mark.req("D-06")
@pytest.mark.parametrize("state", list(TaskState))
def test_every_state_is_a_word_of_the_document(state: TaskState) -> None:
    words = {"submitted", "working", "input-required", "auth-required", "completed", "canceled", "rejected", "failed"}
    shown = answer(DIALECT, "task.get", {"taskId": "x"}, task_of({"state": state.value}))
    assert shown["status"]["state"] in words
    assert shown["status"]["state"] == state.value


def test_a_question_is_a_text_and_what_is_more_than_text_is_a_turn() -> None:
    words = Message(id="q", role=Role.AGENT, parts=(Text(text="Which?"),), at=AT)
    more = msgspec.structs.replace(words, parts=(Text(text="Which?"), Data(value={"choices": [1, 2]})))
    asking = task_of({"state": "input-required"})
    plain = answer(DIALECT, "task.get", {"id": "x"}, msgspec.structs.replace(asking, status_message=words))
    assert plain["status"]["message"] == "Which?"
    assert len(plain["messages"]) == 1
    rich = answer(DIALECT, "task.get", {"id": "x"}, msgspec.structs.replace(asking, status_message=more))
    assert rich["status"]["message"] == "Which?"
    assert rich["messages"][1]["parts"][1] == {"kind": "data", "data": {"choices": [1, 2]}}
    assert rich["messages"][1]["timestamp"] == "2026-01-12T10:00:00.000Z"


def test_a_rejected_task_says_so() -> None:
    shown = answer(DIALECT, "task.get", {"id": "x"}, task_of({"state": "rejected"}))
    assert shown["status"]["message"] == "The agent rejected the task."


# -- errors


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.NotJson(), -32700, 200),
        (errors.BadFrame(), -32600, 200),
        (errors.TooLarge(), -32600, 413),
        (errors.UnknownMethod(), -32601, 200),
        (errors.BadParams(), -32602, 200),
        (errors.InputRefused(), -32602, 200),
        (errors.ContentRefused(), -32602, 200),
        (errors.SkillNotFound(), -32602, 200),
        (errors.CallLoop(), -32602, 200),
        (errors.IdempotencyConflict(), -32602, 200),
        (errors.NotAuthenticated(), -32000, 401),
        (errors.NotAuthorized(), -32000, 403),
        (errors.AgentNotFound(), -32000, 404),
        (errors.RateLimited(), -32000, 429),
        (errors.TaskNotFound(), -32001, 200),
        (errors.TaskNotCancelable(), -32002, 200),
        (errors.TaskFinished(), -32004, 200),
        (errors.AgentUnavailable(), -32603, 200),
        (errors.CircuitOpen(), -32603, 200),
        (errors.Overloaded(), -32603, 503),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)
def test_every_error_has_its_code(error: errors.DragomanError, code: int, status: int) -> None:
    assert wire_error(DIALECT.errors, error) == (code, status)
    got, body = refused_as(DIALECT, error)
    assert (got, body["code"], body["message"]) == (status, code, error.message)
    assert body["data"]["reason"] == error.code.lower()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("error-task-not-found", errors.TaskNotFound(call_id="task-none")),
        ("error-task-not-cancelable", errors.TaskNotCancelable(call_id="task-1", state="completed")),
        ("error-method-not-found", errors.UnknownMethod()),
        ("error-invalid-params", errors.BadParams("no", errors=[{"path": "message", "message": "required"}])),
        ("error-parse", errors.NotJson()),
    ],
)
def test_an_error_has_the_members_of_the_printed_one(name: str, error: errors.DragomanError) -> None:
    printed = _example(name)["error"]
    _, said = refused_as(DIALECT, error)
    assert said["code"] == printed["code"]
    assert printed.get("data", {}).items() <= said["data"].items()


# -- the card


def _agent(card: AgentCard) -> Agent:
    return Agent(card=card, uuid="u", tenant="default", owner_id="o", registered_at=AT, updated_at=AT)


def _written(card: AgentCard, *, protected: bool = False) -> Any:
    assert DIALECT.write_card is not None
    place = Place(hub_url=HUB, base_url=BASE, protected=protected)
    shown: Any = DIALECT.write_card(_agent(card), place)
    return msgspec.json.decode(msgspec.json.encode(shown))


@pytest.mark.req("D-01", "D-14", "D-25")
def test_the_documents_own_card_is_served_as_it_came_with_the_hubs_url_and_what_the_hub_does() -> None:
    card = _example("agent-card")
    assert DIALECT.owns_card(card)
    capabilities = {**card["capabilities"], "streaming": True, "pushNotifications": True}
    assert _written(DIALECT.read_card(card)) == {**card, "url": BASE, "capabilities": capabilities}


def test_a_card_keeps_what_it_brought_and_offers_what_the_hub_offers() -> None:
    card: dict[str, Any] = {
        **_example("agent-card"),
        "vendor": {"kept": 2**70, "null": None},
        "provider": {"organization": "Acme", "url": "https://acme.test"},
        "capabilities": {"streaming": True, "longRunningTasks": False, "own": True},
        "securitySchemes": {"theirs": {"type": "http", "scheme": "basic"}},
        "security": [{"theirs": []}],
    }
    card["skills"][0]["vendor"] = 1
    read_card = DIALECT.read_card(card)
    assert (read_card.streaming, read_card.long_running) == (True, False)
    assert read_card.provider == Provider(name="Acme", url="https://acme.test")
    shown = _written(read_card)
    assert shown["vendor"] == card["vendor"]
    assert shown["skills"][0]["vendor"] == 1
    assert shown["provider"] == "Acme"
    assert shown["capabilities"] == {
        "streaming": True,
        "pushNotifications": True,
        "longRunningTasks": False,
        "own": True,
    }
    assert "security" not in shown
    assert "securitySchemes" not in shown
    assert set(_written(read_card, protected=True)["securitySchemes"]) == {"bearer", "apiKey", "oauth2"}


@pytest.mark.req("D-01")
def test_the_card_of_an_agent_of_another_dialect_has_every_member() -> None:
    modes = ("text/markdown", "application/json; charset=utf-8", "image/png", "text")
    card = AgentCard(
        id="agt_x",
        name="X",
        skills=(Skill(id="s", name="S", input_modes=modes, examples=({"q": 1},)), Skill(id="t", name="T")),
        endpoints=(Endpoint(dialect="platform", url="http://agent.test/"),),
    )
    shown = _written(card)
    assert set(shown) == set(_example("agent-card"))
    assert shown["description"] == "X"
    assert shown["provider"] == "X"
    assert shown["capabilities"] == {"streaming": True, "pushNotifications": True, "longRunningTasks": True}
    assert shown["skills"][0] == {
        "id": "s",
        "name": "S",
        "description": "S",
        "inputModes": ["text", "data", "file"],
        "outputModes": ["text"],
        "tags": [],
        "examples": [{"q": 1}],
    }
    assert DIALECT.read_card(shown).skills[0].input_modes == ("text", "data", "file")


def test_a_meagre_card_is_read_and_a_useless_one_refused() -> None:
    card = DIALECT.read_card({"name": "X \u202eY", "url": "http://agent.test", "skills": "none", "provider": 7})
    assert (card.id, card.name, card.version) == ("agt_x_y", "X Y", "1.0.0")
    assert [skill.id for skill in card.skills] == ["default"]
    assert card.endpoints[0].url == "http://agent.test"
    for useless in ({}, {"name": "X"}, {"url": "http://agent.test"}, {"name": "", "url": "x"}, {"name": 1, "url": "x"}):
        assert not DIALECT.owns_card(useless)
        with pytest.raises(BadParams):
            DIALECT.read_card(useless)


@pytest.mark.req("D-01")
@pytest.mark.parametrize(
    ("url", "agent", "base"),
    [
        ("/agents/agt_x/.well-known/agent-card", "agt_x", BASE),
        ("/agents/agt_x/agent-card?x=1", "agt_x", BASE),
        ("/agents/agt_x/dotted/agent-card", "agt_x", f"{BASE}dotted/"),
        ("/.well-known/agent-card", None, f"{HUB}/"),
        ("/agent-card", None, f"{HUB}/"),
    ],
)
def test_a_card_names_the_url_below_which_it_was_found(url: str, agent: str | None, base: str) -> None:
    params = {} if agent is None else {"agent": agent}
    exchange = read(DIALECT, HttpRequest(method="GET", url=url, route="card", params=params, hub=HUB, at=AT))
    assert exchange.operation == GetCard(agent=agent, public=True)
    card = msgspec.structs.replace(DIALECT.read_card(_example("agent-card")), id="agt_x")
    reply = exchange.reply(Card(agent=_agent(card), protected=False, is_hub=agent is None))
    assert (reply.status, reply.headers[b"content-type"]) == (200, b"application/json")
    assert json.loads(reply.body)["url"] == base


def test_a_card_that_is_not_there_is_a_404() -> None:
    request = HttpRequest(method="GET", url="/agents/none/agent-card", route="card", hub=HUB)
    assert read(DIALECT, request).refuse(errors.AgentNotFound()).status == 404


def test_the_card_is_served_wherever_an_agent_is() -> None:
    assert {(route.method, route.path, route.level) for route in DIALECT.routes} == {
        ("GET", "/.well-known/agent-card", Level.BASE),
        ("GET", "/agent-card", Level.BASE),
    }


# -- going out


@pytest.mark.req("D-24")
@pytest.mark.parametrize(
    ("version", "methods"),
    [
        (None, ("message.send", "task.get", "task.cancel")),
        ("slash", ("message/send", "tasks/get", "tasks/cancel")),
    ],
)
def test_an_agent_is_asked_under_the_names_it_knows(version: str | None, methods: tuple[str, str, str]) -> None:
    task = task_of({"remote": {"task_id": "T", "context_id": "C"}})
    said = msgspec.structs.replace(task.asked.message, at=AT)
    request, body = asked(DIALECT, outgoing(DIALECT, Verb.SEND, task, version=version, message=said))
    assert (body["method"], body["id"]) == (methods[0], "a2a_call_1")
    assert request.headers[b"idempotency-key"] == b"a2a_call_1"
    assert b"a2a-version" not in request.headers
    assert body["params"] == {
        "message": {
            "kind": "message",
            "messageId": "msg_1",
            "role": "user",
            "parts": [{"kind": "data", "data": {"q": 1}}],
            "contextId": "C",
            "timestamp": "2026-01-12T10:00:00.000Z",
            "metadata": {HINTS: {"call_id": "a2a_call_1", "skill": "search", "timeout_ms": 29950}},
        },
        "configuration": {"blocking": True},
    }
    _, body = asked(DIALECT, outgoing(DIALECT, Verb.GET, task, version=version))
    assert (body["method"], body["params"]) == (methods[1], {"taskId": "T", "id": "T"})
    _, body = asked(DIALECT, outgoing(DIALECT, Verb.CANCEL, task, version=version, reason="late"))
    assert (body["method"], body["params"]) == (methods[2], {"taskId": "T", "id": "T", "reason": "late"})
    assert DIALECT.ask(outgoing(DIALECT, Verb.GET, task_of({}))) is None


@pytest.mark.req("D-24")
def test_an_agent_that_does_not_know_the_method_may_know_it_by_its_other_name() -> None:
    with pytest.raises(BadAgentReply) as raised:
        heard(DIALECT, {**failure(-32601, "Method not found"), "result": None})
    assert raised.value.details["try_version"] == "slash"
    said = heard(DIALECT, failure(-32601, "Method not found"), version="slash")
    (ended,) = said.events
    assert isinstance(ended, StatusChanged)
    assert ended.failure is not None
    assert ended.failure.code == "AGENT_ERROR"


def _task(**more: Any) -> dict[str, Any]:
    return {"id": "T", "kind": "task", "contextId": "C", "status": {"state": "completed"}, **more}


HELLO: Final = [{"kind": "text", "text": "hello from X"}]


@pytest.mark.req("D-24", "X-16")
@pytest.mark.parametrize(
    "answered",
    [
        _task(artifacts=[{"artifactId": "a", "parts": HELLO}]),
        _task(messages=[{"role": "user", "parts": [TEXT]}, {"role": "agent", "parts": HELLO}]),
        _task(history=[{"role": "user", "parts": [TEXT]}, {"role": "agent", "parts": HELLO}], messages=[]),
        {**_task(), "status": {"state": "completed", "message": "hello from X", "timestamp": "2026-01-12T10:00:00.1"}},
        {"kind": "message", "role": "agent", "parts": HELLO},
    ],
)
def test_the_answer_of_a_published_server_is_found(answered: Any) -> None:
    said = heard(DIALECT, {"jsonrpc": "2.0", "id": "unknown", "result": answered, "error": None})
    folded = fold(task_of({}), said.events)
    assert (said.settled, folded.state) == (True, TaskState.COMPLETED)
    assert output_of(folded) == (Text(text="hello from X"),)


def test_the_printed_answers_are_read() -> None:
    for name in ("message-send-response", "task-get-response"):
        said = heard(DIALECT, _example(name))
        made = said.events[0]
        assert isinstance(made, ArtifactChunk)
        assert made.artifact == Artifact(
            id="artifact-def456",
            name="terminal_bench_solution",
            description="Solution for: Write a bash script...",
            parts=(Text(text="#!/bin/bash\nfind . -type f -size +100M -exec ls -lh {} \\;"),),
        )
        assert not any(isinstance(event, MessageAdded) for event in said.events)
    for name in ("error-task-not-found", "error-task-not-cancelable", "error-invalid-params", "error-parse"):
        assert heard(DIALECT, _example(name)).settled


@pytest.mark.parametrize("body", [b"<html>", result(None), result([]), result({}), {}, []])
def test_what_is_no_answer_is_a_bad_reply(body: Any) -> None:
    with pytest.raises(BadAgentReply) as raised:
        heard(DIALECT, body)
    assert "try_version" not in raised.value.details


@pytest.mark.parametrize(("status", "code"), [(429, "RATE_LIMITED"), (503, "AGENT_UNAVAILABLE"), (401, "AGENT_ERROR")])
def test_a_status_that_says_it_all_is_heard(status: int, code: str) -> None:
    (ended,) = heard(DIALECT, b"", status=status).events
    assert isinstance(ended, StatusChanged)
    assert ended.failure is not None
    assert ended.failure.code == code


@pytest.mark.parametrize(
    ("reply", "yes"),
    [
        (HttpReply(status=200, body=json.dumps(failure(-32001)).encode()), True),
        (HttpReply(status=200, body=json.dumps(failure(-32602)).encode()), True),
        (HttpReply(status=200, body=json.dumps(failure(-32601)).encode()), True),  # the published server
        (HttpReply(status=403), True),
        (HttpReply(status=200, body=json.dumps(failure(-32603)).encode()), False),
        (HttpReply(status=500, body=b"Internal Server Error"), False),
        (HttpReply(status=404, body=b"{}"), False),
    ],
)
def test_the_probe_starts_no_work(reply: HttpReply, yes: bool) -> None:
    assert DIALECT.probe is not None
    assert DIALECT.answers_probe is not None
    operation = read(DIALECT, posted(DIALECT.probe("http://agent.test/").body)).operation
    assert isinstance(operation, GetTask)
    assert DIALECT.answers_probe(reply) is yes
