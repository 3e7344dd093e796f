"""Every statement goes by an index and sorts nothing."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from dragoman.backends.sqlite import schema
from dragoman.backends.sqlite.sql import SQL

# A line of a plan that would be a fault anywhere else, and why it is none here.
ALLOWED: Final[dict[str, dict[str, str]]] = {
    "drop_indexed": {"SCAN agent_index VIRTUAL TABLE INDEX 0:=": "by rowid: one row of the index"},
    "count_deliveries": {"SCAN of_tenant": "the tenants that have notices, one after the other by the index"},
    "walk_index": {
        "SCAN agent_index VIRTUAL TABLE INDEX 64:M2><": "the index's own look-up, in its own order, a page of it",
        "SCAN i": "the rows just found",
    },
    "count_facet": {"SCAN (subquery-1)": "the rows just found, at most 1,001"},
    "count_index": {
        "SCAN agent_index VIRTUAL TABLE INDEX 0:M2><": "the index's own look-up, at most 1,001 rows",
        "SCAN (subquery-1)": "the rows just found",
    },
    "tasks_of_trace": {"SCAN at": "the runs of the index, one for 2,048 calls"},
    "tasks_begun_so": {"SCAN (subquery-1)": "the rows just found, at most 10,000"},
    "calls_in_context": {"SCAN (subquery-1)": "the rows just found, as many as a conversation may have"},
    "usage_by": {
        "SCAN d VIRTUAL TABLE INDEX 1:": "the days asked for, a parameter",
        "USE TEMP B-TREE FOR GROUP BY": "the sums asked for; each day by its own rows",
    },
    "sum_ratings": {"SCAN (subquery-1)": "the rows just found, at most 1,000"},
    "minutes_of_agent": {
        "USE TEMP B-TREE FOR GROUP BY": "a stretch of one agent's minutes, added up by hours; a reader asks for it"
    },
    "minutes_of_all": {
        "USE TEMP B-TREE FOR GROUP BY": "a stretch of minutes, added up; at most as long as a page allows"
    },
    "open_calls": {"SCAN task USING COVERING INDEX task_not_completed": "once, at the start"},
    "count_tenants_agents": {"SCAN (subquery-1)": "the rows just found, as many as the tenant may have"},
    "own_tables": {"SCAN sqlite_schema": "the schema's own list"},
    "all_keys": {"SCAN api_key USING INDEX api_key_created": "asks for all there are, in their order"},
}


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.migrate(connection, schema.migrations(), 0)
        yield connection


def plan(database: sqlite3.Connection, sql: str) -> list[str]:
    names = set(re.findall(r":([a-z_0-9]+)", sql))
    places = max(map(int, re.findall(r"\?(\d+)", sql)), default=0)
    parameters = dict.fromkeys(names) if names else [None] * places
    return [str(row[3]) for row in database.execute("EXPLAIN QUERY PLAN " + sql, parameters)]


@pytest.mark.parametrize("name", sorted(SQL))
def test_a_statement_scans_no_table_and_sorts_nothing(database: sqlite3.Connection, name: str) -> None:
    faults = {line for line in plan(database, SQL[name]) if "SCAN" in line or "TEMP B-TREE" in line}
    assert faults == set(ALLOWED.get(name, {}))


def test_the_check_would_notice_a_scan_and_a_sort(database: sqlite3.Connection) -> None:
    assert any("SCAN" in line for line in plan(database, "SELECT * FROM task WHERE context = ?1"))
    assert any("TEMP B-TREE" in line for line in plan(database, "SELECT id FROM task WHERE tenant = ?1 ORDER BY id"))


def test_every_statement_says_what_it_is_for() -> None:
    text = schema.FOLDER.with_name("queries.sql").read_text("utf-8")
    for section in text.split("-- name: ")[1:]:
        _, description, *_ = section.splitlines()
        assert re.fullmatch(r"-- [A-Z].+", description), section
