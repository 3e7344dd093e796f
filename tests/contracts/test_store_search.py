"""Discovery: what is found, in which order, page by page."""

import asyncio
import base64

import msgspec
import pytest

from dragoman.model.agent import AgentStatus
from dragoman.model.errors import BadParams
from dragoman.model.operations import Discover, Match
from dragoman.ports.store import Registration, Scope, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, BOB, EVERYONE, new_agent
from tests.support.run import run

ANYONE = Scope(tenant="acme", principal="anonymous")


async def names(store: Store, query: Discover, scope: Scope = EVERYONE) -> list[str]:
    return [agent.id for agent in (await store.search(scope, query)).agents]


async def fill(store: Store, clock: ManualClock) -> None:
    agents = (
        new_agent(
            clock, "a", skills=["search"], tags=["web", "eu"], rating=4.0, p95_ms=900, streaming=True, open_=True
        ),
        new_agent(clock, "b", skills=["search", "write"], tags=["web"], rating=4.8, p95_ms=200, availability=0.9),
        new_agent(clock, "c", skills=["write"], rating=4.8, owner="bob", dialect="dotted", labels=["tee"]),
        new_agent(clock, "d", skills=["search"], rating=3.0, status=AgentStatus.UNREACHABLE, private=True, open_=True),
        new_agent(clock, "e", skills=["search"], rating=5.0, status=AgentStatus.PAUSED, open_=True),
        new_agent(clock, "f", skills=["speak"], description="Translating whales' songs into verse", owner="bob"),
        new_agent(clock, "g", skills=["search"], tenant="other", description="whales"),
    )
    for agent in agents:
        await store.register(Registration(agent=agent))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Discover(), "b c f a d"),
        (Discover(skills=("search",)), "b a d"),
        (Discover(skills=("search", "write")), "b"),
        (Discover(skills=("search", "write"), match=Match.ANY), "b c a d"),
        (Discover(skills=("write", "write", "none"), match=Match.ANY), "b c"),
        (Discover(skills=("search", "speak"), match=Match.ANY, tags=("web",)), "b a"),
        (Discover(skills=("nothing",)), ""),
        (Discover(tags=("web", "eu")), "a"),
        (Discover(capability="streaming"), "a"),
        (Discover(capability="tee"), "c"),
        (Discover(dialect="dotted"), "c"),
        (Discover(dialect="dotted", skills=("search",)), ""),
        (Discover(min_rating=4.5), "b c f"),
        (Discover(skills=("search",), min_rating=4.8), "b"),
        (Discover(max_p95_ms=200), "b c f d"),
        (Discover(max_p95_ms=100, skills=("search",)), "d"),
        (Discover(min_availability=0.95, tags=("web",)), "a"),
        (Discover(status=AgentStatus.PAUSED), "e"),
        (Discover(status=AgentStatus.UNREACHABLE), "d"),
        (Discover(status=AgentStatus.ACTIVE, skills=("search",)), "b a"),
        (Discover(status=AgentStatus.REMOVED), ""),
        (Discover(text="whale"), "f"),
        (Discover(text="translate VERSE"), "f"),
        (Discover(text="whales", skills=("speak",)), "f"),
        (Discover(text="whales", skills=("search",)), ""),
        (Discover(text="agent", tags=("web",)), "b a"),
        (Discover(text="agent", min_rating=4.8), "b c"),
        (Discover(text='" OR place:* NEAR('), ""),
        (Discover(text="?!"), ""),
        (Discover(text="  "), "b c f a d"),
    ],
)
def test_what_matches_is_found_best_rating_first_then_by_id(
    store: Running, clock: ManualClock, query: Discover, found: str
) -> None:
    async def scenario() -> None:
        async with store() as running:
            await fill(running, clock)
            assert await names(running, query) == found.split()
            assert (await running.search(EVERYONE, query)).total == len(found.split())

    run(scenario())


