"""The live feed: calls as they begin, move and end, for those who made them and for administrators; as events.

One who comes back with the id of the last event is told how things stand that changed since, within the last 1,000;
some of it perhaps once more. A slow reader is cut off and comes back.
"""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, final

import msgspec

from dragoman.dialects.sse import STREAM_HEADERS, frame
from dragoman.hub.handle import Hub
from dragoman.model.answers import Changes
from dragoman.model.call import Arrival, Caller
from dragoman.model.changes import AgentChanged, Change
from dragoman.model.errors import BadParams
from dragoman.model.http import Headers, HttpRequest
from dragoman.model.operations import WatchChanges
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.server.pages.call_views import item_of
from dragoman.server.pages.page import Page, query_of, time_of
from dragoman.server.streaming import ByteStream, StreamReply

MOST_KNOWN: Final = 10_000  # calls of which it is remembered how they stood last
CALLS, AGENTS = "calls", "agents"
_FILTERS: Final = frozenset({"topics", "agent", "skill", "status", "caller", "failed", "since"})
_BAD: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = 16  # of a time in microseconds

_encode = msgspec.json.Encoder().encode


class AgentNews(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that was registered, changed, or is gone (`status` removed)."""

    id: str
    status: str


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls a reader of the feed wants to hear of; of those that failed only when they have."""

    agent: str | None = None
    skill: str | None = None
    status: TaskState | None = None
    caller: str | None = None
    failed: bool = False

    def has(self, task: Task) -> bool:
        """Whether a call is among them, as it stands."""
        return (
            self.agent in (None, task.agent_id)
            and self.skill in (None, task.skill)
            and self.caller in (None, task.caller_id)
            and self.status in (None, task.state)
            and (not self.failed or task.state in _BAD)
        )


@final
class FeedFrames:
    """The frames of one feed: a call is told when its state is another than it was."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._told: OrderedDict[str, TaskState] = OrderedDict()

    def __call__(self, change: Change) -> bytes:
        """The event of one change, numbered by its time; empty where nothing is to be told."""
        seq = (change.at - _EPOCH) // timedelta(microseconds=1)
        if isinstance(change, AgentChanged):
            status = "removed" if change.agent is None else change.agent.status.value
            return frame(_encode(AgentNews(id=change.agent_id, status=status)), name="agent", seq=seq)
        task = change.task
        if not self._wanted.has(task) or self._told.get(task.id) is task.state:
            return b""
        self._told[task.id] = task.state
        if len(self._told) > MOST_KNOWN:
            self._told.popitem(last=False)
        return frame(_encode(item_of(task)), name="call", seq=seq)


def pages(hub: Hub) -> tuple[Page, ...]:
    """The page of the feed."""

    async def fed(request: HttpRequest, caller: Caller, arrival: Arrival) -> StreamReply:
        values = query_of(request, _FILTERS)
        topics = _topics(values)
        wanted = _wanted(values)
        since = _last_change(request.headers) or time_of(values, "since")
        asked = WatchChanges(agents=AGENTS in topics, tasks=CALLS in topics, since=since)
        changes = await hub.handle(caller, asked, arrival)
        assert isinstance(changes, Changes)  # noqa: S101 - what is asked for
        return StreamReply(headers=STREAM_HEADERS, body=ByteStream(changes.items, FeedFrames(wanted)))

    return (Page(method="GET", path="/v1/calls/feed", answer=fed),)


def _topics(values: Mapping[str, str]) -> frozenset[str]:
    topics = frozenset(values.get("topics", CALLS).split(","))
    if not topics <= {CALLS, AGENTS}:
        message = f"topics: expected some of {CALLS},{AGENTS}"
        raise BadParams(message, errors=[{"path": "topics", "message": "unknown"}])
    return topics


def _wanted(values: Mapping[str, str]) -> Wanted:
    status, failed = values.get("status"), values.get("failed")
    if status is not None and status not in set(TaskState):
        message = f"status: expected {', '.join(TaskState)}"
        raise BadParams(message, errors=[{"path": "status", "message": "unknown"}])
    if failed not in (None, "0", "1"):
        raise BadParams("failed: expected 1", errors=[{"path": "failed", "message": "unknown"}])
    return Wanted(
        agent=values.get("agent"),
        skill=values.get("skill"),
        status=None if status is None else TaskState(status),
        caller=values.get("caller"),
        failed=failed == "1",
    )


def _last_change(headers: Headers) -> datetime | None:
    """The time of the last event that somebody has seen who comes back; None where it names none of ours."""
    said = headers.get(b"last-event-id", b"").strip()
    return _EPOCH + timedelta(microseconds=int(said)) if said.isdigit() and len(said) == _DIGITS else None
