"""A2A 0.3 over JSON-RPC: its requests, answers, errors and cards, and what its agents say."""

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects.a2a_v03 import DIALECT
from dragoman.dialects.a2a_v03.legacy import LEGACY
from dragoman.dialects.dialect import Verb, wire_error
from dragoman.dialects.hints import HINTS
from dragoman.model import errors
from dragoman.model.agent import Agent
from dragoman.model.answers import Accepted, Card
from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import BadAgentReply
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.lifecycle import fold, output_of
from dragoman.model.operations import CancelTask, GetCard, GetTask, SendTask, Wait
from dragoman.model.states import TaskState
from tests.dialects.goldens import AT, HUB, LATER, task_of
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
    sent,
    with_asked,
)

MESSAGE: dict[str, Any] = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [TEXT]}
HELLO = [{"kind": "text", "text": "hello from X"}]
PUSH = "tasks/pushNotificationConfig"


# -- coming in


@pytest.mark.req("O-42")
def test_a_task_is_asked_for_by_its_id() -> None:
    get = read(DIALECT, posted(rpc_body("tasks/get", {"id": "task-1", "historyLength": 2, "metadata": {}})))
    assert get.operation == GetTask(task_id="task-1", agent="agt_x")
    cancel = read(DIALECT, posted(rpc_body("tasks/cancel", {"id": "task-1", "reason": "late"}), agent=None))
    assert cancel.operation == CancelTask(task_id="task-1", reason="late")


@pytest.mark.req("O-42", "O-47")
@pytest.mark.parametrize("params", [None, {}, {"id": ""}, {"id": 1}, {"id": None}, {"taskId": "task-1"}, []])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_a_task_without_an_id_is_refused(method: str, params: object) -> None:
    status, body = refusal(DIALECT, posted(rpc_body(method, params)))
    assert (status, body["error"]["code"]) == (200, -32602)


@pytest.mark.req("O-42")
@pytest.mark.parametrize(
    "method", ["SendMessage", "message.send", "message.stream", "tasks/send", "tasks/sendSubscribe", f"{PUSH}/x", ""]
)
def test_a_method_of_another_dialect_is_unknown(method: str) -> None:
    status, body = refusal(DIALECT, posted(rpc_body(method, {"id": "task-1"})))
    assert (status, body["error"]["code"], body["id"]) == (200, -32601, "req-1")


@pytest.mark.req("O-39")
@pytest.mark.parametrize("said", ["", "0.3", "0.3.0", " 0.3 ", "0.3.7"])
def test_0_3_in_any_spelling_or_none_is_taken(said: str) -> None:
    assert sent(DIALECT, "message/send", {"message": MESSAGE}, a2a_version=said)
    assert sent(DIALECT, "message/send", {"message": MESSAGE}, url=f"/agents/agt_x?A2A-Version={said.strip()}")


@pytest.mark.req("O-39")
@pytest.mark.parametrize("said", ["1.0", "1.0.1", "0.2", "0", "0.30", "three", "é"])
def test_another_version_is_refused_by_header_and_by_query(said: str) -> None:
    for request in (
        posted(rpc_body("message/send", {"message": MESSAGE}), a2a_version=said),
        posted(rpc_body("message/send", {"message": MESSAGE}), url=f"/agents/agt_x?a2a-version={said}"),
    ):
        status, body = refusal(DIALECT, request)
        assert (status, body["error"]["code"]) == (200, -32009)
        assert body["error"]["data"]["supported"] == ["0.3"]


def test_extensions_are_read_under_both_names() -> None:
    task = sent(DIALECT, "message/send", {"message": MESSAGE}, x_a2a_extensions="a, b", a2a_extensions="b,,c")
    assert task.extensions == ("a", "b", "c")


def test_the_media_type_is_looked_at_before_the_body() -> None:
    status, body = refusal(DIALECT, posted(b"nonsense", content_type="text/plain"))
    assert (status, body["error"]["code"], body["id"]) == (415, -32600, None)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 5000, -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b"", -32700),
        (b'{"jsonrpc":"1.0","id":1,"method":"message/send"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"message/send"}', -32600),
    ],
)
def test_what_is_no_request_is_refused(body: bytes, code: int) -> None:
    status, said = refusal(DIALECT, posted(body))
    assert (status, said["error"]["code"]) == (200, code)


