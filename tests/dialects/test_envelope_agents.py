"""The envelope towards agents and givers of tasks: assignments, what agents answer, and what is told later."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from dragoman.dialects.dialect import Heard, Verb
from dragoman.dialects.envelope import DIALECT
from dragoman.dialects.uuids import is_uuid4
from dragoman.model.agent import Endpoint
from dragoman.model.answers import Pong
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import AgentError, AgentTimeout, BadAgentReply, Failure, InputRefused, SkillNotFound
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, StatusChanged, TaskEvent, Usage
from dragoman.model.http import HttpReply
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import Priority, ReportTask, SendTask
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task
from tests.dialects.envelope_samples import (
    AT,
    HUB,
    HUB_ID,
    LATER,
    MESSAGE_ID,
    ONE,
    TWO,
    asked_of,
    example,
    notice_of,
    operation_of,
    outgoing_of,
    task_of,
    told_of,
)

# -- what an agent is sent


def test_an_assignment_has_every_field_of_the_document() -> None:
    request, sent = asked_of(outgoing_of())
    assert (request.method, request.url) == ("POST", "http://agent.test/a2a/messages")
    assert request.headers[b"idempotency-key"] == b"env-1"
    assert is_uuid4(sent.pop("message_id"))
    assert sent == {
        "version": "1.0.0",
        "timestamp": "2026-01-12T10:00:00.000Z",
        "from": HUB_ID,
        "to": TWO,
        "type": "task_assignment",
        "payload": {
            "task_id": "env-1",
            "task_type": "research",
            "title": "research",
            "description": "research",
            "payload": {"q": 1},
            "priority": "medium",
            "deadline": "2026-01-12T10:00:30.000Z",
            "metadata": {"reply_to": HUB, "dragoman": {"call_id": "env-1", "skill": "research"}},
        },
    }


def test_a_message_that_is_sent_again_is_the_same_to_the_last_byte() -> None:
    task = task_of(TaskState.SUBMITTED, deadline=AT + timedelta(seconds=30))
    first = asked_of(outgoing_of(task=task))[0]
    again = asked_of(outgoing_of(task=task, at=LATER + timedelta(seconds=5), attempt=2, timeout_ms=20_000))[0]
    assert again.body == first.body
    assert again.headers[b"idempotency-key"] == first.headers[b"idempotency-key"]


def test_a_message_that_continues_is_another_one_about_the_same_task() -> None:
    task = task_of(TaskState.WORKING)
    more = Message(id="m-2", role=Role.USER, parts=(Text(text="the second"),))
    asked = SendTask(message=more, continues="env-1", alias="task-456")
    first, began = asked_of(outgoing_of(task=task))
    request, sent = asked_of(outgoing_of(task=task, asked=asked, message=more))
    assert sent["payload"]["task_id"] == began["payload"]["task_id"] == "env-1"
    assert sent["message_id"] != began["message_id"]
    assert request.headers[b"idempotency-key"] == sent["message_id"].encode() != first.headers[b"idempotency-key"]
    assert sent["payload"]["payload"] == {"text": "the second"}


@pytest.mark.parametrize(
    ("url", "posted"),
    [
        ("http://a.test", "http://a.test/a2a/messages"),
        ("http://a.test/", "http://a.test/a2a/messages"),
        ("http://a.test/a2a", "http://a.test/a2a/messages"),
        ("http://a.test/a2a/messages", "http://a.test/a2a/messages"),
        ("http://a.test/a2a/messages/", "http://a.test/a2a/messages"),
        ("http://a.test/x?k=1", "http://a.test/x/a2a/messages?k=1"),
    ],
)
def test_the_path_of_messages_is_not_doubled(url: str, posted: str) -> None:
    endpoint = Endpoint(dialect="envelope", url=url, tenant=TWO)
    assert asked_of(outgoing_of(endpoint=endpoint))[0].url == posted
    assert DIALECT.probe is not None
    assert DIALECT.probe(url).url == posted


def test_an_agent_without_an_id_of_its_own_is_called_as_the_hub_calls_it() -> None:
    endpoint = Endpoint(dialect="envelope", url="http://agent.test")
    assert asked_of(outgoing_of(endpoint=endpoint))[1]["to"] == "analyst"


def test_cancelling_is_an_update_and_asking_how_far_it_is_has_no_word() -> None:
    request, sent = asked_of(outgoing_of(Verb.CANCEL, reason="no longer needed"))
    assert request.url == "http://agent.test/a2a/messages"
    assert sent["type"] == "status_update"
    assert sent["payload"] == {"task_id": "env-1", "status": "cancelled", "message": "no longer needed"}
    assert DIALECT.ask(outgoing_of(Verb.GET)) is None


# -- and back: what the hub sends, the hub reads


def _asked(message: Message, **changes: Any) -> SendTask:
    return SendTask(message=message, skill="research", **changes)


@pytest.mark.parametrize(
    ("parts", "read"),
    [
        ((Data(value={"q": 2**70, "x": [None]}),), None),
        ((Data(value={}),), None),
        ((Link(url="http://f.test/a", filename="a", media_type="text/plain"),), None),
        ((Blob(raw=b"\x00\xff", filename="b"),), None),
        ((Text(text="look"), Link(url="http://f.test/a")), None),
        ((Text(text="look"),), (Data(value={"text": "look"}),)),
        ((Data(value=[1]),), (Data(value={"parts": [{"kind": "data", "data": [1]}]}),)),
    ],
)
def test_content_that_is_sent_is_read_again(parts: tuple[Part, ...], read: tuple[Part, ...] | None) -> None:
    message = Message(id="m-1", role=Role.USER, parts=parts)
    again = operation_of(asked_of(outgoing_of(asked=_asked(message), message=message))[1])
    assert isinstance(again, SendTask)
    assert again.message.parts == (read or parts)


@pytest.mark.parametrize("title", [None, "", "A title", "research"])
@pytest.mark.parametrize("description", [None, "", "A title", "Something else"])
@pytest.mark.parametrize("priority", list(Priority))
def test_what_is_asked_is_read_again(title: str | None, description: str | None, priority: Priority) -> None:
    message = Message(id=MESSAGE_ID, role=Role.USER, parts=(Data(value={"q": 1}),))
    asked = _asked(message, title=title, description=description, priority=priority, metadata={"a": [1]})
    sent = asked_of(outgoing_of(task=task_of(TaskState.SUBMITTED, asked=asked)))[1]
    again = operation_of(sent)
    assert isinstance(again, SendTask)
    assert (again.skill, again.priority, again.metadata) == ("research", priority, {"a": [1]})
    assert again.timeout_s == 30.0
    assert again.callback is not None
    assert again.callback.url == HUB
    # A title that only repeats the task's type, and a description that repeats the title, are made again on sending.
    onwards = asked_of(outgoing_of(task=task_of(TaskState.SUBMITTED, asked=again)))[1]
    for name in ("title", "description"):
        assert onwards["payload"][name] == sent["payload"][name]


# -- what an agent answers


def _heard(body: object, status: int = 200, **headers: str) -> Heard:
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return DIALECT.hear(outgoing_of(), HttpReply(status=status, headers=sent, body=encoded), LATER)


def _state(heard: Heard) -> TaskState:
    last = heard.events[-1]
    assert isinstance(last, StatusChanged)
    return last.state


def _failure(heard: Heard) -> Failure:
    last = heard.events[-1]
    assert isinstance(last, StatusChanged)
    assert heard.settled
    assert last.failure is not None
    return last.failure


@pytest.mark.parametrize(
    "body",
    [
        example("ack-task-assignment"),
        example("ack-plain"),
        b"",
        {},
        {"status": "success", "error": None},
        {"status": "accepted", "task_id": "t"},
    ],
)
def test_an_acknowledgement_settles_nothing(body: object) -> None:
    heard = _heard(body)
    assert (heard.settled, _state(heard), heard.remote) == (False, TaskState.SUBMITTED, Remote(task_id="env-1"))


def test_an_acknowledgement_may_say_how_far_the_agent_is() -> None:
    heard = _heard({**example("ack-task-assignment"), "payload": {"task_id": "x", "status": "in_progress"}})
    assert (heard.settled, _state(heard)) == (False, TaskState.WORKING)
    asks = {"task_id": "x", "status": "in_progress", "message": "Which?", "metadata": {"awaiting": "input"}}
    heard = _heard({"type": "status_update", "payload": asks})
    assert (heard.settled, _state(heard)) == (True, TaskState.INPUT_REQUIRED)


@pytest.mark.parametrize(
    "body",
    [
        example("task-completion.strict"),
        {**example("ack-plain"), **example("task-completion.strict")},
        example("task-completion.strict")["payload"],
        {"status": "success", "payload": example("task-completion.strict")["payload"]},
    ],
)
def test_an_answer_that_is_a_completion_settles_the_task(body: object) -> None:
    heard = _heard(body)
    made, done = heard.events
    assert heard.settled
    assert isinstance(made, ArtifactChunk)
    assert made.artifact.parts == (Data(value=example("task-completion.strict")["payload"]["result"]),)
    assert isinstance(done, StatusChanged)
    assert (done.state, done.usage) == (TaskState.COMPLETED, Usage(execution_ms=3_600_000))


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ({"text": "hi"}, (Data(value={"text": "hi"}),)),
        (None, (Data(value={}),)),
        ("hi", (Data(value={"result": "hi"}),)),
        ([1], (Data(value={"result": [1]}),)),
    ],
)
def test_a_result_that_is_no_object_is_taken_all_the_same(result: object, parts: tuple[Part, ...]) -> None:
    heard = _heard({"type": "task_completion", "payload": {"status": "completed", "result": result}})
    made = heard.events[0]
    assert isinstance(made, ArtifactChunk)
    assert made.artifact.parts == parts


@pytest.mark.parametrize(
    ("code", "status", "ours", "retryable"),
    [
        ("INVALID_TASK_TYPE", 400, "SKILL_NOT_FOUND", False),
        ("PAYLOAD_VALIDATION_FAILED", 400, "VALIDATION_ERROR", False),
        ("CAPABILITY_MISMATCH", 400, "CONTENT_NOT_SUPPORTED", False),
        ("INVALID_MESSAGE_FORMAT", 400, "AGENT_ERROR", False),
        ("UNSUPPORTED_MESSAGE_TYPE", 400, "AGENT_ERROR", False),
        ("AGENT_NOT_FOUND", 404, "AGENT_ERROR", False),
        ("TASK_NOT_FOUND", 404, "AGENT_ERROR", False),
        ("TIMEOUT", 500, "AGENT_TIMEOUT", True),
        ("INTERNAL_ERROR", 500, "AGENT_ERROR", True),
        ("RATE_LIMITED", 429, "RATE_LIMITED", True),
        ("INTERNAL_ERROR", 503, "AGENT_UNAVAILABLE", True),
        ("CAPABILITY_MISMATCH", 403, "AGENT_ERROR", False),
        ("INVALID_TASK_TYPE", 200, "SKILL_NOT_FOUND", False),
    ],
)
def test_an_agents_error_keeps_its_meaning(code: str, status: int, ours: str, retryable: bool) -> None:
    answer = example("error-answer")
    answer["error_code"] = answer["payload"]["error_code"] = code
    failure = _failure(_heard(answer, status))
    assert (failure.code, failure.retryable, failure.message) == (ours, retryable, answer["error"])
    bare = {"error": answer["error"], "error_code": code, "status": "error"}
    assert _failure(_heard(bare, status)).code == ours


def test_a_wrong_task_type_names_those_there_are() -> None:
    assert _failure(_heard(example("error-answer"), 400)).details == {
        "supported": ["analysis", "writing"],
        "agent_status": 400,
    }


@pytest.mark.parametrize(
    ("body", "status"), [(b"<html>", 500), (b"[]", 404), ({"detail": "Not Found"}, 404), (b"", 500)]
)
def test_an_error_in_other_words_is_the_agents_failure(body: object, status: int) -> None:
    failure = _failure(_heard(body, status))
    assert (failure.code, failure.details) == ("AGENT_ERROR", {"agent_status": status})


def test_an_agent_that_is_busy_says_when_to_come_back() -> None:
    assert _failure(_heard(b"", 429, retry_after="7")).details == {"retry_after": 7, "agent_status": 429}


def test_an_agent_that_refuses_the_hub_does_not_refuse_its_caller() -> None:
    details = _failure(_heard(example("error-answer"), 401)).details
    assert details == {"reason": "agent_refused_hub", "agent_status": 401}


@pytest.mark.parametrize("body", [b"OK", b"[]", b'"taken"', b"\xff"])
def test_what_is_no_object_is_no_answer(body: bytes) -> None:
    with pytest.raises(BadAgentReply):
        _heard(body)


# -- what the giver of a task is told


@pytest.mark.parametrize(
    ("state", "event", "kind", "payload"),
    [
        (TaskState.SUBMITTED, {}, "status_update", {"status": "assigned"}),
        (
            TaskState.WORKING,
            {"progress": 0.5, "metadata": {"sources_found": 12}},
            "status_update",
            {"status": "in_progress", "progress": 0.5, "metadata": {"sources_found": 12}},
        ),
        (
            TaskState.INPUT_REQUIRED,
            {"message": Message(id="q", role=Role.AGENT, parts=(Text(text="Which?"),))},
            "status_update",
            {"status": "in_progress", "message": "Which?", "metadata": {"awaiting": "input"}},
        ),
        (
            TaskState.AUTH_REQUIRED,
            {},
            "status_update",
            {"status": "in_progress", "metadata": {"awaiting": "auth"}},
        ),
        (TaskState.CANCELED, {}, "status_update", {"status": "cancelled"}),
        (
            TaskState.COMPLETED,
            {"metadata": {"confidence": 0.95}},
            "task_completion",
            {
                "status": "completed",
                "result": {},
                "execution_time_ms": 2500,
                "metadata": {"confidence": 0.95},
            },
        ),
        (
            TaskState.REJECTED,
            {},
            "task_completion",
            {
                "status": "failed",
                "result": {
                    "error": {
                        "code": "INTERNAL_ERROR",
                        "message": "The agent rejected the task.",
                        "details": {"reason": "rejected"},
                    }
                },
                "execution_time_ms": 2500,
            },
        ),
    ],
)
def test_every_state_is_told_in_the_documents_words(
    state: TaskState, event: dict[str, Any], kind: str, payload: dict[str, Any]
) -> None:
    told = told_of(task_of(state), **event)
    assert is_uuid4(told.pop("message_id"))
    assert told == {
        "version": "1.0.0",
        "timestamp": "2026-01-12T10:00:02.500Z",
        "from": HUB_ID,
        "to": ONE,
        "type": kind,
        "payload": {"task_id": "task-456", **payload},
    }


def test_a_task_without_a_name_of_its_givers_is_told_by_the_hubs() -> None:
    asked = SendTask(message=Message(id="m", role=Role.USER, parts=()))
    assert told_of(task_of(asked=asked))["payload"]["task_id"] == "env-1"


def test_only_changes_of_state_are_told() -> None:
    assert DIALECT.notify is not None
    said = MessageAdded(at=AT, message=Message(id="m", role=Role.AGENT, parts=()))
    assert DIALECT.notify(notice_of(said, task_of())) is None


def test_what_is_told_again_is_the_same_message_and_the_next_is_another() -> None:
    assert DIALECT.notify is not None
    event, task = StatusChanged(at=AT, state=TaskState.WORKING), task_of()
    later = msgspec.structs.replace(notice_of(event, task), at=LATER + timedelta(hours=1))
    first, again, other = map(DIALECT.notify, (notice_of(event, task), later, notice_of(event, task, seq=4)))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first == again
    assert json.loads(first.body)["message_id"] != json.loads(other.body)["message_id"]
    assert first.url == "http://caller.test/a2a/messages"


def test_a_mailbox_gets_the_same_words() -> None:
    assert DIALECT.notify is not None
    event, task = StatusChanged(at=AT, state=TaskState.WORKING), task_of()
    posted, kept = (DIALECT.notify(notice_of(event, task, url=url)) for url in ("http://caller.test", ""))
    assert posted is not None
    assert kept is not None
    assert (posted.body, kept.url) == (kept.body, "")


# -- and back: what the hub tells, the hub reads


def _told_again(task: Task, event: StatusChanged) -> tuple[TaskEvent, ...]:
    assert DIALECT.notify is not None
    request = DIALECT.notify(notice_of(event, task))
    assert request is not None
    told = operation_of(request.body)
    assert isinstance(told, ReportTask)
    return told.events


@pytest.mark.parametrize("state", list(TaskState))
def test_a_state_that_is_told_is_read_again(state: TaskState) -> None:
    failure = AgentError("it broke").failure() if state is TaskState.FAILED else None
    task = task_of(state, failure=failure)
    last = _told_again(task, StatusChanged(at=AT, state=state, failure=failure, progress=0.5))[-1]
    assert isinstance(last, StatusChanged)
    lost = {TaskState.REJECTED: TaskState.FAILED}
    assert last.state is lost.get(state, state)
    assert {loss.facet for loss in DIALECT.losses if loss.facet.startswith("state:")} == {"state:rejected"}
    assert last.progress == (None if state in FINAL - {TaskState.CANCELED} else 0.5)


@pytest.mark.parametrize(
    "error",
    [
        AgentError("it broke"),
        AgentError("it broke", retryable=True, fact=[1]),
        AgentError("no", reason="rejected"),
        AgentTimeout("too late", timeout_ms=5),
        SkillNotFound("no such", supported=["a"]),
        InputRefused("wrong", errors=[{"path": "q", "message": "required"}]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_that_is_told_is_read_again(error: AgentError) -> None:
    failure = error.failure()
    task = task_of(TaskState.FAILED, failure=failure)
    (last,) = _told_again(task, StatusChanged(at=AT, state=TaskState.FAILED, failure=failure))
    assert isinstance(last, StatusChanged)
    assert last.failure == failure


@pytest.mark.parametrize(
    "result", [{"error": "boom"}, {"partial": [1], "error": {"code": "X", "message": "boom"}}, {"why": None}]
)
def test_the_result_of_a_failed_task_arrives_as_its_agent_sent_it(result: dict[str, Any]) -> None:
    completion = {**example("task-completion.strict")}
    completion["payload"] = {"task_id": "env-1", "status": "failed", "result": result}
    told = operation_of(completion)
    assert isinstance(told, ReportTask)
    task = fold(task_of(), legal(TaskState.WORKING, told.events))
    assert told_of(task)["payload"]["result"] == result


@pytest.mark.parametrize(
    ("parts", "result"),
    [
        ((Data(value={"a": 2**70}),), {"a": 2**70}),
        ((Text(text="a "), Text(text="b")), {"text": "a b"}),
        ((Link(url="http://f.test/a"),), {"parts": [{"kind": "file", "file": {"uri": "http://f.test/a"}}]}),
        ((), {}),
    ],
)
def test_an_answer_is_told_as_one_object(parts: tuple[Part, ...], result: dict[str, Any]) -> None:
    task = task_of(TaskState.COMPLETED, artifacts=(Artifact(id="r", parts=parts),))
    assert told_of(task)["payload"]["result"] == result
    made = _told_again(task, StatusChanged(at=AT, state=TaskState.COMPLETED))[0]
    assert isinstance(made, ArtifactChunk)
    again = msgspec.structs.replace(task, artifacts=(made.artifact,))
    assert told_of(again)["payload"]["result"] == result


def test_the_fields_of_a_completion_arrive_as_its_agent_sent_them() -> None:
    sent = example("task-completion.strict")
    told = operation_of(sent)
    assert isinstance(told, ReportTask)
    task = fold(task_of(), legal(TaskState.WORKING, told.events))
    assert DIALECT.notify is not None
    request = DIALECT.notify(notice_of(told.events[-1], task))
    assert request is not None
    assert json.loads(request.body)["payload"] == sent["payload"]


# -- is it spoken there?


@pytest.mark.parametrize(
    ("status", "body", "spoken"),
    [
        (200, {"status": "success", "nonce": "dragoman-probe"}, True),
        (200, {"type": "ping", "payload": {"nonce": "dragoman-probe"}}, True),
        (404, example("error-answer"), True),
        (401, {}, True),
        (200, {"status": "success"}, False),
        (404, {"detail": "Not Found"}, False),
        (200, [], False),
    ],
)
def test_a_ping_tells_whether_the_envelope_is_spoken(status: int, body: object, spoken: bool) -> None:
    assert DIALECT.answers_probe is not None
    assert DIALECT.answers_probe(HttpReply(status=status, body=json.dumps(body).encode())) is spoken
    assert DIALECT.answers_probe(HttpReply(status=500, body=b"<html>")) is False


def test_the_hub_answers_its_own_probe() -> None:
    assert DIALECT.probe is not None
    assert DIALECT.answers_probe is not None
    assert DIALECT.read is not None
    exchange = DIALECT.read(msgspec.structs.replace(DIALECT.probe("http://a.test"), route="messages", at=AT))
    assert DIALECT.answers_probe(exchange.reply(Pong(nonce="dragoman-probe")))
