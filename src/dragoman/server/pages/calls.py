"""Calls of every dialect, for those who made them and for administrators: listed, shown, followed, cancelled, emptied.

Files that lie in messages and artifacts are shown as links to the hub; a result is shown as it was answered.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final

import msgspec

from dragoman.dialects.sse import STREAM_HEADERS, frame, last_seen
from dragoman.hub.files import EVENT, Files, hosted_event
from dragoman.hub.forgetting import Forgetter, Forgotten
from dragoman.hub.handle import Hub
from dragoman.hub.usage import UsageDesk
from dragoman.model.answers import Stream, TaskPage
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams
from dragoman.model.events import Happened
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.operations import CancelTask, FollowTask, GetTask, ListTasks
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.observe.trace import trace_id_of
from dragoman.ports.store import Tasks
from dragoman.server.pages.call_views import CallEvent, CallView, event_of, item_of, view_of
from dragoman.server.pages.page import MAX_PAGE, Page, body_of, json_reply, limit_of, query_of, time_of
from dragoman.server.streaming import ByteStream, StreamReply

_FILTERS: Final = frozenset(
    {"agent", "caller", "skill", "status", "dialect", "since", "trace", "conversation", "prefix", "limit", "cursor"}
)
_SOME_EVENTS: Final = frozenset({"after", "limit"})
_TO_FORGET: Final = frozenset({"context", "caller", "limit", "cursor"})
BACKUPS_KEEP: Final = "Backups made before keep the content."

_encode = msgspec.json.Encoder().encode


class Cancellation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a call is cancelled, for its agent to know."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] | None = None


class ForgottenCalls(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls were emptied, how many of those had to be cancelled first, and where their words still are."""

    forgotten: int
    cancelled: int
    note: str
    next_cursor: str | None


def pages(hub: Hub, store: Tasks, files: Files, forgetter: Forgetter, usage: UsageDesk) -> tuple[Page, ...]:
    """The pages of calls."""

    async def found(request: HttpRequest, caller: Caller, arrival: Arrival) -> Task:
        task = await hub.handle(caller, GetTask(task_id=request.params["call"]), arrival)
        assert isinstance(task, Task)  # noqa: S101 - what is asked for
        return task

    async def listed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        page = await hub.handle(caller, _query(request), arrival)
        assert isinstance(page, TaskPage)  # noqa: S101 - what is asked for
        return json_reply(200, {"items": [item_of(task) for task in page.tasks], "next_cursor": page.cursor})

    async def shown(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        query_of(request, frozenset())
        task = await found(request, caller, arrival)
        return json_reply(200, _whole(files, task, await usage.total(task)))

    async def events(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        values = query_of(request, _SOME_EVENTS)
        after, limit = _after(values) or 0, limit_of(values)
        task = await found(request, caller, arrival)
        there = await store.events(task.id, after, limit + 1)
        following = str(there[limit - 1].seq) if len(there) > limit else None
        items = [_event(files, task, happened) for happened in there[:limit]]
        return json_reply(200, {"items": items, "next_cursor": following})

    async def streamed(request: HttpRequest, caller: Caller, arrival: Arrival) -> StreamReply:
        after = _after(query_of(request, frozenset({"after"})))
        seen = last_seen(request.headers)
        after = (after or 0) if seen is None else seen
        asked = FollowTask(task_id=request.params["call"], after=after, ended_ok=True, past_questions=True)
        stream = await hub.handle(caller, asked, arrival)
        assert isinstance(stream, Stream)  # noqa: S101 - what is asked for
        linked = partial(files.linked_item, stream.tenant, stream.task_id)
        return StreamReply(headers=STREAM_HEADERS, body=ByteStream(stream.items, _frames, linked))

    async def cancelled(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        asked = CancelTask(task_id=request.params["call"], reason=body_of(request, Cancellation).reason)
        task = await hub.handle(caller, asked, arrival)
        assert isinstance(task, Task)  # noqa: S101 - what is asked for
        return json_reply(200, _whole(files, task, await usage.total(task)))

    async def forgotten(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        query_of(request, frozenset())
        return _emptied(await forgetter.one(caller, request.params["call"], arrival.request_id))

    async def many_forgotten(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        values = query_of(request, _TO_FORGET)
        context, of = values.get("context"), values.get("caller")
        if (context is None) == (of is None):
            raise BadParams("Say whose: either context or caller.")
        asked = ListTasks(context_id=context, caller=of, limit=limit_of(values, MAX_PAGE), cursor=values.get("cursor"))
        named = f"context {context}" if of is None else f"caller {of}"
        done = await forgetter.many(caller, asked, named, arrival.request_id, all_pages="limit" not in values)
        return _emptied(done)

    return (
        Page(method="DELETE", path="/v1/calls", answer=many_forgotten),
        Page(method="DELETE", path="/v1/calls/{call}", answer=forgotten),
        Page(method="GET", path="/v1/calls", answer=listed),
        Page(method="GET", path="/v1/calls/{call}", answer=shown),
        Page(method="GET", path="/v1/calls/{call}/events", answer=events),
        Page(method="GET", path="/v1/calls/{call}/stream", answer=streamed),
        Page(method="POST", path="/v1/calls/{call}/cancel", answer=cancelled),
    )


def _emptied(done: Forgotten) -> HttpReply:
    shown = ForgottenCalls(
        forgotten=done.forgotten, cancelled=done.cancelled, note=BACKUPS_KEEP, next_cursor=done.cursor
    )
    return json_reply(200, shown)


def _query(request: HttpRequest) -> ListTasks:
    values = query_of(request, _FILTERS)
    status, trace = values.get("status"), values.get("trace")
    if status is not None and status not in set(TaskState):
        message = f"status: expected {', '.join(TaskState)}"
        raise BadParams(message, errors=[{"path": "status", "message": "unknown"}])
    return ListTasks(
        agent=values.get("agent"),
        caller=values.get("caller"),
        skill=values.get("skill"),
        dialect=values.get("dialect"),
        context_id=values.get("conversation"),
        trace_id=None if trace is None else trace_id_of(trace),
        prefix=values.get("prefix"),
        state=None if status is None else TaskState(status),
        after=time_of(values, "since"),
        limit=limit_of(values),
        cursor=values.get("cursor"),
    )


def _after(values: Mapping[str, str]) -> int | None:
    text = values.get("after")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadParams("after: expected the number of an event", errors=[{"path": "after", "message": "no number"}])
    return int(text)


def _whole(files: Files, task: Task, usage_total: JsonObject) -> CallView:
    linked = files.linked(task)
    assert isinstance(linked, Task)  # noqa: S101 - what it was
    return view_of(linked, usage_total)


def _event(files: Files, task: Task, happened: Happened) -> CallEvent:
    host = files.host(task.tenant, task.id, f"{EVENT}{happened.seq}")
    return event_of(Happened(seq=happened.seq, event=hosted_event(happened.event, host)))


def _frames(item: StreamItem) -> bytes:
    """An event by its number and name; the whole call to a reader whose number it never had; `done` at the end."""
    match item:
        case Snapshot(task=task):
            shown = frame(_encode(view_of(task)), name="call", seq=task.last_seq)
            return shown + _done(task.last_seq) if task.ended else shown
        case Ended(seq=seq, event=event):
            return _framed(Happened(seq=seq, event=event)) + _done(seq)
        case _:
            return _framed(item)


def _framed(happened: Happened) -> bytes:
    shown = event_of(happened)
    return frame(_encode(shown), name=shown.event, seq=shown.n)


def _done(seq: int) -> bytes:
    return frame(b"{}", name="done", seq=seq)