# -- the answers


@pytest.mark.req("O-43")
def test_a_task_has_every_member_in_0_3s_words() -> None:
    task = task_of(
        {
            "id": "task-1",
            "state": "input-required",
            "updated_at": "2026-01-12T10:00:02.500Z",
            "artifacts": [{"id": "a", "name": "n", "parts": [{"type": "text", "text": "so far"}]}],
            "status_message": {"id": "q", "role": "agent", "parts": [{"type": "text", "text": "Which?"}]},
        }
    )
    ids = {"contextId": "conv_1", "taskId": "task-1"}
    assert answer(DIALECT, "tasks/get", {"id": "task-1"}, task) == {
        "kind": "task",
        "id": "task-1",
        "contextId": "conv_1",
        "status": {
            "state": "input-required",
            "timestamp": "2026-01-12T10:00:02.500Z",
            "message": {
                "kind": "message",
                "messageId": "q",
                "role": "agent",
                "parts": [{"kind": "text", "text": "Which?"}],
                **ids,
            },
        },
        "artifacts": [{"artifactId": "a", "name": "n", "parts": [{"kind": "text", "text": "so far"}]}],
        "history": [
            {
                "kind": "message",
                "messageId": "msg_1",
                "role": "user",
                "parts": [{"kind": "data", "data": {"q": 1}}],
                **ids,
            }
        ],
    }


@pytest.mark.req("O-43")
@pytest.mark.parametrize("state", list(TaskState))
def test_every_state_is_a_word_of_0_3(state: TaskState) -> None:
    words = {"submitted", "working", "input-required", "auth-required", "completed", "canceled", "failed", "rejected"}
    shown = answer(DIALECT, "tasks/get", {"id": "x"}, task_of({"state": state.value}))
    assert shown["status"]["state"] in words
    assert shown["status"]["state"] == state.value


def test_only_the_turns_that_were_asked_for_are_shown() -> None:
    said = [{"id": f"m{n}", "role": "agent", "parts": [{"type": "text", "text": str(n)}]} for n in range(3)]
    task = task_of({"messages": said})

    def shown(length: int | None) -> list[str]:
        found = answer(DIALECT, "tasks/get", {"id": "x", "historyLength": length}, task)
        return [turn["messageId"] for turn in found["history"]]

    assert shown(None) == shown(0) == shown(9) == ["msg_1", "m0", "m1", "m2"]  # to 0.3 servers 0 is no limit
    assert shown(2) == ["m1", "m2"]


@pytest.mark.req("O-43")
def test_one_who_does_not_wait_gets_the_task_as_it_stands() -> None:
    body = rpc_body("message/send", {"message": MESSAGE, "configuration": {"blocking": False}})
    exchange = read(DIALECT, posted(body))
    assert isinstance(exchange.operation, SendTask)
    assert exchange.operation.wait is Wait.NONE
    shown = json.loads(exchange.reply(Accepted(task=task_of({}))).body)["result"]
    assert (shown["kind"], shown["status"]["state"]) == ("task", "submitted")


def test_an_agent_that_answered_with_a_message_is_heard_as_one_when_it_was_sent_to() -> None:
    said = Message(id="m-2", role=Role.AGENT, parts=(Text(text="hi"),), metadata={"a": 1})
    task = msgspec.structs.replace(task_of({"state": "completed"}), messages=(said,), direct=True)
    assert answer(DIALECT, "message/send", {"message": MESSAGE}, task) == {
        "kind": "message",
        "messageId": "m-2",
        "role": "agent",
        "parts": [{"kind": "text", "text": "hi"}],
        "contextId": "conv_1",
        "metadata": {"a": 1},
    }
    got = answer(DIALECT, "tasks/get", {"id": "x"}, task)
    assert got["artifacts"] == [{"artifactId": "result", "name": "result", "parts": [{"kind": "text", "text": "hi"}]}]