def test_the_stranger_sees_only_what_is_open_and_not_private(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await fill(running, clock)
            for query, found in (
                (Discover(), "a"),
                (Discover(skills=("search",)), "a"),
                (Discover(text="agent"), "a"),
                (Discover(status=AgentStatus.PAUSED), "e"),
                (Discover(mine=True), ""),
            ):
                assert await names(running, query, ANYONE) == found.split()
            await running.change_agent("acme", "a", None, False, None)
            assert await names(running, Discover(), ANYONE) == []
            assert await names(running, Discover(), BOB) == ["b", "c", "f", "a", "d"]

    run(scenario())


def test_each_finds_their_own(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await fill(running, clock)
            assert await names(running, Discover(mine=True), BOB) == ["c", "f"]
            assert await names(running, Discover(mine=True, skills=("search",)), ALICE) == ["b", "a", "d"]
            assert await names(running, Discover(mine=True), EVERYONE) == []

    run(scenario())


@pytest.mark.parametrize(
    "query",
    [
        Discover(limit=7),
        Discover(limit=7, skills=("s",)),
        Discover(limit=7, skills=("s", "t"), match=Match.ANY),
        Discover(limit=7, text="agent"),
        Discover(limit=7, text="agent", skills=("s",)),
    ],
)
def test_paging_visits_every_agent_once_while_others_register(
    store: Running, clock: ManualClock, query: Discover
) -> None:
    async def scenario() -> None:
        async with store() as running:
            for number in range(40):
                agent = new_agent(clock, f"a{number:03}", skills=["s"], rating=4.0 + number % 3 / 10)
                await running.register(Registration(agent=agent))
            seen: list[str] = []
            cursor: str | None = None
            newcomers = 0
            while True:
                page = await running.search(EVERYONE, msgspec.structs.replace(query, cursor=cursor))
                seen += [agent.id for agent in page.agents]
                cursor = page.cursor
                if cursor is None:
                    break
                # One before and one after the place where the next page begins.
                for rating in (4.25, 3.5):
                    newcomers += 1
                    newcomer = new_agent(clock, f"n{newcomers:03}", skills=["s", "t"], rating=rating)
                    await running.register(Registration(agent=newcomer))
            assert len(seen) == len(set(seen))
            assert {name for name in seen if name.startswith("a")} == {f"a{number:03}" for number in range(40)}

    run(scenario())


def cursor_of(value: object, *, url: bool = True) -> str:
    raw = msgspec.json.encode(value)
    return (base64.urlsafe_b64encode(raw).rstrip(b"=") if url else base64.b64encode(raw)).decode()


def test_a_cursor_may_be_a_bare_offset(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await fill(running, clock)
            for query in (
                Discover(skills=("search",)),
                Discover(text="agent", skills=("search",)),
                Discover(skills=("search", "none"), match=Match.ANY),
            ):
                for url in (True, False):
                    rest = msgspec.structs.replace(query, cursor=cursor_of({"offset": 1}, url=url))
                    assert await names(running, rest) == ["a", "d"]
            assert await names(running, Discover(text="agent", cursor=cursor_of({"offset": 3}))) == ["a", "d"]
            assert await names(running, Discover(cursor=cursor_of({"offset": 99}))) == []
            decides = cursor_of({"offset": 99, "after": [4.8, "b"]})
            assert await names(running, Discover(cursor=decides)) == ["c", "f", "a", "d"]

    run(scenario())


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "%%%",
        "ä",
        "bm90IGpzb24",
        cursor_of([]),
        cursor_of({}),
        cursor_of({"offset": -1}),
        cursor_of({"offset": "1"}),
        cursor_of({"offset": 2**70}),
        cursor_of({"offset": 1, "after": ["a", 1]}),
        "x" * 5000,
    ],
)
def test_a_malformed_cursor_is_refused(store: Running, cursor: str) -> None:
    async def scenario() -> None:
        async with store() as running:
            with pytest.raises(BadParams):
                await running.search(EVERYONE, Discover(cursor=cursor))
            assert await names(running, Discover()) == []

    run(scenario())


def test_the_total_is_counted_up_to_a_thousand(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            agents = [
                new_agent(clock, f"a{number:04}", skills=["s"] if number else ["s", "t"]) for number in range(1001)
            ]
            await asyncio.gather(*(running.register(Registration(agent=agent)) for agent in agents[:1000]))
            page = await running.search(EVERYONE, Discover(skills=("s",)))
            assert (page.total, page.exceeded) == (1000, False)
            await running.register(Registration(agent=agents[1000]))
            for query in (
                Discover(skills=("s",)),
                Discover(skills=("s", "t"), match=Match.ANY),
                Discover(text="agent"),
                Discover(),
            ):
                page = await running.search(EVERYONE, query)
                assert (page.total, page.exceeded, len(page.agents)) == (1000, True, 20)
            page = await running.search(EVERYONE, Discover(skills=("t",)))
            assert (page.total, page.exceeded, page.cursor) == (1, False, None)

    run(scenario(), timeout_s=60)
