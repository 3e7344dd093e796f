"""Envelopes that come in: what they mean, what is wrong with them, and how they are answered."""

import json
from typing import Any

import pytest

from dragoman.dialects.dialect import wire_error
from dragoman.dialects.envelope import DIALECT
from dragoman.model import errors
from dragoman.model.answers import Accepted, Mail, Noted, Pong
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.content import Data, Link, Message, Role, Text
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    DragomanError,
    IdempotencyConflict,
    NotAuthenticated,
    RateLimited,
    SkillNotFound,
    TaskNotCancelable,
    TaskNotFound,
    TooLarge,
)
from dragoman.model.events import ArtifactChunk, StatusChanged, Usage
from dragoman.model.operations import Ping, Priority, ReadMail, ReportTask, SendTask, Signed, Unreadable, Wait
from dragoman.model.states import TaskState
from tests.dialects.envelope_samples import (
    AT,
    MESSAGE_ID,
    ONE,
    TWO,
    assignment,
    example,
    exchange_of,
    message_of,
    named,
    operation_of,
    refusal_of,
    shown,
    task_of,
)

# -- the envelope itself


def test_only_json_is_taken() -> None:
    for kind in ("text/plain", ""):
        refused = refusal_of(message_of(), content_type=kind)
        assert (refused["http"], refused["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[1]", b'"text"', b"null"])