@pytest.mark.parametrize("direct", [False, True])
def test_a_client_between_the_versions_finds_the_answer_where_it_looks(direct: bool) -> None:
    said = Message(id="m-2", role=Role.AGENT, parts=(Text(text="hi"),))
    task = msgspec.structs.replace(task_of({"state": "completed"}), messages=(said,), direct=direct)
    plain = answer(DIALECT, "message/send", {"message": MESSAGE}, task)
    hybrid = {"messageId": "m-1", "role": "user", "parts": [{"text": "hello"}]}
    shown = answer(DIALECT, "message/send", {"message": hybrid}, task)
    assert shown == {**plain, plain["kind"]: plain}
    # Whoever says a kind anywhere is no such client.
    assert answer(DIALECT, "message/send", {"message": {"role": "user", "parts": [TEXT]}}, task) == plain


@pytest.mark.parametrize(
    "part",
    [{"raw": "AP9i", "filename": "f", "mediaType": "a/b"}, {"file": {"bytes": "AP9i", "name": "f", "mimeType": "a/b"}}],
)
def test_a_client_between_the_versions_may_write_files_as_1_0_does(part: dict[str, Any]) -> None:
    (read_part,) = sent(DIALECT, "message/send", {"message": {"role": "user", "parts": [part]}}).message.parts
    assert msgspec.to_builtins(read_part) == {"type": "blob", "raw": "AP9i", "filename": "f", "media_type": "a/b"}


# -- errors


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.NotJson(), -32700, 200),
        (errors.BadFrame(), -32600, 200),
        (errors.UnknownMethod(), -32601, 200),
        (errors.BadParams(), -32602, 200),
        (errors.InputRefused(), -32602, 200),
        (errors.SkillNotFound(), -32602, 200),
        (errors.CallLoop(), -32602, 200),
        (errors.IdempotencyConflict(), -32602, 200),
        (errors.NotAuthenticated(), -32000, 401),
        (errors.NotAuthorized(), -32000, 403),
        (errors.AgentNotFound(), -32000, 404),
        (errors.RateLimited(), -32000, 429),
        (errors.TooLarge(), -32600, 413),
        (errors.Overloaded(), -32603, 503),
        (errors.TaskNotFound(), -32001, 200),
        (errors.TaskNotCancelable(), -32002, 200),
        (errors.NotSupported(), -32004, 200),
        (errors.TaskFinished(), -32004, 200),
        (errors.ContentRefused(), -32005, 200),
        (errors.BadAgentReply(), -32006, 200),
        (errors.NoExtendedCard(), -32007, 200),
        (errors.ExtensionRequired(), -32008, 200),
        (errors.VersionNotSupported(), -32009, 200),
        (errors.CircuitOpen(), -32603, 200),
        (errors.AgentUnavailable(), -32603, 200),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else str(each),
)
def test_every_error_has_its_code(error: errors.DragomanError, code: int, status: int) -> None:
    assert wire_error(DIALECT.errors, error) == (code, status)
    got, body = refused_as(DIALECT, error)
    assert (got, body["code"], body["message"]) == (status, code, error.message)
    assert body["data"]["reason"] == error.code.lower()


def test_an_error_names_the_task_as_0_3_does() -> None:
    _, body = refused_as(DIALECT, errors.TaskNotFound("no", call_id="task-none"))
    assert body["data"] == {"reason": "task_not_found", "taskId": "task-none"}


# -- the card


def _looked(agent: Agent, url: str = "/agents/agt_x/a2a-0.3/.well-known/agent-card.json", **more: Any) -> HttpReply:
    request = HttpRequest(method="GET", url=url, route="card", params={"agent": "agt_x"}, hub=HUB, at=AT, **more)
    exchange = read(DIALECT, request)
    assert exchange.operation == GetCard(agent="agt_x", public=True)
    return exchange.reply(Card(agent=agent))


def _agent(card: dict[str, Any]) -> Agent:
    return Agent(
        card=msgspec.structs.replace(DIALECT.read_card(card), id="agt_x"),
        uuid="u",
        tenant="default",
        owner_id="o",
        registered_at=AT,
        updated_at=AT,
    )


CARD: dict[str, Any] = {
    "protocolVersion": "0.3.0",
    "name": "X",
    "description": "d",
    "url": "http://agent.test/",
    "version": "2",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}],
    "vendor": {"kept": 2**70},
}


