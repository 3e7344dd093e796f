"""What A2A 0.3 and dotted have in common: parts, messages and tasks that say their kind."""

import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.a2a_v03 import DIALECT as V03
from dragoman.dialects.dialect import Dialect, Verb
from dragoman.dialects.dotted import DIALECT as DOTTED
from dragoman.dialects.hints import HINTS
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import BadAgentReply, NotJson
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged
from dragoman.model.http import HttpReply
from dragoman.model.json import is_object
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import Priority, SendTask, Unreadable, Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from tests.dialects.goldens import AT, LATER, task_of
from tests.dialects.kind_world import (
    ARTIFACTS,
    MESSAGES,
    TEXT,
    answer,
    asked,
    heard,
    outgoing,
    posted,
    read,
    refusal,
    rpc_body,
    sent,
    with_asked,
)

BOTH = pytest.mark.parametrize("dialect", [V03, DOTTED], ids=lambda dialect: dialect.slug)
MEMBERS = {
    *("message", "role", "parts", "kind", "text", "file", "data", "bytes", "uri", "name", "mimeType", "metadata", "id"),
    *("contextId", "taskId", "referenceTaskIds", "extensions", "messageId", "timestamp", "configuration", "blocking"),
    *("historyLength", "acceptedOutputModes", "dragoman", "skill", "timeout_ms", "value", "data_part_compat", "raw"),
    *("status", "state", "artifacts", "artifactId", "history", "messages", "task", "result", "code", "mediaType"),
    *("filename", "sessionId", "url", "reason", "role"),
}
SEND = "message/send"  # dotted takes it too, where it is alone


def _message(**more: Any) -> dict[str, Any]:
    return {"message": {"kind": "message", "messageId": "m-1", "role": "user", "parts": [TEXT], **more}}


def _parts(dialect: Dialect, *parts: object) -> tuple[Part, ...]:
    return sent(dialect, SEND, _message(parts=list(parts))).message.parts


@BOTH
@pytest.mark.req("D-04")
def test_every_kind_of_part_is_read(dialect: Dialect) -> None:
    about = {"name": "script.sh", "mimeType": "text/x-shellscript"}
    assert _parts(
        dialect,
        TEXT,
        {"kind": "file", "file": {"bytes": "IyEvYmluL2Jhc2gK", **about}},
        {"kind": "file", "file": {"uri": "https://example.com/file.pdf", **about}},
        {"kind": "data", "data": {"key": "value", "big": 2**70}, "metadata": {"note": 1}},
    ) == (
        Text(text="hello"),
        Blob(raw=b"#!/bin/bash\n", filename="script.sh", media_type="text/x-shellscript"),
        Link(url="https://example.com/file.pdf", filename="script.sh", media_type="text/x-shellscript"),
        Data(value={"key": "value", "big": 2**70}, metadata={"note": 1}),
    )


@BOTH
def test_a_null_member_is_one_that_is_not_there(dialect: Dialect) -> None:
    part = {"kind": "file", "file": {"bytes": "AP9i", "uri": None, "name": None, "mimeType": None}, "metadata": None}
    assert _parts(dialect, part) == (Blob(raw=b"\x00\xffb"),)
    assert sent(dialect, SEND, _message(contextId=None, taskId=None, extensions=None, metadata=None)).context_id is None


@BOTH
@pytest.mark.req("D-19")
@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"kind": "video", "text": "x"}, "kind"),
        ({"kind": "text"}, "text"),
        ({"kind": "text", "text": 1}, "text"),
        ({"kind": "data"}, "data"),
        ({"kind": "data", "data": "text"}, "data"),
        ({"kind": "data", "data": [1]}, "data"),
        ({"kind": "file"}, "file"),
        ({"kind": "file", "file": {}}, "file"),
        ({"kind": "file", "file": {"uri": ""}}, "file.uri"),
        ({"kind": "file", "file": {"bytes": "AP9i", "uri": "http://x.test/"}}, "file"),
        ({"kind": "file", "file": {"bytes": "IyEvYmluL2Jhc2gK..."}}, "file.bytes"),
        ({"kind": "file", "file": {"bytes": "AP9"}}, "file.bytes"),
        ({"kind": "file", "file": {"bytes": "AP9i===="}}, "file.bytes"),
        ({"kind": "file", "file": {"bytes": "Aé9i"}}, "file.bytes"),
        ({}, "kind"),
        ({"text": "x", "data": {}}, "kind"),
        ("text", ""),
    ],
    ids=repr,
)
def test_a_part_that_makes_no_sense_is_refused_and_named(dialect: Dialect, part: object, path: str) -> None:
    status, body = refusal(dialect, posted(rpc_body(SEND, _message(parts=[TEXT, part]))))
    assert (status, body["error"]["code"], body["id"]) == (200, -32602, "req-1")
    assert body["error"]["data"]["path"].startswith("message.parts[")
    assert body["error"]["data"]["path"].endswith(path)


