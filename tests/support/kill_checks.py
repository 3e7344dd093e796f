"""What must hold after a hub was killed: its answers, its file and its agents' account against the loader's ledger.

Every check returns complaints, in words; none of them is allowed.
"""

import asyncio
import json
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec, tasks
from dragoman.backends.sqlite.audit_check import check
from dragoman.backends.sqlite.connection import Connection, connect, number
from dragoman.model.content import Data
from dragoman.model.events import Happened, StatusChanged
from dragoman.model.lifecycle import legal
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.audit import Window
from tests.support.kill_agents import Asked
from tests.support.kill_load import Client, Ledger, Sent
from tests.support.stream_agents import STREAMER

AT_ONCE: Final = 16


class Row(msgspec.Struct, frozen=True, array_like=True):
    """The head of a task as it stands in the file."""

    number: int
    id: str
    state: int
    last_seq: int
    quick: bool


class _Said(msgspec.Struct, frozen=True):
    number: int


def check_answers(ledger: Ledger) -> list[str]:
    """Every answer of a call is the same one, and is its own."""
    found = list(ledger.complaints)
    owners: dict[str, int] = {}
    for call in ledger.acknowledged():
        ids = {answer["call_id"] for answer in call.answers}
        if len(ids) > 1:
            found.append(f"call {call.number} was answered under {len(ids)} ids: {sorted(ids)}")
        if not call.accepted and any(
            answer["status"] != "completed" or answer["result"] != call.input for answer in call.answers
        ):
            found.append(f"call {call.number} got what was not its answer: {call.answers}")
        for call_id in ids:
            if owners.setdefault(call_id, call.number) != call.number:
                found.append(f"calls {call.number} and {owners[call_id]} were both answered as {call_id}")
    return found


