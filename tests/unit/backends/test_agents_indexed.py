"""Agents that an earlier version registered are found as if this one had: migration 13 makes its index of theirs."""

import sqlite3
from contextlib import closing
from pathlib import Path

from dragoman.backends.sqlite import agents, schema
from dragoman.backends.sqlite.facets import place, shelves, words
from dragoman.model.agent import Agent, AgentStatus
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent

BEFORE = 12


def crowd() -> list[Agent]:
    clock = ManualClock()
    return [
        new_agent(clock, "a", skills=["search", "Übersetzen"], tags=["web"], rating=4.8, streaming=True, open_=True),
        new_agent(clock, "b", labels=["tee"], rating=1.0, status=AgentStatus.PAUSED, description="herons' songs"),
        new_agent(clock, "c", status=AgentStatus.REMOVED),
        new_agent(clock, "d", tenant="other", rating=4.35, dialect="dotted"),
    ]


def indexed(database: sqlite3.Connection) -> list[tuple[int, set[str], str]]:
    rows = database.execute("SELECT rowid, found_by, words FROM agent_index ORDER BY rowid").fetchall()
    return [(row, set(found_by.replace(",", " ").split()), said) for row, found_by, said in rows]


def test_the_index_of_an_earlier_version_becomes_this_ones(tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as new,
        closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as old,
    ):
        schema.migrate(new, schema.migrations(), 0)
        schema.migrate(old, schema.migrations()[:BEFORE], 0)
        for number, agent in enumerate(crowd(), start=1):
            agents.register(new, agent)
            if places := " ".join(place(agent.tenant, shelf) for shelf in shelves(agent)):
                text = "INSERT INTO agent_text (rowid, place, words) VALUES (?, ?, ?)"
                old.execute(text, (number, places, words(agent)))
        for table in ("agent", "agent_facet"):
            rows = new.execute(f"SELECT * FROM {table}").fetchall()
            old.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        schema.migrate(old, schema.migrations(), 0)
        assert indexed(old) == indexed(new)
        assert len(indexed(new)) == 3
