"""Words are looked up in three ways, by how common they are; all three find the same agents in the same order."""

import msgspec
import pytest

from dragoman.backends.sqlite import agents, schema, search
from dragoman.backends.sqlite.connection import Connection, Row, Value, connect
from dragoman.backends.sqlite.facets import match_expression
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.operations import Discover, Match
from dragoman.ports.store import Scope
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent

SCOPE = Scope(tenant="acme", principal="alice")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Connection:
    connection = connect(tmp_path_factory.mktemp("registry") / "hub.db")
    schema.migrate(connection, schema.migrations(), 0)
    clock = ManualClock()
    connection.execute("BEGIN")
    for number in range(1300):
        agent = new_agent(
            clock,
            f"a{number:04}",
            skills=[f"s{number % 3}"],
            description="whales" if number % 13 else "herons",
            rating=4 + number % 7 / 10,
            p95_ms=number,
        )
        agents.register(connection, agent)
    connection.execute("COMMIT")
    return connection


def walk(registry: Connection, **changes: Value) -> list[Row]:
    params: dict[str, Value] = {
        "tenant": "acme",
        "shelf": 0,
        "kind": "skill",
        "value": "s1",
        "score": 1e308,
        "id": "",
        "least": 4.2,
        "must": None,
        "without": None,
        "words": None,
        "common": None,
        "figures": 1,
        "p95_ms": 1000,
        "availability": 0.5,
        "limit": 50,
        "offset": 0,
    }
    return registry.execute(SQL["walk_agents"], {**params, **changes}).fetchall()


@pytest.mark.parametrize("word", ["whales", "herons", "whales agent", "nothing"])
def test_a_walk_finds_the_same_whether_words_are_few_or_common(registry: Connection, word: str) -> None:
    words = match_expression(word, "acme", 0)
    found = walk(registry, words=words)
    assert found == walk(registry, common=words)
    assert bool(found) is (word != "nothing")


@pytest.mark.parametrize(
    "query",
    [
        Discover(skills=("s1",), limit=30),
        Discover(limit=30),
        Discover(skills=("s0", "s2"), match=Match.ANY, limit=30),
        Discover(skills=("s1",), min_rating=4.3, max_p95_ms=900, limit=30),
    ],
)
def test_rare_and_common_words_together_find_what_no_words_find(registry: Connection, query: Discover) -> None:
    # Every agent has one of the two words: more agents the first than are looked at one by one, few the second.
    everyone = pages(registry, query)
    whales = pages(registry, msgspec.structs.replace(query, text="whales"))
    herons = pages(registry, msgspec.structs.replace(query, text="herons"))
    assert len(herons) < 101
    assert sorted(whales + herons) == sorted(everyone)
    assert [name for name in everyone if name in set(whales)] == whales


def pages(registry: Connection, query: Discover) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = search.search(registry, SCOPE, msgspec.structs.replace(query, cursor=cursor))
        found += [agent.id for agent in page.agents]
        cursor = page.cursor
        if cursor is None:
            return found
