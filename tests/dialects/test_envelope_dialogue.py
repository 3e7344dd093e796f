"""Envelopes and acknowledgements on one connection: told apart at one look, and what an acknowledgement reports."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.dialogue import UNREADABLE, Glance
from dragoman.dialects.envelope import DIALECT
from dragoman.dialects.envelope.dialogue import glance, report
from dragoman.model.events import StatusChanged
from dragoman.model.http import HttpRequest
from dragoman.model.operations import ReportTask
from dragoman.model.states import TaskState
from tests.dialects.envelope_samples import AT, MESSAGE_ID, example, message_of

SENT: Final = example("task-assignment.strict")


def frame(**members: Any) -> bytes:
    return json.dumps(members).encode()


def test_a_message_an_acknowledgement_and_rubbish_are_told_apart() -> None:
    update = {"task_id": "t-1", "status": "in_progress"}
    error = {"original_message_id": "m-2", "error_code": "X", "error_message": "x"}
    assert glance(frame(message_id="m-1", type="status_update", payload=update)) == Glance(id="m-1", about="t-1")
    assert glance(frame(status="success", message_id="m-1")) == Glance(id="m-1", answers="m-1", speaks=False)
    assert glance(frame(status="error", message_id="m-1")) == Glance(id="m-1", answers="m-1", speaks=False)
    assert glance(frame(message_id="m-1", type="error", payload=error)) == Glance(id="m-1", answers="m-2")
    assert glance(frame(status="error", message_id="m-1", type="error", payload=error)).answers == "m-2"
    assert glance(frame(status="success", message_id="m-1", type="status_update", payload=update)) == Glance(
        id="m-1", answers="m-1", about="t-1"
    )
    traced = {"task_id": "t-1", "metadata": {"dragoman": {"traceparent": "00-1-2-01"}}}
    assert glance(frame(message_id="m-1", type="ping", payload=traced)).trace == "00-1-2-01"
    odd_ones: list[Any] = [[], {"dragoman": 1}, {"dragoman": {"traceparent": 1}}]
    for metadata in odd_ones:
        assert glance(frame(message_id="m-1", type="ping", payload={"metadata": metadata})).trace is None
    for rubbish in (b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000):
        assert glance(rubbish) == UNREADABLE
    for odd in (frame(), frame(status="success"), frame(status="success", message_id=1), frame(payload=[1])):
        assert glance(odd).answers is None


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), lambda inner: st.lists(inner)).map(json.dumps))
def test_any_frame_can_be_looked_at(anything: bytes | str) -> None:
    glance(anything if isinstance(anything, bytes) else anything.encode())


def reported(ack: dict[str, Any]) -> ReportTask:
    """What the hub reads where an agent acknowledges the document's assignment so."""
    body = report(json.dumps(SENT).encode(), json.dumps(ack).encode())
    assert body is not None
    assert DIALECT.read is not None
    headers = {b"content-type": b"application/json"}
    request = HttpRequest(method="POST", url="/", headers=headers, body=body, id="r", at=AT, route="messages")
    operation = DIALECT.read(request).operation
    assert isinstance(operation, ReportTask), operation
    assert (operation.task_id, operation.sender) == (SENT["payload"]["task_id"], SENT["to"])
    return operation


def last(operation: ReportTask) -> StatusChanged:
    event = operation.events[-1]
    assert isinstance(event, StatusChanged)
    return event


@pytest.mark.parametrize(
    "ack",
    [
        {"status": "success", "message_id": MESSAGE_ID},
        {"status": "success", "message_id": MESSAGE_ID, "type": "status_update", "payload": {"status": "assigned"}},
        {"status": "success", "message_id": MESSAGE_ID, "payload": {"status": ["odd"]}},
        {"status": "success", "message_id": MESSAGE_ID, "payload": "odd"},
    ],
)
def test_that_a_message_came_is_no_report(ack: dict[str, Any]) -> None:
    assert report(json.dumps(SENT).encode(), json.dumps(ack).encode()) is None


def test_an_acknowledgement_that_cannot_be_read_to_its_end_acknowledges_all_the_same() -> None:
    ack = b'{"status": "success", "message_id": "m-1", "payload": {"status": "completed", "result": {"n": 1e999}}}'
    assert glance(ack).answers == "m-1"
    assert report(json.dumps(SENT).encode(), ack) is None


def test_what_an_acknowledgement_says_beside_that_is_a_report() -> None:
    done = last(reported({"status": "success", "payload": {"status": "completed", "result": {"a": 1}, "odd": 1}}))
    assert done.state is TaskState.COMPLETED
    bare = last(reported({"status": "success", "type": "task_completion", "payload": {"status": "failed"}}))
    assert bare.state is TaskState.FAILED
    half = last(reported({"status": "success", "payload": {"status": "in_progress", "progress": 0.5}}))
    assert (half.state, half.progress) == (TaskState.WORKING, 0.5)
    error = last(reported({"status": "error", "message_id": MESSAGE_ID, "error": "no", "error_code": "TIMEOUT"}))
    assert error.failure is not None
    assert (error.failure.code, error.failure.message) == ("AGENT_TIMEOUT", "no")
    nothing = last(reported({"status": "error"}))
    assert nothing.state is TaskState.FAILED


def test_an_error_about_what_is_no_task_reports_nothing() -> None:
    told = message_of("status_update", {"task_id": "t", "status": "completed"})
    assert report(json.dumps(told).encode(), frame(status="error", message_id=MESSAGE_ID)) is None


def test_the_same_acknowledgement_is_the_same_report() -> None:
    ack: dict[str, Any] = {"status": "success", "payload": {"status": "completed", "result": {}}}
    assert reported(ack).key == reported(ack).key