@pytest.mark.req("O-47")
def test_the_mount_serves_the_pure_card_of_0_3() -> None:
    reply = _looked(_agent(CARD))
    shown = json.loads(reply.body)
    base = f"{HUB}/agents/agt_x/a2a-0.3/"
    assert (shown["url"], shown["protocolVersion"], shown["preferredTransport"]) == (base, "0.3.0", "JSONRPC")
    assert {"url": base, "transport": "JSONRPC"} in shown["additionalInterfaces"]
    assert "supportedInterfaces" not in shown
    assert shown["capabilities"] == {"streaming": True, "pushNotifications": True}
    assert shown["vendor"] == CARD["vendor"]
    again = _looked(_agent(CARD), headers={b"if-none-match": reply.headers[b"etag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.req("O-47")
@pytest.mark.parametrize(("declared", "code"), [(False, -32004), (True, -32007)])
def test_the_extended_card_is_for_those_who_proved_themselves_and_there_is_none(declared: bool, code: int) -> None:
    exchange = read(DIALECT, posted(rpc_body("agent/getAuthenticatedExtendedCard")))
    assert exchange.operation == GetCard(agent="agt_x", public=False)  # which the hub refuses to strangers
    agent = _agent({**CARD, "supportsAuthenticatedExtendedCard": declared})
    assert json.loads(exchange.reply(Card(agent=agent)).body)["error"]["code"] == code


def test_a_card_that_is_not_there_is_a_404() -> None:
    request = HttpRequest(method="GET", url="/agents/x/a2a-0.3/.well-known/agent.json", route="card", hub=HUB)
    assert read(DIALECT, request).refuse(errors.AgentNotFound()).status == 404
    assert read(DIALECT, request).refuse(errors.TaskNotFound()).status == 404


# -- going out


def test_an_agent_is_sent_the_message_in_0_3s_words() -> None:
    task = with_asked(task_of({}), metadata={"of": "params"}, accepts=("text/plain",), extensions=("x:e", "x:f"))
    request, body = asked(DIALECT, outgoing(DIALECT, Verb.SEND, task, headers={b"authorization": b"Bearer t"}))
    assert (request.method, request.url) == ("POST", "http://agent.test/")
    assert request.headers == {
        b"content-type": b"application/json",
        b"accept": b"application/json, text/event-stream",
        b"a2a-version": b"0.3",
        b"authorization": b"Bearer t",
        b"idempotency-key": b"a2a_call_1",
        b"x-a2a-extensions": b"x:e,x:f",
    }
    assert body == {
        "jsonrpc": "2.0",
        "id": "a2a_call_1",
        "method": "message/send",
        "params": {
            "message": {
                "kind": "message",
                "messageId": "msg_1",
                "role": "user",
                "parts": [{"kind": "data", "data": {"q": 1}}],
                "contextId": "conv_1",
                "metadata": {HINTS: {"call_id": "a2a_call_1", "skill": "search", "timeout_ms": 29950}},
            },
            "configuration": {"blocking": True, "acceptedOutputModes": ["text/plain"]},
            "metadata": {"of": "params"},
        },
    }


def test_what_nobody_waits_for_holds_no_connection() -> None:
    task = with_asked(task_of({}), wait=Wait.NONE)
    _, body = asked(DIALECT, outgoing(DIALECT, Verb.SEND, task))
    assert body["params"]["configuration"] == {"blocking": False}


def test_a_message_that_goes_on_is_one_of_the_agents_own_task() -> None:
    task = with_asked(task_of({"remote": {"task_id": "T:1", "context_id": "C"}}), continues="a2a_call_1")
    more = Message(id="m\r\n2é", role=Role.USER, parts=(Text(text="that"),))
    request, body = asked(DIALECT, outgoing(DIALECT, Verb.SEND, task, message=more))
    message = body["params"]["message"]
    assert (message["taskId"], message["contextId"], message["messageId"]) == ("T:1", "C", more.id)
    key = request.headers[b"idempotency-key"]
    assert key != b"a2a_call_1"
    assert key.decode().isprintable()


def test_a_task_is_got_and_cancelled_by_the_agents_own_id() -> None:
    known = task_of({"remote": {"task_id": "T:1"}})
    for verb, method in ((Verb.GET, "tasks/get"), (Verb.CANCEL, "tasks/cancel")):
        request, body = asked(DIALECT, outgoing(DIALECT, verb, known))
        assert (body["method"], body["params"]) == (method, {"id": "T:1"})
        assert b"idempotency-key" not in request.headers
        assert DIALECT.ask(outgoing(DIALECT, verb, task_of({}))) is None


def _task(state: str = "completed", **more: Any) -> dict[str, Any]:
    return {"kind": "task", "id": "T", "contextId": "C", "status": {"state": state}, **more}


def _said(role: str = "agent", parts: Any = HELLO) -> dict[str, Any]:
    return {"kind": "message", "messageId": "m", "role": role, "parts": parts}


@pytest.mark.req("X-16")
@pytest.mark.parametrize(
    "answered",
    [
        _task(artifacts=[{"artifactId": "a", "parts": HELLO}]),
        _task(artifacts=[{"artifactId": "a", "parts": HELLO}], history=[_said("user"), _said()]),
        _task(
            artifacts=[{"parts": [*HELLO[:0], {"kind": "text", "text": "hello "}, {"kind": "text", "text": "from X"}]}]
        ),
        {**_task(), "status": {"state": "completed", "message": _said()}},
        _task(history=[_said("user", [TEXT]), _said()]),
        _said(),
        {
            "task": {
                "id": "T",
                "status": {"state": "TASK_STATE_COMPLETED"},
                "artifacts": [{"parts": [{"text": "hello from X"}]}],
            }
        },
        {"message": {"role": "ROLE_AGENT", "content": [{"text": "hello from X"}]}},
        {
            "id": "T",
            "status": {"state": "completed", "timestamp": "2026-11-15T18:44:47.178191"},
            "artifacts": [{"parts": HELLO}],
        },
        {**_task(artifacts=[{"parts": [{"type": "text", "text": "hello from X"}]}]), "message": _said("user", [TEXT])},
    ],
)
def test_the_answer_is_found_wherever_agents_put_it(answered: Any) -> None:
    for body in (result(answered), {**result(answered), "error": None}, {"result": answered}):
        said = heard(DIALECT, body)
        assert said.settled
        folded = fold(task_of({}), said.events)
        assert folded.state is TaskState.COMPLETED
        assert "".join(part.text for part in output_of(folded) if isinstance(part, Text)) == "hello from X"


@pytest.mark.parametrize("state", ["submitted", "working", "unknown", "", None])
def test_a_task_that_is_not_done_is_no_answer(state: object) -> None:
    said = heard(DIALECT, result({**_task(), "status": {"state": state}}))
    assert not said.settled
    assert said.remote is not None
    assert (said.remote.task_id, said.remote.context_id) == ("T", "C")


def test_whole_doubles_are_integers_again() -> None:
    said = heard(DIALECT, b'{"result":{"kind":"message","role":"agent","parts":[{"kind":"data","data":{"n":1.0}}]}}')
    event = said.events[0]
    assert isinstance(event, MessageAdded)
    assert msgspec.json.encode(event.message.parts[0]) == b'{"type":"data","value":{"n":1}}'


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (failure(-32602, "No such city"), 200, "VALIDATION_ERROR"),
        (failure(-32005, "No pictures"), 200, "CONTENT_NOT_SUPPORTED"),
        (failure(-32603, "Boom", data=None), 500, "AGENT_ERROR"),
        (failure(-32001, "Gone"), 200, "AGENT_ERROR"),
        ({**failure(-32601), "result": None}, 200, "AGENT_ERROR"),
        (b"", 429, "RATE_LIMITED"),
        (b"", 503, "AGENT_UNAVAILABLE"),
        (b"", 401, "AGENT_ERROR"),
        (b"", 403, "AGENT_ERROR"),
    ],
)
def test_an_error_of_the_agents_is_a_failed_task(body: Any, status: int, code: str) -> None:
    said = heard(DIALECT, body, status=status, retry_after="9")
    (ended,) = said.events
    assert isinstance(ended, StatusChanged)
    assert ended.state is TaskState.FAILED
    assert ended.failure is not None
    assert ended.failure.code == code
    if status in (429, 503):
        assert ended.failure.details == {"retry_after": 9, "agent_status": status}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", 200),
        (b"Internal Server Error", 500),
        (b"", 404),
        ({"detail": "Not Found"}, 404),
        (result(None), 200),
        (result([]), 200),
        (result({}), 200),
        (result(_said("user")), 200),
        (result({"kind": "status-update", "taskId": "T", "status": {"state": "completed"}}), 200),
        ({"parts": [{"data": {"error": "x"}}], "role": "agent"}, 500),
    ],
)
def test_what_is_no_answer_is_a_bad_reply(body: Any, status: int) -> None:
    with pytest.raises(BadAgentReply):
        heard(DIALECT, body, status=status)


