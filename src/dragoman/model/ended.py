"""Calls that have ended, as they are counted: how long each took, how it was carried, and which of them are alike.

Those that are alike go into the same counts, so that whoever counts looks for these once for all of them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from dragoman.model.figures import took_ms
from dragoman.model.task import Task


class Carried(msgspec.Struct, gc=False):
    """How a call was carried: how long it waited, its attempts, how long they took together, and in which dialect."""

    dialect: str | None = None  # none: it was never sent
    attempts: int = 0
    took_s: float = 0.0
    waited_ms: int = 0  # for its turn


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A call that has ended."""

    task: Task
    carried: Carried | None  # where it is known
    at: datetime
    took_s: float  # all in all
    agent_ms: int  # while its agent had it
    hub_s: float  # what the hub itself added, where it is known how it was carried


Alike = Sequence[Ended]  # one or more calls of one caller, agent and skill with the same end, see `alike`


def ended_call(task: Task, carried: Carried | None = None) -> Ended:
    """A call that has ended, with how long it took."""
    at = task.ended_at or task.updated_at
    took_s = (at - task.created_at).total_seconds()
    hub_s = 0.0 if carried is None else took_s - carried.took_s - carried.waited_ms / 1000
    return Ended(task, carried, at, took_s, took_ms(task), hub_s if hub_s > 0.0 else 0.0)


def alike(ended: Iterable[Ended]) -> Iterable[Alike]:
    """The calls by what they are counted under: caller, agent and skill, the way there, the end, and its day.

    A workflow is apart from calls that went to an agent, and so is a call whose agent told what it used.
    """
    groups: dict[tuple[object, ...], list[Ended]] = {}
    for each in ended:
        task, carried = each.task, each.carried
        asked = task.asked
        key = (
            task.tenant, task.caller_id, task.agent_id, task.skill, task.dialect, asked.wait, not asked.then,
            None if carried is None else carried.dialect, task.state, each.at.toordinal(), task.usage is None,
        )  # fmt: skip
        group = groups.get(key)
        if group is None:
            groups[key] = [each]
        else:
            group.append(each)
    return groups.values()