@BOTH
@pytest.mark.req("D-19", "O-47")
@pytest.mark.parametrize(
    ("params", "path"),
    [
        (None, "message"),
        ([], "params"),
        ({"message": "hello"}, "message"),
        (_message(role="system"), "message.role"),
        (_message(role="ROLE_USER"), "message.role"),
        (_message(kind="task"), "message.kind"),
        (_message(parts=[]), "message.parts"),
        (_message(parts="hello"), "message.parts"),
        (_message(contextId=1), "message.contextId"),
        (_message(taskId="x" * 257), "message.taskId"),
        ({"message": {"role": "user"}}, "message.parts"),
        ({"message": {"parts": [TEXT]}}, "message.role"),
        ({**_message(), "configuration": {"blocking": "no"}}, "configuration.blocking"),
        ({**_message(), "configuration": {"historyLength": -1}}, "configuration.historyLength"),
    ],
    ids=repr,
)
def test_params_that_make_no_sense_are_refused_and_named(dialect: Dialect, params: object, path: str) -> None:
    status, body = refusal(dialect, posted(rpc_body(SEND, params)))
    assert (status, body["error"]["code"]) == (200, -32602)
    assert body["error"]["data"]["path"] == path
    assert body["error"]["data"]["reason"] == "validation_error"


@BOTH
def test_an_idempotency_key_that_is_no_key_is_refused(dialect: Dialect) -> None:
    _, body = refusal(dialect, posted(rpc_body(SEND, _message()), idempotency_key="x" * 257))
    assert body["error"]["code"] == -32602


@BOTH
@pytest.mark.req("D-16", "D-17")
def test_a_bare_message_gets_what_it_left_out(dialect: Dialect) -> None:
    task = sent(dialect, SEND, {"message": {"role": "user", "parts": [TEXT]}}, idempotency_key="k-1")
    assert task.message.id.startswith("msg-")
    assert len(task.message.id) == 16
    assert task == SendTask(
        message=Message(id=task.message.id, role=Role.USER, parts=(Text(text="hello"),)),
        agent="agt_x",
        wait=Wait.END,
        timeout_s=3600.0,
        idempotency_key="k-1",
    )


@BOTH
def test_everything_a_message_can_say_arrives(dialect: Dialect) -> None:
    hints = {
        "agent": "other",
        "skill": "search",
        "priority": "high",
        "timeout_ms": 1500,
        "parent": "p-1",
        "title": "no",
    }
    params = _message(
        role="agent",
        contextId="ctx-1",
        taskId="task-1",
        referenceTaskIds=["task-0"],
        extensions=["https://x.test/e"],
        timestamp="2026-01-12T11:00:00+01:00",
        metadata={"note": 1, HINTS: hints},
    )
    params |= {
        "configuration": {"blocking": False, "acceptedOutputModes": ["text/plain"], "historyLength": 3},
        "metadata": {"of": "params", HINTS: {"title": "T"}},
    }
    assert sent(dialect, SEND, params, agent=None) == SendTask(
        message=Message(
            id="m-1",
            role=Role.AGENT,
            parts=(Text(text="hello"),),
            at=AT,
            references=("task-0",),
            extensions=("https://x.test/e",),
            metadata={"note": 1},
        ),
        agent="other",
        skill="search",
        continues="task-1",
        context_id="ctx-1",
        wait=Wait.NONE,
        priority=Priority.HIGH,
        timeout_s=1.5,
        parent_id="p-1",
        title="T",
        accepts=("text/plain",),
        metadata={"of": "params"},
    )


@BOTH
def test_the_agent_in_the_url_is_the_one_that_is_meant(dialect: Dialect) -> None:
    assert sent(dialect, SEND, _message(metadata={HINTS: {"agent": "other"}})).agent == "agt_x"


@BOTH
@pytest.mark.req("D-17")
def test_one_who_does_not_wait_has_a_day(dialect: Dialect) -> None:
    task = sent(dialect, SEND, {**_message(), "configuration": {"blocking": False}})
    assert (task.wait, task.timeout_s) == (Wait.NONE, 86_400.0)
    assert sent(dialect, SEND, {**_message(), "configuration": {"blocking": None}}).wait is Wait.END


