"""Whatever is asked for, and however: what is found is what a look at every agent would find, best first, once each."""

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import msgspec
import pytest

from dragoman.backends.sqlite import agents, schema, search
from dragoman.backends.sqlite.connection import Connection, connect
from dragoman.backends.sqlite.facets import capabilities, row_of, words
from dragoman.model.agent import Agent, AgentStatus
from dragoman.model.operations import Discover, Match
from dragoman.ports.store import Scope
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent

SCOPE = Scope(tenant="acme", principal="alice")
AGENTS = 400


@pytest.fixture(scope="module")
def crowd() -> list[Agent]:
    clock, chance = ManualClock(), random.Random(7)
    return [
        new_agent(
            clock,
            f"a{number:04}",
            skills=chance.sample(["s0", "s1", "s2", "übersetzen"], k=2),
            tags=chance.sample(["web", "eu", "Größe XL", "beta"], k=chance.randrange(3)),
            description=" ".join(chance.choices(["whales", "herons", "Translating", "verse"], k=2)),
            labels=["tee"] if chance.random() < 0.1 else [],
            streaming=chance.random() < 0.5,
            rating=chance.choice([4.5, 4.5, 4.5, 4.8, 3.1, 5.0, 1.0]),
            p95_ms=chance.randrange(1000),
            availability=chance.random(),
            status=chance.choice([AgentStatus.ACTIVE, AgentStatus.ACTIVE, AgentStatus.PAUSED]),
            open_=chance.random() < 0.3,
            owner=chance.choice(["alice", "bob"]),
            tenant="acme" if chance.random() < 0.8 else "other",
        )
        for number in range(AGENTS)
    ]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, crowd: list[Agent]) -> Iterator[Connection]:
    with closing(connect(tmp_path_factory.mktemp("registry") / "hub.db")) as connection:
        schema.migrate(connection, schema.migrations(), 0)
        connection.execute("BEGIN")
        for agent in crowd:
            agents.register(connection, agent)
        connection.execute("COMMIT")
        yield connection


QUERIES = [
    Discover(),
    Discover(skills=("s1",)),
    Discover(skills=("s1", "s2")),
    Discover(skills=("s0", "übersetzen"), match=Match.ANY),
    Discover(skills=("s0",), match=Match.ANY, tags=("web",)),
    Discover(tags=("web", "Größe XL")),
    Discover(tags=("web", "eu"), skills=("s1",), min_rating=4.5),
    Discover(capability="streaming", tags=("beta",), without_capability="tee"),
    Discover(without_capability="streaming"),
    Discover(text="whale"),
    Discover(text="translated VERSE", skills=("s2",)),
    Discover(text="herons", tags=("eu",), capability="tee"),
    Discover(text="nothing"),
    Discover(mine=True, status=AgentStatus.ACTIVE),
    Discover(status=AgentStatus.PAUSED, skills=("s0",)),
    Discover(also_paused=True),
    Discover(also_paused=True, text="verse", min_rating=4.6),
    Discover(max_p95_ms=300),
    Discover(max_p95_ms=500, min_availability=0.5, skills=("s1", "s0")),
    Discover(min_availability=0.99, text="whales"),
]
STEMS = {"whale": "whales", "translated": "translating", "verse": "verse", "herons": "herons", "whales": "whales"}


def wanted(agent: Agent, query: Discover, scope: Scope) -> bool:
    """The same, agent by agent."""
    paused = agent.status is AgentStatus.PAUSED
    if agent.tenant != scope.tenant or (paused and not query.also_paused and query.status is not AgentStatus.PAUSED):
        return False
    if scope.principal == "anonymous" and not agent.open:
        return False
    skills = {skill.id for skill in agent.card.skills}
    asked = set(query.skills)
    said = words(agent).lower()
    return all(
        (
            not asked or (asked & skills if query.match is Match.ANY else asked <= skills),
            set(query.tags) <= set(agent.tags),
            query.capability is None or query.capability in set(capabilities(agent.card)),
            query.without_capability is None or query.without_capability not in set(capabilities(agent.card)),
            query.status in (None, agent.status),
            not query.mine or agent.owner_id == scope.principal,
            query.min_rating is None or agent.figures.rating >= query.min_rating,
            query.max_p95_ms is None or agent.figures.p95_ms <= query.max_p95_ms,
            query.min_availability is None or agent.figures.availability >= query.min_availability,
            all(STEMS.get(word, word) in said for word in (query.text or "").lower().split()),
        )
    )


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: str(query)[9:60])
@pytest.mark.parametrize("principal", ["alice", "anonymous"])
def test_what_is_found_is_what_a_look_at_every_agent_finds(
    registry: Connection, crowd: list[Agent], query: Discover, principal: str
) -> None:
    scope = Scope(tenant="acme", principal=principal)
    expected = sorted(
        (agent for agent in crowd if wanted(agent, query, scope)), key=lambda agent: (-agent.figures.rating, agent.id)
    )
    found, total = pages(registry, scope, query)
    assert found == [agent.id for agent in expected]
    assert total == len(expected)


def test_a_walk_for_rare_figures_ends_and_goes_on_where_it_ended(registry: Connection, crowd: list[Agent]) -> None:
    for query in (Discover(max_p95_ms=20), Discover(max_p95_ms=20, skills=("s0", "s1")), Discover(max_p95_ms=-1)):
        everything, total = pages(registry, SCOPE, query)
        some, seen = pages(registry, SCOPE, query, examined=30)
        assert some == everything
        assert len(everything) == total
        assert seen <= total
        first = search.search(registry, SCOPE, query, examined=30)
        assert first.cursor is not None
        assert first.exceeded


def test_a_cursor_of_another_search_is_taken_by_its_offset(registry: Connection) -> None:
    one, several = Discover(skills=("s1",), limit=5), Discover(skills=("s1",), tags=("web",), limit=5)
    first = search.search(registry, SCOPE, one)
    second = search.search(registry, SCOPE, several)
    assert search.search(registry, SCOPE, msgspec.structs.replace(one, cursor=second.cursor)).agents
    assert search.search(registry, SCOPE, msgspec.structs.replace(several, cursor=first.cursor)).agents


def test_a_better_rating_stands_before_and_so_does_an_earlier_number() -> None:
    rows = [row_of(rating, number) for rating in (9.0, 5.0, 4.55, 4.5, 1.0, -1.0, -9.0) for number in (1, 2**39)]
    assert rows[2:] == sorted(set(rows[2:]))
    assert rows[:2] == rows[2:4], "no rating is better than the best"


def pages(registry: Connection, scope: Scope, query: Discover, examined: int = 20_000) -> tuple[list[str], int]:
    """The ids of all pages, and the total of the first."""
    found: list[str] = []
    total = 0
    cursor: str | None = None
    for page in count():
        asked = msgspec.structs.replace(query, cursor=cursor, limit=7)
        shown = search.search(registry, scope, asked, examined=examined)
        total = total if page else shown.total
        found += [agent.id for agent in shown.agents]
        cursor = shown.cursor
        if cursor is None:
            break
    return found, total
