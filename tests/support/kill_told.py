"""What callers were told while the hub was killed: callbacks and streams, against what is stored.

Every check returns complaints, in words; none of them is allowed.
"""

from collections.abc import Sequence
from pathlib import Path

from dragoman.backends.sqlite import codec, tasks
from dragoman.backends.sqlite.connection import Connection, connect
from dragoman.model.content import Text
from dragoman.model.events import ArtifactChunk, Happened, StatusChanged
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task
from tests.support.kill_agents import Called
from tests.support.kill_load import Ledger
from tests.support.kill_readers import Readers, Seen

WORDS = {TaskState.COMPLETED: "completed", TaskState.CANCELED: "cancelled", TaskState.FAILED: "failed"}


def check_callbacks(called: Sequence[Called], ledger: Ledger, stored: dict[str, Task]) -> list[str]:
    """Every accepted call was called back, always under one id, with how it really ended."""
    found: list[str] = []
    by_call: dict[str, list[Called]] = {}
    for each in called:
        by_call.setdefault(each.call_id, []).append(each)
    for call in ledger.acknowledged():
        call_id = call.answers[0]["call_id"]
        if call.accepted and call_id not in by_call:
            found.append(f"call {call.number}, accepted as {call_id}, was never called back")
    for call_id, told in by_call.items():
        if ids := {each.webhook_id for each in told} - {f"cb_{call_id}"}:
            found.append(f"{call_id} was called back under {sorted(ids)}")
        task = stored.get(call_id)
        if task is None:
            found.append(f"{call_id} was called back, and is not in the file")
        elif wrong := {each.status for each in told} - {WORDS.get(task.state)}:
            found.append(f"{call_id} was called back as {sorted(wrong)}, and is {task.state}")
    return found


def check_readers(path: Path, readers: Readers) -> list[str]:
    """Each reader saw every event of its call that has a word, once, in order, as it is stored."""
    found = list(readers.complaints)
    connection = connect(path)
    try:
        for call in readers.calls:
            if call.call_id is None:
                continue
            said = words_of(connection, call.call_id)
            if not call.done:
                found.append(f"the reader of {call.call_id} never saw its end, only {call.seen[-3:]}")
            elif call.seen != said:
                found.append(f"the reader of {call.call_id} {_difference(call.seen, said)}")
    finally:
        connection.close()
    return found


def words_of(connection: Connection, call_id: str) -> list[Seen]:
    """The stream of a call as the platform tells it, by what is stored; not every number has a word."""
    happened = tasks.events(connection, call_id, 0, codec.MAX_SEQ)
    return [word for each in happened if (word := _word(each)) is not None]


def _word(happened: Happened) -> Seen | None:
    """How the platform's stream tells of a stored event; None where it has no word for it."""
    event = happened.event
    if happened.seq == 1:
        return Seen(1, "start", "")
    if isinstance(event, ArtifactChunk):
        text = "".join(part.text for part in event.artifact.parts if isinstance(part, Text))
        return Seen(happened.seq, "chunk", text) if text else None
    if isinstance(event, StatusChanged) and event.state in FINAL:
        good = event.state in (TaskState.COMPLETED, TaskState.CANCELED)
        return Seen(happened.seq, "complete" if good else "error", "")
    return None


def _difference(seen: Sequence[Seen], said: Sequence[Seen]) -> str:
    numbers = [each.seq for each in seen]
    if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
        return f"saw events {twice} twice"
    if missed := [each.seq for each in said if each.seq not in numbers]:
        return f"missed events {missed}, of {len(said)}"
    strange = next((each for each in seen if each not in said), None)
    return f"saw {strange}, which is not what is stored" if strange else f"saw its events in the order {numbers}"