@BOTH
@given(message=MESSAGES)
def test_what_a_caller_sends_arrives_at_an_agent_of_the_same_dialect(dialect: Dialect, message: Message) -> None:
    task = with_asked(task_of({}), message=message, metadata={"of": "params"}, accepts=("text/plain",))
    request, _ = asked(dialect, outgoing(dialect, Verb.SEND, task))
    arrived = read(dialect, msgspec.structs.replace(posted(request.body), headers=request.headers)).operation
    assert isinstance(arrived, SendTask)
    assert arrived.message == message
    assert arrived.context_id == task.context_id
    assert arrived.skill == task.skill
    assert (arrived.metadata, arrived.accepts) == ({"of": "params"}, ("text/plain",))
    assert arrived.idempotency_key == task.id


@BOTH
@given(artifacts=st.lists(ARTIFACTS, max_size=2, unique_by=lambda each: each.id), state=st.sampled_from(TaskState))
def test_what_an_agent_answers_arrives_at_a_caller_of_the_same_dialect(
    dialect: Dialect, artifacts: list[Artifact], state: TaskState
) -> None:
    said = Message(id="s-1", role=Role.AGENT, parts=(Text(text="words"),))
    task = msgspec.structs.replace(task_of({}), artifacts=tuple(artifacts), state=state, status_message=said)
    shown = answer(dialect, "tasks/get", {"id": task.id}, task)
    reply = HttpReply(status=200, body=json.dumps({"jsonrpc": "2.0", "id": "1", "result": shown}).encode())
    back = dialect.hear(outgoing(dialect, Verb.GET, task), reply, LATER)
    assert back.settled is (state in FINAL or state in INTERRUPTED)
    last = back.events[-1]
    assert isinstance(last, StatusChanged)
    assert last.state is state
    assert last.message is not None
    assert last.message.parts == said.parts
    assert back.remote is not None
    assert (back.remote.task_id, back.remote.context_id) == (task.id, task.context_id)
    if back.settled:
        made = [event.artifact for event in back.events if isinstance(event, ArtifactChunk)]
        has_content = any(not isinstance(part, Text) or part.text for each in artifacts for part in each.parts)
        if has_content or state is not TaskState.COMPLETED:
            assert made == artifacts


@BOTH
@given(message=MESSAGES)
def test_the_agents_words_arrive_with_the_history(dialect: Dialect, message: Message) -> None:
    message = msgspec.structs.replace(message, role=Role.AGENT)
    task = msgspec.structs.replace(task_of({}), messages=(message,), state=TaskState.FAILED)
    shown = answer(dialect, "tasks/get", {"id": task.id}, task)
    reply = HttpReply(status=200, body=json.dumps({"jsonrpc": "2.0", "id": "1", "result": shown}).encode())
    back = dialect.hear(outgoing(dialect, Verb.GET, task_of({})), reply, LATER)
    said = [event.message for event in back.events if isinstance(event, MessageAdded)]
    assert said == [msgspec.structs.replace(message, at=LATER)]


@BOTH
def test_what_there_is_no_member_for_stands_in_metadata(dialect: Dialect) -> None:
    parts = (
        Data(value=[1, 2], media_type="application/x", filename="list"),
        Text(text="t", media_type="text/markdown"),
        Blob(raw=b"\x00\xffb", filename="b.bin", media_type="application/octet-stream", metadata={"n": 1}),
    )
    made = Artifact(id="a", kind="report", parts=parts, metadata={"m": 1})
    told = Message(id="m", role=Role.TOOL, parts=(Text(text="x"),), metadata={"m": 1})
    task = msgspec.structs.replace(task_of({}), artifacts=(made,), messages=(told,))
    shown = answer(dialect, "tasks/get", {"id": "x"}, task)
    assert shown["artifacts"] == [
        {
            "artifactId": "a",
            "parts": [
                {
                    "kind": "data",
                    "data": {"value": [1, 2]},
                    "metadata": {"data_part_compat": True, "mediaType": "application/x", "filename": "list"},
                },
                {"kind": "text", "text": "t", "metadata": {"mediaType": "text/markdown"}},
                {
                    "kind": "file",
                    "file": {
                        "bytes": b64encode(b"\x00\xffb").decode(),
                        "name": "b.bin",
                        "mimeType": "application/octet-stream",
                    },
                    "metadata": {"n": 1},
                },
            ],
            "metadata": {"m": 1, HINTS: {"kind": "report"}},
        }
    ]
    turn = shown["history"][1]
    assert (turn["role"], turn["metadata"]) == ("user", {"m": 1, HINTS: {"role": "tool"}})


