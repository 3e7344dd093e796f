"""Statistics by the minute: added to by each writing, added up by each reading."""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite import agents
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.ratings import stars_of
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.agent import Agent
from dragoman.model.figures import Counted, Outcome
from dragoman.model.rating import rating_of
from dragoman.ports.minutes import Measured, Minute, MinuteQuery

_ADD: Final = SQL["add_minute"]
_OF_AGENT: Final = SQL["minutes_of_agent"]
_OF_ALL: Final = SQL["minutes_of_all"]


class _Row(msgspec.Struct, frozen=True, array_like=True):
    minute: int
    tenant: str
    agent: str
    skill: str
    outcome: str
    count: int
    sum_ms: int


def add(connection: Connection, minutes: Sequence[Minute], measured: Sequence[Measured]) -> Sequence[Agent]:
    """Add what was counted, and let agents stand by what was measured; those that stand differently now."""
    rows = [
        (each.tenant, each.agent_id, each.minute, each.skill, each.counted.outcome.value, each.counted.count,
         each.counted.sum_ms, *each.counted.buckets)
        for each in minutes
    ]  # fmt: skip
    connection.executemany(_ADD, rows)
    changed: list[Agent] = []
    for each in measured:
        said = stars_of(connection, each.tenant, each.agent_id)
        rating = rating_of(said.stars, said.said, each.calls, each.failures)
        stood = agents.set_figures(connection, each, rating)
        if stood is not None and stood[1]:
            changed.append(stood[0])
    return changed


def read(connection: Connection, query: MinuteQuery) -> Sequence[Minute]:
    """What was counted, added up."""
    span = {"since": query.since, "until": query.until, "by": query.by, "skill": query.skill, "tenant": query.tenant}
    if query.agent_id is None:
        rows = connection.execute(_OF_ALL, span).fetchall()
    else:
        rows = connection.execute(_OF_AGENT, {**span, "agent": query.agent_id}).fetchall()
    return [_minute(row) for row in msgspec.convert(rows, list[tuple[int | str, ...]])]


def _minute(row: tuple[int | str, ...]) -> Minute:
    head = msgspec.convert(row[:7], _Row)
    counted = Counted(
        outcome=Outcome(head.outcome),
        count=head.count,
        sum_ms=head.sum_ms,
        buckets=msgspec.convert(row[7:], tuple[int, ...]),
    )
    return Minute(tenant=head.tenant, agent_id=head.agent, skill=head.skill, minute=head.minute, counted=counted)
