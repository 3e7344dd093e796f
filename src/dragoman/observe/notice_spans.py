"""The spans of notices to callbacks: linked to the call's span, not below it, for a notice may come hours later.

    the call    ━━━━━━━━
    exported            ━ attempt 1            ━━ attempt 2       each when it was made, with its own times
    shown            ━━━━━━━━━━━━━━━━━━━━━━━━━━━━                 from its birth to its last attempt

Pure. The store keeps a notice's birth, how often it was tried, and its last attempt: what is shown derives from that,
and has the id of the last attempt. Each attempt tells its own id to the receiver, whose spans so hang below it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from dragoman.model.callbacks import Callback
from dragoman.model.task import Task
from dragoman.observe import span_names as names
from dragoman.observe.span import Span, SpanKind, Value, span_id_of
from dragoman.observe.spans import place_of
from dragoman.ports.courier import Told
from dragoman.ports.deliveries import Delivery, DeliveryState, Outcome, Pending

_GIVEN_UP: Final = frozenset({DeliveryState.PARKED, DeliveryState.DISABLED})


def next_span_id(call_id: str, pending: Pending) -> str:
    """The id of the span of a notice's next attempt; its receiver is told it, too."""
    return _span_id(call_id, pending.id, pending.replays, pending.tries + 1)


def attempt_span(
    task: Task, callback: Callback, pending: Pending, *, started_at: datetime, told: Told, outcome: Outcome
) -> Span:
    """One attempt that was made, and what its notice has come to by it."""
    failed = None if told.delivered else told.reason
    attributes = _common(pending.id, outcome.url, outcome.state, pending.tries + 1, pending.replays, failed)
    attributes |= {names.CALL: task.id, names.HTTP_METHOD: "POST"}
    if told.status is not None:
        attributes[names.HTTP_STATUS] = told.status
    return Span(
        span_id=next_span_id(task.id, pending),
        call_id=task.id,
        name=_name(callback.dialect),
        kind=SpanKind.CLIENT,
        started_at=started_at,
        ended_at=max(started_at, outcome.at),
        linked=task.trace.span_id,
        failed=failed,
        attributes=attributes,
    )


def delivery_spans(task: Task, deliveries: Sequence[Delivery]) -> tuple[Span, ...]:
    """The notices of a call, each as one span over all its attempts. It goes on as long as the notice is tried."""
    dialects = {callback.id: callback.dialect for callback in task.callbacks}
    spans: list[Span] = []
    for each in sorted(deliveries, key=lambda one: (one.born_at, one.id)):
        failed = each.state.value if each.state in _GIVEN_UP else None
        attributes = _common(each.id, each.url, each.state, each.tries, each.replays, failed)
        attributes |= {names.CALL: task.id, names.DERIVED: True}
        if each.answer:
            attributes[names.ANSWER] = each.answer
        spans.append(
            Span(
                span_id=_span_id(task.id, each.id, each.replays, max(each.tries, 1)),
                call_id=task.id,
                name=_name(dialects.get(each.callback_id, task.dialect)),
                kind=SpanKind.CLIENT,
                started_at=each.born_at,
                ended_at=None if each.state is DeliveryState.PENDING else each.tried_at or each.born_at,
                linked=task.trace.span_id,
                failed=failed,
                attributes=attributes,
            )
        )
    return tuple(spans)


def _span_id(call_id: str, delivery_id: str, replays: int, attempt: int) -> str:
    # A replay counts its attempts from the beginning; the ids of deliveries are one database's own.
    return span_id_of(call_id, names.DELIVER, f"{delivery_id} {replays} {attempt}")


def _name(dialect: str) -> str:
    return f"{names.DELIVER} {dialect} callback"


def _common(
    delivery_id: str, url: str, state: DeliveryState, attempt: int, replays: int, failed: str | None
) -> dict[str, Value]:
    attributes: dict[str, Value] = {names.DELIVERY: delivery_id, names.ATTEMPT: attempt, names.STATUS: state.value}
    if replays:
        attributes[names.REPLAYS] = replays
    if failed is not None:
        attributes[names.ERROR] = failed
    return attributes | place_of(url) if url else attributes