@pytest.mark.parametrize(
    ("reply", "yes"),
    [
        (HttpReply(status=200, body=json.dumps(failure(-32602)).encode()), True),
        (HttpReply(status=200, body=json.dumps(failure(-32600)).encode()), True),
        (HttpReply(status=401), True),
        (HttpReply(status=200, body=json.dumps(failure(-32601)).encode()), False),
        (HttpReply(status=200, body=json.dumps(result({})).encode()), False),
        (HttpReply(status=500, body=b"Internal Server Error"), False),
        (HttpReply(status=404), False),
    ],
)
def test_the_probe_starts_no_work_and_is_answered_by_those_who_speak_0_3(reply: HttpReply, yes: bool) -> None:
    assert DIALECT.probe is not None
    assert DIALECT.answers_probe is not None
    request = DIALECT.probe("http://agent.test/")
    assert b"a2a-version" not in request.headers
    assert json.loads(request.body)["params"] == {}
    assert refusal(DIALECT, msgspec.structs.replace(posted(request.body)))[1]["error"]["code"] == -32602
    assert DIALECT.answers_probe(reply) is yes


# -- the form of 0.1


def test_a_legacy_agent_is_called_at_the_url_of_the_method_with_parts_that_say_their_type() -> None:
    task = with_asked(
        task_of({}),
        message=Message(id="m", role=Role.USER, parts=(Text(text="hi"),), metadata={"a": 1}),
        metadata={"of": "params"},
    )
    request, body = asked(DIALECT, outgoing(DIALECT, Verb.SEND, task, version=LEGACY))
    assert request.url == "http://agent.test/tasks/send"
    assert b"a2a-version" not in request.headers
    assert body["method"] == "tasks/send"
    assert body["params"] == {
        "id": "a2a_call_1",
        "sessionId": "conv_1",
        "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}], "metadata": {"a": 1}},
        "metadata": {
            "of": "params",
            HINTS: {"call_id": "a2a_call_1", "skill": "search", "timeout_ms": 29950},
        },
    }
    known = task_of({"remote": {"task_id": "T"}})
    for verb in (Verb.GET, Verb.CANCEL):
        request, body = asked(DIALECT, outgoing(DIALECT, verb, known, version=LEGACY))
        assert (request.url, body["params"]) == (f"http://agent.test/tasks/{verb.value}", {"id": "T"})