async def check_statuses(client: Client, calls: Sequence[Sent]) -> list[str]:
    """The hub still tells every acknowledged call as it answered it; what it cannot be asked now is left for later."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def check(call: Sent) -> list[str]:
        answer = call.answers[0]
        try:
            async with limit:
                status, told = await client.ask("GET", f"/v1/a2a/call/{answer['call_id']}/status")
        except (OSError, EOFError):
            return []
        if status != 200:
            return [f"call {call.number}, acknowledged as {answer['call_id']}, is lost: {status}"]
        if call.accepted:
            return []  # How it ended is seen at the end.
        if (told["call_id"], told["status"], told.get("result")) != (answer["call_id"], "completed", answer["result"]):
            return [f"call {call.number} was answered {answer}, and is now {told}"]
        return []

    return [each for found in await asyncio.gather(*map(check, calls)) for each in found]


def check_asked(asked: Sequence[Asked], ledger: Ledger, lives: Sequence[float]) -> list[str]:
    """An agent is asked twice only for calls that may be repeated: under the same id, once in each life of the hub."""
    found: list[str] = []
    asks: dict[int, list[Asked]] = {}
    for each in asked:
        asks.setdefault(each.number, []).append(each)
    for number_, called in asks.items():
        ids = {each.call_id for each in called}
        if len(ids) > 1:
            found.append(f"the agent was asked for call {number_} under several ids: {sorted(ids)}")
        elif len(called) > 1 and ledger.calls[number_].key is None:
            found.append(f"the agent was asked {len(called)} times for call {number_}, which has no key")
        elif len({bisect(lives, each.at) for each in called}) < len(called):
            found.append(f"the agent was asked for call {number_} several times in one life")
    for call in ledger.acknowledged():
        call_id = call.answers[0]["call_id"]
        if not call.cancel_sent and call_id not in {each.call_id for each in asks.get(call.number, ())}:
            found.append(f"call {call.number} was answered as {call_id}, of which no agent knows")
    return found


def open_work(path: Path) -> int:
    """How many jobs there are, by the file of a hub that runs."""
    return _count(path, "SELECT count(*) FROM job")


def open_calls(path: Path) -> int:
    """How many tasks have not ended, by the file of a hub that runs."""
    return _count(path, f"SELECT count(*) FROM task WHERE state < {codec.FIRST_FINAL}")


def _count(path: Path, sql: str) -> int:
    connection = connect(path)
    try:
        connection.execute("PRAGMA query_only=1").fetchall()
        return number(connection, sql) or 0
    finally:
        connection.close()


def check_file(path: Path, ledger: Ledger) -> tuple[list[str], dict[str, Task], Counter[str]]:
    """The file of a stopped hub is whole, and has every acknowledged call as it was answered; also what is in it."""
    connection = connect(path)
    try:
        found = _check_whole(connection)
        rows = msgspec.convert(
            connection.execute("SELECT number, id, state, last_seq, log IS NOT NULL FROM task").fetchall(),
            list[Row],
            strict=False,
        )
        stored: dict[str, Task] = {}
        for row in rows:
            found += _check_task(connection, row, stored)
        found += _check_jobs(connection)
        found += _check_audit(connection)
    finally:
        connection.close()
    found += _check_calls(ledger, stored)
    kinds = Counter("quick" if row.quick else "long" for row in rows)
    kinds.update(_ending(task) for task in stored.values())
    return found, stored, kinds


def _check_whole(connection: Connection) -> list[str]:
    said = connection.execute("PRAGMA integrity_check").fetchall()
    found = [] if said == [("ok",)] else [f"the file is damaged: {said}"]
    if lost := number(connection, "SELECT count(*) FROM event WHERE key >> 20 NOT IN (SELECT number FROM task)"):
        found.append(f"{lost} events belong to no task")
    if lost := number(connection, "SELECT count(*) FROM idem WHERE task NOT IN (SELECT id FROM task)"):
        found.append(f"{lost} keys name no task")
    return found


def _check_jobs(connection: Connection) -> list[str]:
    left = number(connection, "SELECT count(*) FROM job")
    return [f"{left} jobs are left, though no call is open"] if left else []


def _check_audit(connection: Connection) -> list[str]:
    """The chain is whole, and covers every call as it stands."""
    window = Window()
    while True:
        piece = check(connection, window)
        if piece.broken is not None:
            return [f"the audit is broken: {piece.broken}"]
        if piece.cursor is None:
            return []
        window = Window(cursor=piece.cursor)


def _check_task(connection: Connection, row: Row, stored: dict[str, Task]) -> list[str]:
    """The row can be read, its events are numbered without a gap, and lead by legal moves to where it stands."""
    try:
        happened = tasks.events(connection, row.id, 0, codec.MAX_SEQ)
        task = tasks.task_anyone(connection, row.id)
    except (msgspec.MsgspecError, LookupError) as error:
        return [f"{row.id} cannot be read: {error}"]
    stored[row.id] = task
    found: list[str] = []
    if [each.seq for each in happened] != list(range(1, row.last_seq + 1)):
        found.append(f"{row.id} has {row.last_seq} events, numbered {[each.seq for each in happened]}")
    state = _walked(happened)
    if state is None:
        found.append(f"{row.id} made an illegal move: {happened}")
    elif codec.STATE[state] != row.state or task.state is not state or task.last_seq != row.last_seq:
        found.append(f"{row.id} is {row.state} in its row, {task.state} in its document, {state} by its events")
    return found


def _walked(happened: Sequence[Happened]) -> TaskState | None:
    """The state that events lead to; None where a move is not legal."""
    events = [each.event for each in happened]
    moves = [event.state for event in events if isinstance(event, StatusChanged)]
    begins = bool(events) and isinstance(events[0], StatusChanged) and moves[0] is TaskState.SUBMITTED
    return moves[-1] if begins and legal(TaskState.SUBMITTED, events) == events else None


def _check_calls(ledger: Ledger, stored: dict[str, Task]) -> list[str]:
    found: list[str] = []
    keys = Counter(task.asked.idempotency_key for task in stored.values())
    found += [f"key {key} has {count} calls" for key, count in keys.items() if key is not None and count > 1]
    for task in stored.values():
        if task.agent_id != STREAMER:
            found += _check_ending(task, ledger)
    for call in ledger.acknowledged():
        for call_id in {answer["call_id"] for answer in call.answers}:
            task = stored.get(call_id)
            if task is None:
                found.append(f"call {call.number}, acknowledged as {call_id}, is not in the file")
            elif not _as_promised(call, task):
                found.append(f"call {call.number}, acknowledged as {call_id}, is {task.state} with {task.result}")
    return found


def _as_promised(call: Sent, task: Task) -> bool:
    if task.state is TaskState.CANCELED:
        return call.cancel_sent
    return not call.cancelled and task.state is TaskState.COMPLETED and task.result == call.input


def _check_ending(task: Task, ledger: Ledger) -> list[str]:
    call = _call_of(task, ledger)
    if call.key != task.asked.idempotency_key:
        return [f"{task.id} has key {task.asked.idempotency_key}, and was sent with {call.key}"]
    match _ending(task):
        case "completed":
            return [] if task.result == call.input else [f"{task.id} completed with {task.result}"]
        case "canceled" if call.cancel_sent:
            return []
        case "late" if not call.accepted and not call.answers:
            return []  # It is waited for no longer than that; its caller had given up.
        case "interrupted" if call.key is not None:
            return [f"{task.id} has a key and was interrupted; it could have been sent again"]
        case "interrupted":
            return []
        case ending:
            said = "" if task.failure is None else json.dumps(msgspec.to_builtins(task.failure))
            return [f"{task.id} ended as {ending} {said}"]


def _ending(task: Task) -> str:
    if not task.ended:
        return "open"
    if task.failure is not None and task.failure.details and task.failure.details.get("reason") == "interrupted":
        return "interrupted"
    if task.failure is not None and task.failure.code == "AGENT_TIMEOUT" and task.updated_at >= _due(task):
        return "late"
    return str(task.state)


def _due(task: Task) -> datetime:
    assert task.deadline is not None
    return task.deadline


def _call_of(task: Task, ledger: Ledger) -> Sent:
    part = task.asked.message.parts[0]
    assert isinstance(part, Data)
    return ledger.calls[msgspec.convert(part.value, _Said).number]
