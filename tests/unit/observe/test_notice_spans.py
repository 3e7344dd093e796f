"""The spans of notices to callbacks: one for each attempt, and one over all of them as the store remembers them."""

from datetime import timedelta
from typing import Any

import msgspec

from dragoman.model.callbacks import Callback
from dragoman.observe.notice_spans import attempt_span, delivery_spans, next_span_id
from dragoman.observe.span import SpanKind
from dragoman.ports.courier import Told
from dragoman.ports.deliveries import Delivery, DeliveryState, Outcome, Pending
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task

URL = "https://client.example/hook"
CALLBACK = Callback(id="cb", dialect="a2a-1.0", agent_id="listener")
TASK = msgspec.structs.replace(new_task(ManualClock()), callbacks=(CALLBACK,))
BORN = TASK.created_at


def delivery(**known: Any) -> Delivery:
    said: dict[str, Any] = {"state": DeliveryState.DELIVERED, "tries": 1, "replays": 0, "tried_at": BORN, **known}
    return Delivery(
        id="dlv_7", task_id=TASK.id, callback_id="cb", caller_id="alice", seq=3, url=URL, born_at=BORN, **said
    )


def pending(tries: int, replays: int = 0, name: str = "dlv_7") -> Pending:
    return Pending(id=name, callback_id="cb", seq=3, tries=tries, replays=replays)


def test_each_attempt_is_linked_to_its_call_not_below_it() -> None:
    started, ended = BORN + timedelta(hours=2), BORN + timedelta(hours=2, seconds=1)
    told = Told(delivered=False, status=503, reason="HTTP 503")
    outcome = Outcome(state=DeliveryState.PENDING, at=ended, url=URL, answer="HTTP 503")
    span = attempt_span(TASK, CALLBACK, pending(1), started_at=started, told=told, outcome=outcome)
    assert (span.name, span.kind, span.failed) == ("deliver a2a-1.0 callback", SpanKind.CLIENT, "HTTP 503")
    assert (span.parent_id, span.linked) == (None, TASK.trace.span_id)
    assert (span.started_at, span.ended_at) == (started, ended)
    assert span.span_id == next_span_id(TASK.id, pending(1))
    assert span.attributes == {
        "a2a.delivery.id": "dlv_7",
        "a2a.attempt": 2,
        "a2a.status": "pending",
        "a2a.call.id": TASK.id,
        "error.type": "HTTP 503",
        "http.request.method": "POST",
        "http.response.status_code": 503,
        "server.address": "client.example",
        "server.port": 443,
    }


def test_no_two_attempts_have_one_id() -> None:
    attempts = [pending(0), pending(1), pending(0, 1), pending(1, 1), pending(0, 11), pending(0, name="dlv_70")]
    ids = {next_span_id(call_id, each) for call_id in (TASK.id, "another") for each in attempts}
    assert len(ids) == 2 * len(attempts)


def test_a_delivery_is_shown_from_its_birth_to_its_last_attempt_whose_id_it_has() -> None:
    tried = BORN + timedelta(hours=28)
    (span,) = delivery_spans(
        TASK, (delivery(state=DeliveryState.PARKED, tries=8, replays=2, tried_at=tried, answer="HTTP 500"),)
    )
    assert (span.name, span.parent_id, span.linked) == ("deliver a2a-1.0 callback", None, TASK.trace.span_id)
    assert (span.started_at, span.ended_at, span.failed) == (BORN, tried, "parked")
    assert span.span_id == next_span_id(TASK.id, pending(7, 2))
    assert span.attributes == {
        "a2a.delivery.id": "dlv_7",
        "a2a.attempt": 8,
        "a2a.delivery.replays": 2,
        "a2a.delivery.answer": "HTTP 500",
        "a2a.status": "parked",
        "a2a.call.id": TASK.id,
        "a2a.derived": True,
        "error.type": "parked",
        "server.address": "client.example",
        "server.port": 443,
    }


def test_a_delivery_that_was_not_tried_yet_has_the_id_of_its_first_attempt() -> None:
    (span,) = delivery_spans(TASK, (delivery(state=DeliveryState.PENDING, tries=0, tried_at=None),))
    assert (span.span_id, span.ended_at) == (next_span_id(TASK.id, pending(0)), None)
