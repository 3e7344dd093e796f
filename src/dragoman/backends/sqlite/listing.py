"""Lists of tasks, newest status first, page by page along an index.

A caller's tasks are one walk. An administrator's are the walks of all the tenant's callers, merged: their first entries
are read, not their tasks. Those of one trace, or whose ids begin alike, are few: they are read at once and sorted.
"""

import heapq
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Value
from dragoman.backends.sqlite.cursor import from_cursor, to_cursor
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.tasks import task_numbered
from dragoman.model.errors import BadParams
from dragoman.model.operations import ListTasks
from dragoman.ports.store import Scope, TaskList

TOTAL: Final = 1000
MAX_PAGE: Final = 1000
SLICE: Final = 64
FEW: Final = 1000
EXAMINED: Final = 10_000  # ids that begin alike, whosever they are
_END_OF_TIME: Final = 2**62
_LAST_CHARACTER: Final = "\U0010ffff"

Params = dict[str, Value]
Key = tuple[int, int]  # state_at, number
Unwritten = Callable[[str], Sequence[int]]


class _Position(msgspec.Struct, frozen=True):
    at: int
    number: int
    of: int  # which filters it belongs to


def list_tasks(connection: Connection, scope: Scope, query: ListTasks, unwritten: Unwritten) -> TaskList:
    """One page, all of it from one commit. Raises BadParams for a cursor that is malformed or of other filters.

    `unwritten`: the calls of a trace that the index does not have yet.
    """
    position = _position(scope, query)
    # Before the first look into the file: what is written meanwhile is then found there, too, and never in neither.
    beside = [] if query.trace_id is None else sorted(unwritten(query.trace_id), reverse=True)[:FEW]
    connection.execute("BEGIN")
    try:
        limit = min(max(query.limit, 1), MAX_PAGE)
        keys = list(islice(_keys(connection, scope, query, beside, position), limit + 1))
        found = (task_numbered(connection, number) for _, number in keys[:limit])
        page = tuple(task for task in found if task is not None)
        everything = _keys(connection, scope, query, beside, (_END_OF_TIME, _END_OF_TIME))
        total = sum(1 for _ in islice(everything, TOTAL))
    finally:
        connection.execute("COMMIT")
    cursor = None
    if len(keys) > limit:
        at, number = keys[limit - 1]
        cursor = to_cursor(_Position(at=at, number=number, of=_mark(scope, query)))
    return TaskList(tasks=page, total=total, cursor=cursor)


def _position(scope: Scope, query: ListTasks) -> Key:
    if query.cursor is None:
        return (_END_OF_TIME, _END_OF_TIME)
    position = from_cursor(query.cursor, _Position)
    if position.of != _mark(scope, query) or not 0 <= position.at <= _END_OF_TIME:
        raise BadParams("The cursor belongs to another list; begin again without one.", field="cursor")
    return (position.at, min(position.number, _END_OF_TIME))


def _mark(scope: Scope, query: ListTasks) -> int:
    """A short sum of what is listed, so that a cursor is not taken to another list by mistake."""
    filters = msgspec.structs.replace(query, limit=0, cursor=None)
    return zlib.crc32(msgspec.msgpack.encode((scope, filters)))


def _keys(connection: Connection, scope: Scope, query: ListTasks, beside: Sequence[int], before: Key) -> Iterator[Key]:
    if query.caller is not None and scope.principal not in (None, query.caller):
        return iter(())
    caller = query.caller or scope.principal
    state = None if query.state is None else codec.STATE[query.state]
    params: Params = {
        "tenant": scope.tenant,
        "caller": caller,
        "context": query.context_id,
        "state": state,
        "agent": query.agent,
        "skill": query.skill,
        "dialect": query.dialect,
        "since": 0 if query.after is None else codec.to_micros(query.after),
    }
    if query.trace_id is not None or query.prefix is not None:
        return _few(connection, query, params, beside, before)
    if query.context_id is not None:
        return _walk(connection, "tasks_of_context", params, before)
    name = "tasks_of_caller" if state in (None, codec.COMPLETED) else "tasks_not_completed"
    if caller is not None:
        return _walk(connection, name, params, before)
    walks = [_walk(connection, name, {**params, "caller": each}, before) for each in _callers(connection, scope)]
    return heapq.merge(*walks, reverse=True)


def _few(connection: Connection, query: ListTasks, params: Params, beside: Sequence[int], before: Key) -> Iterator[Key]:
    prefix = query.prefix
    few: Params = {
        **params,
        "prefix": prefix,
        "beyond": None if prefix is None else prefix + _LAST_CHARACTER,
        "limit": FEW,
    }
    if query.trace_id is not None:
        few["trace"] = query.trace_id
        one = SQL["task_of_trace"]
        rows = [row for each in beside for row in connection.execute(one, {**few, "number": each}).fetchall()]
        rows += connection.execute(SQL["tasks_of_trace"], few).fetchall()
    else:
        rows = connection.execute(SQL["tasks_begun_so"], {**few, "examined": EXAMINED}).fetchall()
    keys = set(msgspec.convert(rows, list[Key]))
    return iter(sorted((key for key in keys if key < before), reverse=True)[:FEW])


def _walk(connection: Connection, name: str, params: Params, before: Key) -> Iterator[Key]:
    while True:
        page: Params = {**params, "at": before[0], "number": before[1], "limit": SLICE}
        keys = msgspec.convert(connection.execute(SQL[name], page).fetchall(), list[Key])
        yield from keys
        if len(keys) < SLICE:
            return
        before = keys[-1]


def _callers(connection: Connection, scope: Scope) -> Iterator[str]:
    last = ""
    while rows := connection.execute(SQL["next_caller"], (scope.tenant, last)).fetchall():
        last = msgspec.convert(rows[0], tuple[str])[0]
        yield last
