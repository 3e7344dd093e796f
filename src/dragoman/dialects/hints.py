"""The `metadata.dragoman` block: what a wire has no field for travels there, both ways. It is never trusted.

`metadata.skill` and `metadata.agentId` are read too: agents and callers of other gateways put them there.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import Priority
from dragoman.model.task import Task

HINTS: Final = "dragoman"
MAX_TIMEOUT_MS: Final = 86_400_000
_NORMAL: Final = Priority.NORMAL
_PRIORITIES: Final = {priority.name.lower(): priority for priority in Priority} | {"medium": Priority.NORMAL}
_MAX_WORD: Final = 256


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller said beside its dialect's own fields; what is unreadable counts as unsaid."""

    agent: str | None = None
    skill: str | None = None
    parent: str | None = None
    within: str | None = None  # the call that these hints came with, where an agent hands them on as they are
    title: str | None = None
    context: str | None = None  # the conversation, where the wire has no field for it
    priority: Priority = Priority.NORMAL
    timeout_s: float | None = None


NO_HINTS: Final = Hints()


def hints_of(task: Task, timeout_ms: int) -> JsonObject:
    """What the target may want to know and its dialect has no place for."""
    hints: JsonObject = {"call_id": task.id}
    if task.skill is not None:
        hints["skill"] = task.skill
    if timeout_ms:
        hints["timeout_ms"] = timeout_ms
    asked = task.asked
    if asked.priority is not _NORMAL:
        hints["priority"] = asked.priority.name.lower()
    if asked.parent_id is not None:
        hints["parent"] = asked.parent_id
    if asked.title is not None:
        hints["title"] = asked.title
    if task.chain:
        hints["call_chain"] = task.chain
    return hints


def conversation_of(task: Task) -> JsonObject:
    """The hint that names the conversation, if the caller named one, to a target whose wire has no field for it."""
    if task.asked.context_id is None:
        return {}
    known = task.remote.context_id if task.remote is not None else None
    return {"context": known or task.context_id}


def read_hints(*holders: JsonObject | None) -> Hints:
    """The hints in these metadata, the first that has a word deciding."""
    block: JsonObject = {}
    said: JsonObject = {}
    for holder in holders:
        if not holder:
            continue
        found: Json = holder.get(HINTS)
        if is_object(found):
            block = {**found, **block} if block else found
        if "agentId" in holder and "agent" not in said and (word := _word(holder["agentId"])):
            said["agent"] = word
        if "skill" in holder and "skill" not in said and (word := _word(holder["skill"])):
            said["skill"] = word
    for name, value in block.items():
        if name in _READ:
            field, read = _READ[name]
            meant = read(value)
            if meant is not None:
                said[field] = meant
    return Hints(**said) if said else NO_HINTS


def without_hints(metadata: JsonObject | None) -> JsonObject | None:
    """The caller's own metadata, without the block that was for the hub."""
    if metadata is None or HINTS not in metadata:
        return metadata or None
    own = metadata.copy()
    del own[HINTS]
    return own or None


def _word(value: Json) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_WORD else None


def _priority(value: Json) -> Priority | None:
    return _PRIORITIES.get(value) if isinstance(value, str) else None


def _timeout_s(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_TIMEOUT_MS:
        return None
    return value / 1000


# Which field each word of the block is, and how it is read; None: not at all.
_READ: Final[Mapping[str, tuple[str, Callable[[Json], Json]]]] = {
    "agent": ("agent", _word),
    "skill": ("skill", _word),
    "parent": ("parent", _word),
    "call_id": ("within", _word),
    "title": ("title", _word),
    "context": ("context", _word),
    "priority": ("priority", _priority),
    "timeout_ms": ("timeout_s", _timeout_s),
}
