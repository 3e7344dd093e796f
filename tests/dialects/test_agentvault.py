"""AgentVault's callers, without a wire: what is meant by a request, and how tasks and refusals are shown."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.agentvault import DIALECT
from dragoman.dialects.agentvault.answers import shown_task
from dragoman.dialects.agentvault.content import read_artifact, read_part, wire_artifact, wire_part
from dragoman.dialects.agentvault.wire import STATES
from dragoman.dialects.dialect import wire_error
from dragoman.model import errors
from dragoman.model.answers import Accepted
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import (
    AgentError,
    BadParams,
    ContentRefused,
    DragomanError,
    Failure,
    NotAuthenticated,
    NotSupported,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
)
from dragoman.model.events import Usage
from dragoman.model.http import HttpReply
from dragoman.model.operations import CancelTask, FollowTask, GetTask, Priority, SendTask, Unreadable, Wait
from dragoman.model.states import TaskState
from tests.dialects.agentvault_samples import (
    HI,
    PARTS,
    WORDS,
    agent_said,
    body_of,
    published,
    refusal_of,
    request_of,
    rpc,
    sending,
    sent_by,
    task_of,
)


def test_a_message_makes_a_task_of_its_own() -> None:
    exchange = rpc(published("tasks-send-request"), agent="echo")
    assert exchange.operation == SendTask(
        message=Message(id="msg-av-1", role=Role.USER, parts=(Text(text="echo:hi"),)),
        agent="echo",
        wait=Wait.NONE,
        timeout_s=86_400.0,
    )
    reply = exchange.reply(Accepted(task=task_of(id="task-6bd19e82")))
    assert (reply.status, body_of(reply)) == (200, published("tasks-send-response"))


@pytest.mark.parametrize("absent", [{}, {"id": None}, {"webhookUrl": None}])
def test_null_is_absent(absent: dict[str, Any]) -> None:
    assert sent_by(
        sending({"role": "user", "parts": [{"type": "text", "content": "x"}], "metadata": None}, **absent)
    ) == (
        SendTask(
            message=Message(id="msg-av-1", role=Role.USER, parts=(Text(text="x"),)),
            wait=Wait.NONE,
            timeout_s=86_400.0,
        )
    )


def test_a_message_with_an_id_continues_that_task() -> None:
    assert sent_by(rpc(published("tasks-send-continue-request"))).continues == "task-6bd19e82"


def test_a_webhook_is_told_every_change_of_state() -> None:
    asked = sent_by(rpc(published("tasks-send-webhook-request")))
    assert asked.callback == Callback(
        id="webhook", dialect="agentvault", url="https://client.example/hook", tells=Tells.STATES
    )


def test_all_kinds_of_parts_are_read() -> None:
    message = sent_by(rpc(published("tasks-send-parts-request"))).message
    assert message.parts == (
        Text(text="echo:p"),
        Data(value={"n": 1}),
        Link(url="https://example.com/a.pdf", media_type="application/pdf", filename="a.pdf"),
    )
    assert message.metadata == published("tasks-send-parts-request")["params"]["message"]["metadata"]


@pytest.mark.parametrize(
    ("word", "role"),
    [("user", Role.USER), ("assistant", Role.AGENT), ("system", Role.SYSTEM), ("tool", Role.TOOL)],
)
def test_every_role_is_kept(word: str, role: Role) -> None:
    asked = sent_by(sending({"role": word, "parts": [{"type": "text", "content": "x"}]}))
    assert asked.message.role is role
    shown = shown_task(task_of(asked=asked))
    assert shown["messages"][0]["role"] == word


@pytest.mark.parametrize(
    "message",
    [
        {"role": "agent", "parts": [{"type": "text", "content": "x"}]},
        {"parts": [{"type": "text", "content": "x"}]},
        {"role": "user", "parts": []},
        {"role": "user"},
        {"role": "user", "parts": [{"type": "text", "text": "x"}]},
        {"role": "user", "parts": [{"type": "text", "content": 1}]},
        {"role": "user", "parts": [{"type": "image", "content": "x"}]},
        {"role": "user", "parts": [{"content": "x"}]},
        {"role": "user", "parts": ["x"]},
        {"role": "user", "parts": [{"type": "data", "content": [1]}]},
        {"role": "user", "parts": [{"type": "data", "content": None}]},
        {"role": "user", "parts": [{"type": "file", "url": "data:text/plain,x"}]},
        {"role": "user", "parts": [{"type": "file", "url": "ftp://example.com/x"}]},
        {"role": "user", "parts": [{"type": "file", "url": "https://"}]},
        {"role": "user", "parts": [{"type": "file"}]},
        {"role": "user", "parts": [{"type": "text", "content": "x"}], "metadata": "x"},
        "x",
        None,
    ],
)
def test_any_other_message_is_refused_by_its_field(message: object) -> None:
    error = refusal_of(sending(message))["error"]
    assert error["code"] == -32602
    assert error["data"]["path"].startswith("message")


@pytest.mark.parametrize("given", [{}, {"id": None}, {"id": 7}, {"id": ""}, {"id": "x" * 257}, [], None])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/sendSubscribe"])
def test_whoever_asks_for_a_task_names_it(method: str, given: object) -> None:
    error = refusal_of(rpc(request_of(method, given)))["error"]
    assert error["code"] == -32602
    if isinstance(given, dict):
        assert error["data"]["path"] == "id"


def test_the_params_name_the_task_and_the_url_its_agent() -> None:
    assert rpc(published("tasks-get-request"), agent="a").operation == GetTask(task_id="task-6bd19e82", agent="a")
    assert rpc(published("tasks-cancel-request")).operation == CancelTask(task_id="task-6bd19e82")
    followed = rpc(published("tasks-send-subscribe-request"), agent="a").operation
    assert followed == FollowTask(task_id="task-6bd19e82", ended_ok=True, past_questions=True, agent="a")


def test_hints_and_headers_say_what_the_wire_has_no_field_for() -> None:
    hints = {"agent": "b", "skill": "echo", "priority": "urgent", "timeout_ms": 1500, "parent": "p", "title": "t"}
    message = {"role": "user", "parts": [{"type": "text", "content": "x"}], "metadata": {"dragoman": hints, "k": 1}}
    exchange = rpc(
        request_of("tasks/send", {"message": message}), {b"idempotency-key": b"once", b"x-request-id": b"req"}
    )
    asked = sent_by(exchange)
    assert (asked.agent, asked.skill, asked.priority, asked.timeout_s) == ("b", "echo", Priority.URGENT, 1.5)
    assert (asked.parent_id, asked.title, asked.message.metadata) == ("p", "t", {"k": 1})
    assert (asked.idempotency_key, asked.request_id) == ("once", "req")
    assert sent_by(rpc(request_of("tasks/send", {"message": message}), agent="a")).agent == "a"


@pytest.mark.parametrize(
    ("body", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"", -32700, None),
        (b"[]", -32600, None),
        (b"7", -32600, None),
        (b'{"id": 3, "method": "tasks/get", "params": {"id": "x"}}', -32600, 3),
        (b'{"jsonrpc": "1.0", "id": "a", "method": "tasks/get"}', -32600, "a"),
        (b'{"jsonrpc": "2.0", "id": "a"}', -32600, "a"),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "message/send"}', -32601, "a"),
        (b'{"jsonrpc": "2.0", "id": 12345678901234567890, "method": "x"}', -32601, 12345678901234567890),
        (b'{"jsonrpc": "2.0", "id": null, "method": "x"}', -32601, None),
    ],
)
def test_what_is_no_request_is_refused_with_its_code_and_id(body: bytes, code: int, request_id: object) -> None:
    refused = refusal_of(rpc(body))
    assert (refused["error"]["code"], refused["id"]) == (code, request_id)


def test_another_content_type_is_refused() -> None:
    exchange = rpc(published("tasks-send-request"), {b"content-type": b"text/plain"})
    assert isinstance(exchange.operation, Unreadable)
    reply = exchange.refuse(exchange.operation.error)
    assert (reply.status, body_of(reply)["error"]["code"]) == (415, -32600)


def test_a_notification_is_carried_out_and_not_answered() -> None:
    request = published("tasks-send-request")
    del request["id"]
    exchange = rpc(request)
    assert isinstance(exchange.operation, SendTask)
    assert exchange.reply(Accepted(task=task_of())) == HttpReply(status=204)


CODES: Final = {
    "NotJson": (-32700, 200),
    "BadFrame": (-32600, 200),
    "UnknownMethod": (-32601, 200),
    "BadParams": (-32602, 200),
    "InputRefused": (-32602, 200),
    "ContentRefused": (-32602, 200),
    "SkillNotFound": (-32602, 200),
    "IdempotencyConflict": (-32602, 200),
    "CallLoop": (-32602, 200),
    "TooLarge": (-32600, 413),
    "WrongMediaType": (-32600, 415),
    "NotAuthenticated": (-32002, 401),
    "BadSignature": (-32002, 401),
    "SignatureRequired": (-32002, 401),
    "NotAuthorized": (-32003, 403),
    "CapabilityMismatch": (-32003, 403),
    "AgentNotFound": (-32000, 404),
    "TaskNotFound": (-32001, 200),
    "TaskFinished": (-32004, 200),
    "RateLimited": (-32000, 429),
    "Overloaded": (-32000, 503),
    "AgentUnavailable": (-32000, 200),
    "CircuitOpen": (-32000, 200),
    "AgentError": (-32000, 200),
    "DragomanError": (-32603, 200),
}


@pytest.mark.parametrize("name", CODES)
def test_every_error_has_its_code_and_status(name: str) -> None:
    error: DragomanError = getattr(errors, name)("It broke", fact=1)
    reply = rpc(published("tasks-get-request")).refuse(error)
    shown = body_of(reply)
    assert (shown["error"]["code"], reply.status) == CODES[name] == wire_error(DIALECT.errors, error)
    assert shown["error"]["message"] == "It broke"
    assert shown["error"]["data"]["fact"] == 1
    assert shown["error"]["data"]["reason"]
    assert shown["id"] == "req-get-6a0f"
    assert (b"www-authenticate" in reply.headers) is (reply.status == 401)
    assert (b"retry-after" in reply.headers) is (
        name in ("RateLimited", "Overloaded", "AgentUnavailable", "CircuitOpen")
    )


def test_a_cancel_that_comes_too_late_is_a_result() -> None:
    exchange = rpc(published("tasks-cancel-request"))
    reply = exchange.refuse(TaskNotCancelable("av-1 has ended: completed.", state="completed"))
    assert (reply.status, body_of(reply)) == (200, published("tasks-cancel-finished-response"))
    without_state = body_of(exchange.refuse(TaskNotCancelable("It has ended.")))["result"]
    assert without_state == {"success": False, "message": "It has ended."}
    assert body_of(exchange.refuse(TaskNotFound()))["error"]["code"] == -32001


def test_a_cancel_in_time_is_accepted() -> None:
    reply = rpc(published("tasks-cancel-request")).reply(task_of(TaskState.CANCELED))
    assert body_of(reply) == published("tasks-cancel-response")


def test_a_state_in_an_error_has_its_own_word() -> None:
    reply = rpc(published("tasks-send-continue-request")).refuse(TaskFinished(state="rejected"))
    assert body_of(reply)["error"]["data"]["state"] == "FAILED"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (TaskNotFound(), 404, -32001),
        (NotAuthenticated(), 401, -32002),
        (errors.NotAuthorized(), 403, -32003),
        (NotSupported(), 400, -32004),
        (BadParams(), 400, -32602),
        (AgentError(), 502, -32000),
    ],
)
def test_no_refusal_of_a_subscription_is_http_200(error: DragomanError, status: int, code: int) -> None:
    reply = rpc(published("tasks-send-subscribe-request")).refuse(error)
    assert (reply.status, body_of(reply)["error"]["code"]) == (status, code)


def test_a_task_is_shown_as_published() -> None:
    shown = published("tasks-get-response")
    result = shown["result"]
    task = task_of(
        TaskState.COMPLETED,
        id="task-6bd19e82",
        messages=(agent_said("hi"),),
        artifacts=(
            Artifact(id="a1", kind="result", parts=(Data(value={"echo": "hi"}, media_type="application/json"),)),
        ),
    )
    reply = rpc(published("tasks-get-request")).reply(task)
    assert (reply.status, body_of(reply)["result"]) == (200, result)


@pytest.mark.parametrize("state", list(TaskState))
def test_every_state_has_a_published_word_and_no_member_is_null(state: TaskState) -> None:
    published = {"SUBMITTED", "WORKING", "INPUT_REQUIRED", "COMPLETED", "FAILED", "CANCELED"}
    shown = shown_task(task_of(state))
    assert shown["state"] == STATES[state]
    assert shown["state"] in published
    assert set(shown) - {"metadata"} == {"id", "state", "createdAt", "updatedAt", "messages", "artifacts"}
    assert None not in shown.values()
    declared = {loss.facet for loss in DIALECT.losses}
    lost = shown["state"] != state.name
    assert (f"state:{state}" in declared) is lost
    if lost:
        assert shown["metadata"]["dragoman"]["state"] == state.value


def test_metadata_and_parts_come_back_as_they_were_sent() -> None:
    request = published("tasks-send-parts-request")
    asked = sent_by(rpc(request))
    assert shown_task(task_of(asked=asked))["messages"] == [request["params"]["message"]]
    empty: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "content": "x"}], "metadata": {}}
    assert shown_task(task_of(asked=sent_by(sending(empty))))["messages"] == [empty]


def test_an_answer_that_is_an_artifact_alone_is_also_said() -> None:
    task = task_of(TaskState.COMPLETED, artifacts=(Artifact(id="x", name="n", parts=(Text(text="hi"),)),))
    shown = shown_task(task)
    assert shown["messages"][1] == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "hi"}],
        "metadata": {"dragoman": {"as": "answer"}},
    }
    assert shown["artifacts"] == [
        {"id": "x", "type": "result", "content": "hi", "metadata": {"dragoman": {"name": "n"}}}
    ]


def test_an_answer_that_was_said_is_not_said_twice() -> None:
    shown = shown_task(task_of(TaskState.COMPLETED, messages=(agent_said("hi"),)))
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]
    assert shown["artifacts"] == []


def test_an_answer_that_came_with_the_end_is_said() -> None:
    shown = shown_task(task_of(TaskState.COMPLETED, status_message=agent_said("hi")))
    assert shown["messages"][-1]["parts"] == [{"type": "text", "content": "hi"}]


def test_chatter_beside_an_artifact_does_not_hide_the_answer() -> None:
    artifact = Artifact(id="x", parts=(Text(text="the answer"),))
    task = task_of(TaskState.COMPLETED, messages=(agent_said("Let me see."),), artifacts=(artifact,))
    assert shown_task(task)["messages"][-1]["parts"] == [{"type": "text", "content": "the answer"}]


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
def test_a_question_is_the_agents_last_message(state: TaskState) -> None:
    shown = shown_task(task_of(state, status_message=agent_said("Which one?")))
    assert shown["messages"][-1]["role"] == "assistant"
    assert shown["messages"][-1]["parts"] == [{"type": "text", "content": "Which one?"}]
    said_already = task_of(state, status_message=agent_said("Which one?"), messages=(agent_said("Which one?"),))
    assert len(shown_task(said_already)["messages"]) == 2


def test_why_a_task_failed_is_said() -> None:
    failure = Failure(code="AGENT_TIMEOUT", message="Too slow", details={"timeout_ms": 5})
    shown = shown_task(task_of(TaskState.FAILED, failure=failure))
    assert shown["messages"][-1]["parts"] == [{"type": "text", "content": "Too slow"}]
    assert shown["metadata"]["dragoman"]["failure"] == {"code": "AGENT_TIMEOUT", "details": {"timeout_ms": 5}}


def test_progress_words_and_usage_stand_in_the_hubs_block() -> None:
    task = task_of(
        TaskState.WORKING, progress=0.5, status_message=agent_said("Half way"), usage=Usage(tokens=3), asked=_asked()
    )
    block = {"progress": 0.5, "message": "Half way", "usage": {"tokens": 3}}
    assert shown_task(task)["metadata"] == {"own": 1, "dragoman": block}


def _asked() -> SendTask:
    return SendTask(message=HI, metadata={"own": 1})


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ((), {}),
        ((Text(text="x", media_type="text/markdown"),), {"content": "x", "mediaType": "text/markdown"}),
        ((Data(value={"a": 1}),), {"content": {"a": 1}}),
        ((Data(value=[1, 2]),), {"content": [1, 2]}),
        ((Data(value=7),), {"content": 7}),
        (
            (Link(url="https://a.test/f", media_type="image/png"),),
            {"url": "https://a.test/f", "mediaType": "image/png"},
        ),
        (
            (Text(text="x"), Link(url="http://a.test/f")),
            {"content": [{"type": "text", "content": "x"}, {"type": "file", "url": "http://a.test/f"}]},
        ),
    ],
)
def test_an_artifact_has_its_content_in_the_form_that_clients_know(
    parts: tuple[Part, ...], shown: dict[str, Any]
) -> None:
    assert wire_artifact(Artifact(id="a", kind="log", parts=parts)) == {"id": "a", "type": "log", **shown}
    assert read_artifact({"id": "a", "type": "log", **shown}, "?") == Artifact(id="a", kind="log", parts=parts)


@pytest.mark.parametrize("url", ["gs://bucket/x", "data:text/plain,x", "http://", "https://a.test/" + "x" * 2100])
def test_an_address_that_the_client_would_refuse_is_wrapped(url: str) -> None:
    link = Link(url=url, media_type="text/plain", filename="f")
    shown = wire_part(link)
    assert (shown["type"], shown["content"]["url"]) == ("data", url)
    assert read_part(shown) == link


def test_a_file_inside_is_refused_and_not_dropped() -> None:
    with pytest.raises(ContentRefused):
        wire_part(Blob(raw=b"x"))


@given(part=PARTS)
def test_a_part_survives_the_wire(part: Part) -> None:
    again = read_part(json.loads(json.dumps(wire_part(part))))
    assert again == part


@given(parts=st.lists(PARTS, max_size=3), name=WORDS, description=WORDS, kind=st.sampled_from(["log", "file"]))
def test_an_artifact_survives_the_wire(parts: list[Part], name: str | None, description: str | None, kind: str) -> None:
    artifact = Artifact(
        id="a", parts=tuple(parts), name=name, description=description, kind=kind, extensions=("e",), metadata={"k": 1}
    )
    assert read_artifact(json.loads(json.dumps(wire_artifact(artifact))), "?") == artifact