@BOTH
def test_a_task_tells_its_progress_its_usage_and_why_it_failed(dialect: Dialect) -> None:
    failed = {"code": "AGENT_TIMEOUT", "message": "too slow", "details": {"timeout_ms": 5}, "retryable": True}
    task = task_of({"state": "failed", "failure": failed, "progress": 0.5, "usage": {"tokens": 7}})
    shown = answer(dialect, "tasks/get", {"id": "x"}, task)
    assert shown["metadata"] == {
        HINTS: {
            "progress": 0.5,
            "usage": {"tokens": 7},
            "failure": {"code": "AGENT_TIMEOUT", "retryable": True},
        }
    }
    said = shown["status"]["message"]
    assert (said if isinstance(said, str) else said["parts"][0]["text"]) == "too slow"


@BOTH
def test_nothing_that_is_shown_is_null(dialect: Dialect) -> None:
    task = task_of({"state": "completed", "artifacts": [{"id": "a", "parts": [{"type": "text", "text": "x"}]}]})
    assert "null" not in json.dumps(answer(dialect, "tasks/get", {"id": "x"}, task))


@BOTH
@pytest.mark.req("D-21")
def test_a_notification_is_answered_with_nothing(dialect: Dialect) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": SEND, "params": _message()}).encode()
    exchange = read(dialect, posted(body))
    assert isinstance(exchange.operation, SendTask)
    reply = exchange.reply(task_of({}))
    assert (reply.status, reply.body) == (204, b"")


@BOTH
@pytest.mark.req("D-22")
@pytest.mark.parametrize("request_id", ["req-1", 7, 0, "", None, 2**70])
def test_the_id_comes_back_as_it_was_sent(dialect: Dialect, request_id: object) -> None:
    for method in (SEND, "no/such"):
        exchange = read(dialect, posted(rpc_body(method, _message(), request_id)))
        reply = exchange.reply(task_of({})) if method == SEND else exchange.refuse(NotJson())
        assert msgspec.json.decode(reply.body)["id"] == request_id


NEARLY: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        ["user", "agent", "task", "message", "text", "file", "data", "completed", "AP9i", "", None, 1, True]
    )
    | st.sampled_from([-1, 2**70, 1.5, "2026-01-12T10:00:00", "task-1", TEXT, [TEXT]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(MEMBERS)), inner, max_size=6),
    max_leaves=20,
)


@BOTH
@given(params=NEARLY, method=st.sampled_from(["message/send", "tasks/get", "tasks/cancel", "message/stream"]))
def test_whatever_a_caller_sends_is_read_or_refused(dialect: Dialect, params: Any, method: str) -> None:
    exchange = read(dialect, posted(rpc_body(method, params)))
    if isinstance(exchange.operation, Unreadable):
        assert exchange.refuse(exchange.operation.error).status == 200
        assert exchange.operation.error.__traceback__ is None
    else:
        msgspec.json.encode(exchange.operation)


@BOTH
@given(message=NEARLY)
def test_whatever_a_message_says_is_read_or_refused(dialect: Dialect, message: Any) -> None:
    given_message: Any = {"role": "user", "parts": [TEXT], **message} if is_object(message) else message
    exchange = read(dialect, posted(rpc_body(SEND, {"message": given_message})))
    assert isinstance(exchange.operation, SendTask | Unreadable)


@BOTH
@given(value=NEARLY, status=st.sampled_from([200, 200, 200, 400, 401, 404, 429, 500, 503]))
@pytest.mark.parametrize("version", [None, "legacy-0.1", "slash"])
def test_whatever_an_agent_answers_is_heard_or_a_bad_reply(
    dialect: Dialect, value: Any, status: int, version: str | None
) -> None:
    task_with_it: Any = {"status": {}, "id": "T", "artifacts": [value]}
    for body in (value, {"result": value}, {"error": value}, {"result": task_with_it}):
        try:
            said = heard(dialect, body, status=status, version=version)
        except BadAgentReply as error:
            msgspec.json.encode(error.details)
            continue
        task = task_of({})
        answer(dialect, "tasks/get", {"id": "x"}, fold(task, legal(task.state, said.events)))
