"""Traces, for those who made calls in them: the recent ones, and one with the spans of all its calls."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.times import wire_time
from dragoman.hub.traces import Placed, Traces, root_of, state_of
from dragoman.model.call import Arrival, Caller
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.observe.span import SpanEvent, SpanKind, Value
from dragoman.server.pages.page import Page, json_reply, limit_of, query_of, time_of

_FILTERS: Final = frozenset({"since", "limit", "cursor"})


class TraceItem(msgspec.Struct, frozen=True, kw_only=True):
    """A trace in a list. `root` is the call that the others were made for; only calls of one's own count.

    `given_id` is the caller's own spelling of the trace's id, where it has one.
    """

    trace_id: str
    given_id: str | None
    status: TaskState
    root: str
    agent: str
    skill: str | None
    caller: str
    agents: list[str]
    calls: int
    error_code: str | None
    started_at: str
    ended_at: str | None
    duration_ms: float | None


class SpanMoment(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened at one moment of a span."""

    at: str
    name: str
    attributes: dict[str, Value]


class SpanView(msgspec.Struct, frozen=True, kw_only=True):
    """A span in its trace, `depth` levels below the top; `offset_ms` after the trace's beginning.

    Of another owner's call there are times alone. `linked_to`: the span that it belongs to without being below it.
    """

    span_id: str
    parent_id: str | None
    linked_to: str | None
    depth: int
    name: str
    kind: SpanKind
    call_id: str | None
    agent: str | None
    status: str
    error_code: str | None
    started_at: str
    offset_ms: float
    duration_ms: float | None
    attributes: dict[str, Value]
    events: list[SpanMoment]


class TraceView(TraceItem, frozen=True, kw_only=True):
    """A trace with its spans, each below its parent; `truncated`: it has more calls than are shown."""

    spans: list[SpanView]
    truncated: bool


def pages(traces: Traces) -> tuple[Page, ...]:
    """The pages of traces."""

    async def listed(request: HttpRequest, caller: Caller, _: Arrival) -> HttpReply:
        values = query_of(request, _FILTERS)
        page = await traces.recent(
            caller, since=time_of(values, "since"), limit=limit_of(values), cursor=values.get("cursor")
        )
        items = [TraceItem(**_item(calls)) for calls in page.traces]
        return json_reply(200, {"items": items, "next_cursor": page.cursor})

    async def shown(request: HttpRequest, caller: Caller, _: Arrival) -> HttpReply:
        query_of(request, frozenset())
        found = await traces.show(caller, request.params["trace"])
        began = min(each.span.started_at for each in found.spans)
        spans = [_span(each, began) for each in found.spans]
        return json_reply(200, TraceView(**_item(found.calls), spans=spans, truncated=found.more))

    return (
        Page(method="GET", path="/v1/traces", answer=listed),
        Page(method="GET", path="/v1/traces/{trace}", answer=shown),
    )


def _item(calls: Sequence[Task]) -> JsonObject:
    root = root_of(calls)
    state = state_of(calls, root)
    began = min(task.created_at for task in calls)
    ended = [task.ended_at for task in calls if task.ended_at is not None]
    over = max(ended) if len(ended) == len(calls) else None
    return {
        "trace_id": root.trace.trace_id,
        "given_id": root.trace.given_id,
        "status": state,
        "root": root.id,
        "agent": root.agent_id,
        "skill": root.skill,
        "caller": root.caller_id,
        "agents": sorted({task.agent_id for task in calls}),
        "calls": len(calls),
        "error_code": None if root.failure is None else root.failure.code,
        "started_at": wire_time(began),
        "ended_at": None if over is None else wire_time(over),
        "duration_ms": None if over is None else _ms(began, over),
    }


def _span(placed: Placed, began: datetime) -> SpanView:
    span, task = placed.span, placed.task
    status = "running" if span.ended_at is None else "ok" if span.failed is None else "error"
    return SpanView(
        span_id=span.span_id,
        parent_id=span.parent_id,
        linked_to=span.linked,
        depth=placed.depth,
        name=span.name,
        kind=span.kind,
        call_id=None if task is None else task.id,
        agent=None if task is None else task.agent_id,
        status=status if task is not None or span.ended_at is None else "ended",
        error_code=span.failed,
        started_at=wire_time(span.started_at),
        offset_ms=_ms(began, span.started_at),
        duration_ms=None if span.ended_at is None else _ms(span.started_at, span.ended_at),
        attributes=span.attributes,
        events=[_moment(each) for each in span.events],
    )


def _moment(event: SpanEvent) -> SpanMoment:
    return SpanMoment(at=wire_time(event.at), name=event.name, attributes=event.attributes)


def _ms(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds() * 1000, 3)