def test_a_body_that_is_no_object_is_refused_without_naming_a_message(body: bytes) -> None:
    refused = refusal_of(body)
    assert (refused["http"], refused["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")
    assert refused["payload"]["original_message_id"] is None


@pytest.mark.parametrize("member", ["version", "message_id", "timestamp", "from", "to", "type", "payload"])
@pytest.mark.parametrize("value", [..., None])
def test_a_missing_member_is_named(member: str, value: Any) -> None:
    refused = refusal_of(message_of(**{f"{member}_": value}))
    assert (refused["http"], refused["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")
    assert named(refused) == [member]
    assert refused["payload"]["original_message_id"] == (None if member == "message_id" else MESSAGE_ID)


@pytest.mark.parametrize("version", ["2.0.0", "1.0", 1, ["1.0.0"]])
def test_another_version_is_refused_with_the_one_that_is_spoken(version: object) -> None:
    refused = refusal_of(message_of(version=version))
    assert (refused["http"], refused["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")
    assert refused["payload"]["details"]["supported_versions"] == ["1.0.0"]


@pytest.mark.parametrize("message_id", [MESSAGE_ID, f"msg-{MESSAGE_ID}", MESSAGE_ID.upper()])
def test_a_message_id_is_a_uuid_bare_or_behind_msg(message_id: str) -> None:
    exchange = exchange_of(message_of(message_id=message_id))
    assert shown(exchange.reply(Pong(nonce="n")))["message_id"] == message_id


@pytest.mark.parametrize("message_id", ["msg-123", "not-a-uuid", "8a1b6f0e-3c2d-1f5a-9b7c-0d1e2f3a4b01", 7, ""])
def test_any_other_message_id_is_refused_unless_ids_are_lenient(message_id: object) -> None:
    refused = refusal_of(message_of(message_id=message_id))
    assert (refused["error_code"], named(refused)) == ("INVALID_MESSAGE_FORMAT", ["message_id"])
    lenient = operation_of(message_of(message_id=message_id), lenient=True)
    assert isinstance(lenient, Unreadable) is (message_id in (7, ""))


def test_a_lenient_id_has_an_end_too() -> None:
    assert isinstance(operation_of(message_of(message_id="x" * 128), lenient=True), Ping)
    assert named(refusal_of(message_of(message_id="x" * 129), lenient=True)) == ["message_id"]


@pytest.mark.parametrize(
    ("given", "read"), [(TWO, TWO), (f"agent-{TWO}", TWO), (TWO.upper(), TWO), ("analyst", "analyst"), ("agent-1",) * 2]
)
def test_a_party_is_a_uuid_bare_or_behind_agent_or_an_id(given: str, read: str) -> None:
    asked = operation_of(message_of("task_assignment", assignment(), to=given, from_=given))
    assert isinstance(asked, SendTask)
    assert (asked.agent, asked.sender) == (read, read)


@pytest.mark.parametrize("party", ["two words", "", "-x", "x" * 129, 5, {}])
@pytest.mark.parametrize("member", ["from", "to"])
def test_what_can_be_no_party_is_refused(member: str, party: Any) -> None:
    refused = refusal_of(message_of(**{f"{member}_": party}))
    assert (refused["http"], refused["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")
    assert named(refused) == [member]


@pytest.mark.parametrize(
    "timestamp",
    [
        "2024-02-05T15:30:00Z",
        "2024-02-05T15:30:00.123456Z",
        "2024-02-05T15:30+01:00",
        "20240205T153000Z",
        "2024-02-05T15:30:00,5-0330",
    ],
)
def test_a_timestamp_of_iso_8601_is_taken(timestamp: str) -> None:
    assert isinstance(operation_of(message_of(timestamp=timestamp)), Ping)


@pytest.mark.parametrize(
    "timestamp",
    ["yesterday", "2024-02-05", "2024-02-05T15:30:00", "2024-02-05 15:30:00Z", "2024-13-05T15:30:00Z", 1707147000],
)
def test_any_other_timestamp_is_refused(timestamp: object) -> None:
    refused = refusal_of(message_of(timestamp=timestamp))
    assert (refused["error_code"], named(refused)) == ("INVALID_MESSAGE_FORMAT", ["timestamp"])


@pytest.mark.parametrize("kind", ["greeting", "PING", 3, []])
def test_an_unknown_type_is_refused_with_those_there_are(kind: object) -> None:
    refused = refusal_of(message_of(type=kind))
    assert (refused["http"], refused["error_code"]) == (400, "UNSUPPORTED_MESSAGE_TYPE")
    assert "task_assignment" in refused["payload"]["details"]["supported_types"]


@pytest.mark.parametrize("payload", [[1], "text", 1, True])
def test_a_payload_that_is_no_object_is_refused(payload: object) -> None:
    refused = refusal_of(message_of(payload=payload))
    assert (refused["error_code"], named(refused)) == ("INVALID_MESSAGE_FORMAT", ["payload"])


def test_unknown_members_of_the_envelope_are_no_matter_and_a_signature_may_be_null() -> None:
    assert isinstance(operation_of(message_of(signature=None, color="red")), Ping)
    signed = operation_of(message_of(signature="c2ln"))
    assert isinstance(signed, Signed) and isinstance(signed.operation, Ping)
    assert (signed.signature, signed.sender) == ("c2ln", signed.operation.sender)


# -- payloads

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("task_assignment", assignment(extra=1), "payload.extra"),
    ("task_assignment", assignment(title=...), "payload.title"),
    ("task_assignment", assignment(task_id=5), "payload.task_id"),
    ("task_assignment", assignment(task_type=""), "payload.task_type"),
    ("task_assignment", assignment(payload="text"), "payload.payload"),
    ("task_assignment", assignment(priority="normal"), "payload.priority"),
    ("task_assignment", assignment(deadline="tomorrow"), "payload.deadline"),
    ("task_assignment", assignment(metadata=[]), "payload.metadata"),
    ("status_update", {"status": "assigned"}, "payload.task_id"),
    ("status_update", {"task_id": "t", "status": "running"}, "payload.status"),
    ("status_update", {"task_id": "t", "status": "assigned", "progress": 1.1}, "payload.progress"),
    ("status_update", {"task_id": "t", "status": "assigned", "progress": True}, "payload.progress"),
    ("status_update", {"task_id": "t", "status": "assigned", "message": {}}, "payload.message"),
    ("task_completion", {"task_id": "t", "status": "completed"}, "payload.result"),
    ("task_completion", {"task_id": "t", "status": "cancelled", "result": {}}, "payload.status"),
    ("task_completion", {"task_id": "t", "status": "failed", "result": "x"}, "payload.result"),
    (
        "task_completion",
        {"task_id": "t", "status": "failed", "result": {}, "execution_time_ms": -1},
        "payload.execution_time_ms",
    ),
    ("ping", {"echo": 1}, "payload.nonce"),
    ("ping", {"nonce": "n", "extra": 1}, "payload.extra"),
]


@pytest.mark.parametrize(("kind", "payload", "path"), WRONG)
def test_a_wrong_field_of_a_payload_is_named(kind: str, payload: dict[str, Any], path: str) -> None:
    refused = refusal_of(message_of(kind, payload))
    assert (refused["http"], refused["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
    assert named(refused) == [path]
    assert refused["payload"]["original_message_id"] == MESSAGE_ID


@pytest.mark.parametrize("member", ["original_message_id", "error_code", "error_message"])
def test_an_error_needs_its_three_fields_and_is_not_answered_by_another_error(member: str) -> None:
    payload = {name: value for name, value in example("error.strict")["payload"].items() if name != member}
    refused = refusal_of(message_of("error", payload))
    assert (refused["http"], refused["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
    assert member in refused["error"]
    assert "type" not in refused
    assert "payload" not in refused


def test_an_assignment_is_read_with_everything_it_says() -> None:
    payload = assignment(priority="urgent", deadline="2024-02-05T15:40:00+00:00", metadata={"session_id": "s"})
    assert operation_of(message_of("task_assignment", payload), x_request_id="req-1") == SendTask(
        message=Message(id=MESSAGE_ID, role=Role.USER, parts=(Data(value={"q": 1}),)),
        agent=TWO,
        skill="research",
        alias="task-456",
        wait=Wait.NONE,
        priority=Priority.URGENT,
        timeout_s=600.0,
        callback=Callback(id="cb_env-1", dialect="envelope", agent_id=ONE, sender=TWO, tells=Tells.STATES),
        title="Look",
        description="Look closely",
        sender=ONE,
        sender_registered=True,
        idempotency_key=f"{ONE} {MESSAGE_ID}",
        key_scope="envelope",
        request_id="req-1",
        metadata={"session_id": "s"},
    )


def test_optional_fields_that_are_null_are_not_there() -> None:
    payload = assignment(priority=None, deadline=None, metadata=None)
    asked = operation_of(message_of("task_assignment", payload))
    assert isinstance(asked, SendTask)
    assert (asked.priority, asked.timeout_s, asked.metadata) == (Priority.NORMAL, 86_400.0, None)


@pytest.mark.parametrize(
    ("deadline", "allowed_s"),
    [
        ("2024-02-05T15:30:00Z", 0.001),
        ("2020-01-01T00:00:00Z", 0.001),
        ("2024-02-05T16:30:00+01:00", 0.001),
        ("2024-02-05T15:30:01.5", 1.5),
        ("9999-12-31T23:59:59-12:00", 366 * 86_400.0),
    ],
)
def test_the_time_allowed_is_the_difference_of_two_times_of_the_sender(deadline: str, allowed_s: float) -> None:
    asked = operation_of(message_of("task_assignment", assignment(deadline=deadline)))
    assert isinstance(asked, SendTask)
    assert asked.timeout_s == allowed_s


def test_the_agent_of_the_url_is_the_one_that_is_meant() -> None:
    asked = operation_of(message_of("task_assignment", assignment()), agent="analyst")
    assert isinstance(asked, SendTask)
    assert asked.agent == "analyst"


def test_a_file_in_the_payload_is_a_file() -> None:
    listed = {"parts": [{"kind": "file", "file": {"uri": "http://files.test/a", "name": "a.txt"}}]}
    asked = operation_of(message_of("task_assignment", assignment(payload=listed)))
    assert isinstance(asked, SendTask)
    assert asked.message.parts == (Link(url="http://files.test/a", filename="a.txt"),)


def test_a_key_in_the_header_takes_the_place_of_the_message_id() -> None:
    asked = operation_of(message_of("task_assignment", assignment()), idempotency_key="k-1")
    assert isinstance(asked, SendTask)
    assert (asked.idempotency_key, asked.key_scope) == ("k-1", "key")


def test_another_hub_is_told_where_it_asks_to_be_told_and_its_block_goes_no_further() -> None:
    metadata = {"a": 1, "reply_to": "http://other.test", "dragoman": {"call_id": "x", "parent": "p", "timeout_ms": 7}}
    asked = operation_of(message_of("task_assignment", assignment(metadata=metadata)))
    assert isinstance(asked, SendTask)
    assert asked.callback is not None
    assert asked.callback.url == "http://other.test"
    assert (asked.metadata, asked.parent_id, asked.timeout_s) == ({"a": 1}, "p", 0.007)


def test_a_callers_own_reply_to_is_a_word_like_any_other() -> None:
    asked = operation_of(message_of("task_assignment", assignment(metadata={"reply_to": "http://me.test"})))
    assert isinstance(asked, SendTask)
    assert asked.callback is not None
    assert (asked.callback.url, asked.metadata) == (None, {"reply_to": "http://me.test"})


@pytest.mark.parametrize(
    ("status", "metadata", "state"),
    [
        ("created", None, TaskState.SUBMITTED),
        ("assigned", None, TaskState.SUBMITTED),
        ("in_progress", None, TaskState.WORKING),
        ("in_progress", {"awaiting": "input"}, TaskState.INPUT_REQUIRED),
        ("in_progress", {"awaiting": "auth"}, TaskState.AUTH_REQUIRED),
        ("in_progress", {"awaiting": "luck"}, TaskState.WORKING),
        ("completed", None, TaskState.COMPLETED),
        ("failed", None, TaskState.FAILED),
        ("cancelled", None, TaskState.CANCELED),
    ],
)
def test_an_update_is_a_state(status: str, metadata: dict[str, Any] | None, state: TaskState) -> None:
    told = operation_of(message_of("status_update", {"task_id": "t", "status": status, "metadata": metadata}))
    assert isinstance(told, ReportTask)
    (event,) = told.events
    assert isinstance(event, StatusChanged)
    assert event.state is state
    assert told.cancels is (status == "cancelled")
    assert (event.failure is not None) is (state is TaskState.FAILED)


def test_an_update_is_read_with_everything_it_says() -> None:
    told = operation_of(example("status-update.strict"))
    assert isinstance(told, ReportTask)
    assert (told.task_id, told.sender) == ("task-456", TWO)
    assert told.key == f"{TWO} 2f9c4d6e-7b1a-4c3d-8e5f-6a7b8c9d0124"
    (event,) = told.events
    assert isinstance(event, StatusChanged)
    assert event.message is not None
    assert event.message.parts == (Text(text="Gathering sources..."),)
    assert (event.progress, event.metadata, event.at) == (0.5, {"sources_found": 12}, AT)


def test_a_report_under_the_same_id_is_told_from_another_by_what_it_says() -> None:
    def digest(**changes: Any) -> bytes:
        told = operation_of(message_of("status_update", {"task_id": "t", "status": "in_progress", **changes}))
        assert isinstance(told, ReportTask)
        return told.digest

    assert digest() == digest()
    assert digest() != digest(progress=0.5)


def test_a_completion_brings_the_result() -> None:
    told = operation_of(example("task-completion.strict"))
    assert isinstance(told, ReportTask)
    made, done = told.events
    assert isinstance(made, ArtifactChunk)
    assert made.artifact.parts == (Data(value=example("task-completion.strict")["payload"]["result"]),)
    assert isinstance(done, StatusChanged)
    assert (done.state, done.metadata) == (TaskState.COMPLETED, {"confidence": 0.95})
    assert done.usage == Usage(execution_ms=3_600_000)


@pytest.mark.parametrize(
    ("result", "code", "message", "details"),
    [
        ({}, "AGENT_ERROR", "The agent failed.", None),
        ({"error": "boom"}, "AGENT_ERROR", "boom", {"agent_result": {"error": "boom"}}),
        ({"message": "boom"}, "AGENT_ERROR", "boom", {"agent_result": {"message": "boom"}}),
        (
            {"error": {"message": "boom"}, "partial": 1},
            "AGENT_ERROR",
            "boom",
            {"agent_result": {"error": {"message": "boom"}, "partial": 1}},
        ),
        ({"error": {"code": "TIMEOUT", "message": "slow"}}, "AGENT_TIMEOUT", "slow", None),
        ({"error": {"code": "E_OWN", "message": "own"}}, "AGENT_ERROR", "own", {"agent_code": "E_OWN"}),
        (
            {"error": {"code": "INTERNAL_ERROR", "message": "x", "details": {"self": 1, "message": 2, "a": 3}}},
            "AGENT_ERROR",
            "x",
            {"a": 3},
        ),
    ],
)
def test_a_failed_completion_says_why(
    result: dict[str, Any], code: str, message: str, details: dict[str, Any] | None
) -> None:
    told = operation_of(message_of("task_completion", {"task_id": "t", "status": "failed", "result": result}))
    assert isinstance(told, ReportTask)
    (event,) = told.events
    assert isinstance(event, StatusChanged)
    assert event.failure is not None
    assert (event.failure.code, event.failure.message, event.failure.details) == (code, message, details)


@pytest.mark.parametrize(("details", "task_id"), [({"task_id": "task-9"}, "task-9"), (None, "m-1")])
def test_an_error_is_about_the_task_or_the_message_it_names(details: dict[str, Any] | None, task_id: str) -> None:
    payload = {"original_message_id": "m-1", "error_code": "TIMEOUT", "error_message": "late", "details": details}
    told = operation_of(message_of("error", payload))
    assert isinstance(told, ReportTask)
    (event,) = told.events
    assert isinstance(event, StatusChanged)
    assert event.failure is not None
    assert (told.task_id, event.state, event.failure.code) == (task_id, TaskState.FAILED, "AGENT_TIMEOUT")


# -- the mailbox


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("", ReadMail()),
        ("?after=7&wait=1.5", ReadMail(after=7, wait_s=1.5)),
        ("?after=&wait=", ReadMail()),
        ("?wait=99", ReadMail(wait_s=30.0)),
        (f"?agent=agent-{ONE}", ReadMail(box=ONE)),
    ],
)
def test_the_mailbox_is_read_after_a_cursor_and_for_a_while(query: str, read: ReadMail) -> None:
    assert operation_of(b"", route="mailbox", url=f"/a2a/messages{query}") == read


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=²", "wait=-1", "wait=nan", "wait=x", "agent=a%20b"])
def test_a_wrong_look_into_the_mailbox_is_refused(query: str) -> None:
    refused = refusal_of(b"", route="mailbox", url=f"/a2a/messages?{query}")
    assert (refused["http"], refused["error_code"]) == (400, "PAYLOAD_VALIDATION_FAILED")
    assert named(refused) == [query.partition("=")[0]]


def test_mail_is_shown_as_it_would_have_been_posted() -> None:
    exchange = exchange_of(b"", route="mailbox", url="/a2a/messages")
    body = b'{"n":123456789012345678901234567890}'
    assert exchange.reply(Mail(messages=(body, b"{}"), cursor=9)).body == b'{"messages":[' + body + b',{}],"cursor":9}'


# -- answers


def test_an_assignment_is_acknowledged_as_the_example_has_it() -> None:
    exchange = exchange_of(example("task-assignment.strict"))
    answer = shown(exchange.reply(Accepted(task=task_of())))
    expected = example("ack-task-assignment")
    moments = {"processed_at": "2026-01-12T10:00:00.000Z", "timestamp": "2026-01-12T10:00:00.000Z"}
    assert answer == {"http": 200, **expected, **moments}
    assert list(answer)[1:] == list(expected)


def test_a_repeated_assignment_gets_the_very_first_answer() -> None:
    again = exchange_of(message_of("task_assignment", assignment()))
    task = task_of(created_at=AT.replace(year=2025), updated_at=AT)
    assert shown(again.reply(Accepted(task=task)))["processed_at"] == "2025-01-12T10:00:00.000Z"
    another = exchange_of(message_of("task_assignment", assignment(), message_id=ONE))
    assert shown(another.reply(Accepted(task=task)))["processed_at"] == "2026-01-12T10:00:00.000Z"


def test_a_ping_is_echoed_as_the_example_has_it() -> None:
    exchange = exchange_of(example("ping.strict"))
    assert exchange.operation == Ping(agent=TWO, sender=ONE, nonce="random-string", echo="optional-data-to-echo-back")
    answer = shown(exchange.reply(Pong(nonce="random-string", echo="optional-data-to-echo-back")))
    moments = {"processed_at": "2026-01-12T10:00:00.000Z", "timestamp": "2026-01-12T10:00:00.000Z"}
    assert answer == {"http": 200, **example("ack-ping"), **moments}


@pytest.mark.parametrize("echo", [{"echo": None}, {"echo": [1, 2**70]}, {}])
def test_a_ping_is_echoed_with_exactly_what_it_had(echo: dict[str, Any]) -> None:
    payload = {"nonce": "n", **echo}
    answer = json.loads(exchange_of(message_of("ping", payload)).reply(Pong(nonce="n")).body)
    assert answer["payload"] == payload
    assert {name: answer[name] for name in ("nonce", "echo") if name in answer} == payload


def test_a_report_is_acknowledged_plainly_and_a_late_one_says_that_it_changed_nothing() -> None:
    exchange = exchange_of(example("status-update.strict"))
    plain = {**example("ack-plain"), "processed_at": "2026-01-12T10:00:00.000Z", "http": 200}
    assert shown(exchange.reply(Noted(task=task_of()))) == plain
    assert shown(exchange.reply(Noted(task=task_of(), applied=False))) == {**plain, "applied": False}
    assert shown(exchange.refuse(TaskNotCancelable())) == {**plain, "applied": False}


def test_a_refusal_is_an_error_envelope_as_the_example_has_it() -> None:
    exchange = exchange_of(example("task-assignment.strict"))
    expected = example("error-answer")
    refused = exchange.refuse(SkillNotFound(expected["error"], supported=["analysis", "writing"]))
    answer = shown(refused)
    assert answer["message_id"] not in (expected["message_id"], expected["payload"]["original_message_id"])
    expected["message_id"], expected["timestamp"] = answer["message_id"], "2026-01-12T10:00:00.000Z"
    expected["payload"]["details"]["reason"] = "skill_not_found"
    assert answer == {"http": 400, **expected}


TABLE: list[tuple[DragomanError, int, str]] = [
    (SkillNotFound(), 400, "INVALID_TASK_TYPE"),
    (AgentNotFound(agent_id=TWO), 404, "AGENT_NOT_FOUND"),
    (TaskNotFound(), 404, "TASK_NOT_FOUND"),
    (errors.CapabilityMismatch(), 403, "CAPABILITY_MISMATCH"),
    (errors.ContentRefused(), 400, "CAPABILITY_MISMATCH"),
    (errors.InputRefused(), 400, "PAYLOAD_VALIDATION_FAILED"),
    (errors.TaskFinished(), 400, "PAYLOAD_VALIDATION_FAILED"),
    (errors.CallLoop(), 400, "PAYLOAD_VALIDATION_FAILED"),
    (IdempotencyConflict(), 400, "PAYLOAD_VALIDATION_FAILED"),
    (NotAuthenticated(), 401, "AUTHENTICATION_REQUIRED"),
    (errors.NotAuthorized(), 403, "CAPABILITY_MISMATCH"),
    (TooLarge(), 413, "INVALID_MESSAGE_FORMAT"),
    (RateLimited(), 429, "RATE_LIMITED"),
    (AgentTimeout(), 500, "TIMEOUT"),
    (errors.CircuitOpen(), 500, "INTERNAL_ERROR"),
    (AgentError(), 500, "INTERNAL_ERROR"),
    (errors.Overloaded(), 503, "INTERNAL_ERROR"),
    (DragomanError(), 500, "INTERNAL_ERROR"),
]


@pytest.mark.parametrize(("error", "status", "code"), TABLE, ids=lambda each: type(each).__name__)
def test_every_error_has_its_code_and_status(error: DragomanError, status: int, code: str) -> None:
    refused = exchange_of(message_of("task_assignment", assignment())).refuse(error)
    answer = shown(refused)
    assert (answer["http"], answer["error_code"], answer["status"]) == (status, code, "error")
    assert answer["error"] == answer["payload"]["error_message"] == error.message
    assert answer["payload"]["error_code"] == code
    assert answer["payload"]["original_message_id"] == MESSAGE_ID
    assert (answer["from"], answer["to"], answer["type"]) == (TWO, ONE, "error")
    assert (b"retry-after" in refused.headers) is (error.retry_after_s is not None)
    assert (b"www-authenticate" in refused.headers) is (status == 401)


def test_the_codes_are_those_of_the_document_and_two_more() -> None:
    document = {
        *("INVALID_MESSAGE_FORMAT", "UNSUPPORTED_MESSAGE_TYPE", "INVALID_TASK_TYPE", "TASK_NOT_FOUND"),
        *("AGENT_NOT_FOUND", "CAPABILITY_MISMATCH", "PAYLOAD_VALIDATION_FAILED", "TIMEOUT", "INTERNAL_ERROR"),
    }
    every = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DragomanError)]
    assert {wire_error(DIALECT.errors, each())[0] for each in every} == {
        *document,
        "AUTHENTICATION_REQUIRED",
        "RATE_LIMITED",
    }


@pytest.mark.parametrize("member", ["from", "to"])
def test_a_word_that_nobody_has_is_no_party_but_a_uuid_that_nobody_has_is_an_unknown_one(member: str) -> None:
    word = exchange_of(message_of("task_assignment", assignment(), **{f"{member}_": "nobody"}))
    refused = shown(word.refuse(AgentNotFound(agent_id="nobody")))
    assert (refused["http"], refused["error_code"]) == (400, "INVALID_MESSAGE_FORMAT")
    known = exchange_of(message_of("task_assignment", assignment()), agent="elsewhere")
    assert shown(known.refuse(AgentNotFound(agent_id="elsewhere")))["http"] == 404


def test_an_error_about_an_unknown_task_is_taken_all_the_same() -> None:
    exchange = exchange_of(example("error.strict"))
    assert shown(exchange.refuse(TaskNotFound())) == {
        "http": 200,
        "status": "success",
        "message_id": "2f9c4d6e-7b1a-4c3d-8e5f-6a7b8c9d0127",
        "processed_at": "2026-01-12T10:00:00.000Z",
    }
    refused = shown(exchange.refuse(NotAuthenticated()))
    assert (refused["http"], refused["error_code"], "payload" in refused) == (401, "AUTHENTICATION_REQUIRED", False)