def test_a_legacy_agent_is_heard_past_the_message_it_sends_back() -> None:
    answered = {
        "id": "a2a_call_1",
        "sessionId": "S",
        "status": {"state": "completed", "timestamp": "2026-11-15T18:44:47.178191"},
        "artifacts": [{"parts": [{"type": "text", "text": "hello from X"}]}],
        "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
    }
    said = heard(DIALECT, result(answered), version=LEGACY)
    assert said.settled
    chunk = said.events[0]
    assert isinstance(chunk, ArtifactChunk)
    assert chunk.artifact.parts == (Text(text="hello from X"),)
    assert said.remote is not None
    assert (said.remote.task_id, said.remote.context_id) == ("a2a_call_1", "S")
    with pytest.raises(BadAgentReply):
        heard(DIALECT, {"parts": [{"data": {"error": "x"}}], "role": "agent"}, status=500, version=LEGACY)
    with pytest.raises(BadAgentReply):
        heard(DIALECT, result([]), version=LEGACY)
    assert heard(DIALECT, b"", status=503, version=LEGACY).settled
    assert heard(DIALECT, failure(-32000, "Task not found"), status=404, version=LEGACY).settled


def test_the_time_of_an_answer_is_that_of_its_arrival() -> None:
    said = heard(DIALECT, result({**_task(), "status": {"state": "completed", "timestamp": "1999-01-01T00:00:00"}}))
    assert [event.at for event in said.events] == [LATER]
