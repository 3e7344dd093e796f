"""Discovery: one index is walked from the best agent on, and the walk stops after the page.

    nothing, or one facet      agent_facet, by rating, then by id
    several of them, or words  agent_index, whose rows are numbered in the order of ratings: a facet or a word is a list
                               of numbers there, and the lists are walked side by side

Neither is sorted, ranked or read to its end, however many agents there are. Figures that change all the time are in no
index: they are looked at on the way, of at most 20,000 agents at once; the cursor then goes on where that ended.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Value, number
from dragoman.backends.sqlite.cursor import from_cursor, to_cursor
from dragoman.backends.sqlite.facets import (
    ALL,
    FINDABLE,
    MOST_ROW,
    NOT_FOUND,
    PAUSED,
    PUBLIC,
    Facet,
    Looked,
    expression,
    first_row,
    words_of,
)
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.agent import Agent, AgentStatus
from dragoman.model.operations import Discover, Match
from dragoman.ports.store import AgentList, Scope

TOTAL: Final = 1000
EXAMINED: Final = 20_000  # agents whose figures are looked at for one page, and for its total
SLICE: Final = 500
ANONYMOUS: Final = "anonymous"
MAX_PAGE: Final = 1000
_BEYOND: Final = 1e308  # no rating is better
_NOTHING: Final = AgentList(agents=(), total=0, exceeded=False, cursor=None)

Params = dict[str, Value]


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a page begins: after this agent, or this row of the index; without either, after so many."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
    after: tuple[float, str] | None = None
    row: Annotated[int, msgspec.Meta(ge=0, le=MOST_ROW)] | None = None


class Hit(msgspec.Struct, frozen=True, array_like=True):
    """An agent that was found, before it is read; `row` is its place in the index, where that is walked."""

    row: int
    score: float
    id: str
    agent: int
    p95_ms: int
    availability: float

    def at(self, offset: int) -> Position:
        """The position after it."""
        if self.row:
            return Position(offset=offset, row=self.row)
        return Position(offset=offset, after=(self.score, self.id))


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A search, ready to run: one facet to walk, or an expression of the index; and the figures that are wanted."""

    tenant: str
    shelf: int
    facet: Facet | None
    match: str | None
    query: Discover
    examined: int

    @property
    def figures(self) -> bool:
        return self.query.max_p95_ms is not None or self.query.min_availability is not None

    def wants(self, hit: Hit) -> bool:
        """Whether an agent's figures are good enough."""
        most, least = self.query.max_p95_ms, self.query.min_availability
        return (most is None or hit.p95_ms <= most) and (least is None or hit.availability >= least)


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """The first hits; `last` was looked at last where the walk was broken off before there were enough."""

    hits: Sequence[Hit]
    last: Hit | None = None


def search(connection: Connection, scope: Scope, query: Discover, *, examined: int = EXAMINED) -> AgentList:
    """One page of what matches, all of it from one commit. Raises BadParams for a malformed cursor.

    `examined`: how many agents' figures are looked at, at most.
    """
    start = Position(offset=0) if query.cursor is None else from_cursor(query.cursor, Position)
    connection.execute("BEGIN")
    try:
        return _search(connection, scope, query, start, examined)
    finally:
        connection.execute("COMMIT")


def _search(connection: Connection, scope: Scope, query: Discover, start: Position, examined: int) -> AgentList:
    plan = _plan(scope, query, examined)
    if plan is None:
        return _NOTHING
    limit = min(max(query.limit, 1), MAX_PAGE)
    if plan.match is None:
        start = msgspec.structs.replace(start, row=None)  # A cursor of another search: only its offset counts.
    elif start.row is None:
        start = msgspec.structs.replace(start, after=None)
    page = _page(connection, plan, start, limit + 1)
    total, counted = _total(connection, plan)
    shown = page.hits[:limit]
    cursor = None
    if len(page.hits) > limit:
        cursor = to_cursor(shown[-1].at(start.offset + limit))
    elif page.last is not None:
        cursor = to_cursor(page.last.at(start.offset + len(shown)))
    return AgentList(
        agents=tuple(_read(connection, shown)),
        total=min(total, TOTAL),
        exceeded=total > TOTAL or not counted,
        cursor=cursor,
    )


def _plan(scope: Scope, query: Discover, examined: int) -> _Plan | None:
    """How to search; None if nothing can match."""
    words = words_of(query.text or "")
    said = bool((query.text or "").strip())
    if query.status is AgentStatus.REMOVED or (said and not words) or (query.mine and scope.principal is None):
        return None
    shelves = (FINDABLE, PAUSED) if query.also_paused else (PAUSED if query.status in NOT_FOUND else FINDABLE,)
    if scope.principal == ANONYMOUS:
        shelves = tuple(shelf + PUBLIC for shelf in shelves)
    skills: list[Facet] = [("skill", skill) for skill in dict.fromkeys(query.skills)]
    any_of = skills if query.match is Match.ANY and len(skills) > 1 else []
    needed = ([] if any_of else skills) + _needed(scope, query)
    without = None if query.without_capability is None else ("capability", query.without_capability)
    plain = len(needed) < 2 and len(shelves) == 1 and not (words or any_of or without)
    looked = Looked(tenant=scope.tenant, shelves=shelves, all_of=needed, any_of=any_of, without=without, words=words)
    return _Plan(
        tenant=scope.tenant,
        shelf=shelves[0],
        facet=(needed[0] if needed else ALL) if plain else None,
        match=None if plain else expression(looked),
        query=query,
        examined=examined,
    )


def _needed(scope: Scope, query: Discover) -> list[Facet]:
    """The facets beside skills that an agent must have, all of them."""
    needed: list[Facet] = [("tag", tag) for tag in query.tags]
    if query.capability is not None:
        needed.append(("capability", query.capability))
    if query.dialect is not None:
        needed.append(("dialect", query.dialect))
    if query.status is not None:
        needed.append(("status", query.status.value))
    if query.mine and scope.principal is not None:
        needed.append(("owner", scope.principal))
    return list(dict.fromkeys(needed))


def _page(connection: Connection, plan: _Plan, start: Position, wanted: int) -> _Page:
    """The first hits after a position."""
    if not plan.figures:
        return _Page(hits=_slice(connection, plan, start, wanted))
    hits: list[Hit] = []
    skip = 0 if start.after is not None or start.row is not None else start.offset
    last: Hit | None = None
    for looked_at, hit in enumerate(_walk(connection, plan, start), start=1):
        if plan.wants(hit):
            if skip:
                skip -= 1
            else:
                hits.append(hit)
        if len(hits) == wanted:
            return _Page(hits=hits)
        if looked_at == plan.examined:
            last = hit
            break
    return _Page(hits=hits, last=last)


def _walk(connection: Connection, plan: _Plan, start: Position) -> Iterator[Hit]:
    """All agents after a position, whatever their figures."""
    begin = start if start.after is not None or start.row is not None else Position(offset=0)
    while True:
        hits = _slice(connection, plan, begin, SLICE)
        yield from hits
        if len(hits) < SLICE:
            return
        begin = hits[-1].at(0)


def _slice(connection: Connection, plan: _Plan, start: Position, limit: int) -> list[Hit]:
    offset = 0 if start.after is not None or start.row is not None else start.offset
    if plan.match is not None:
        params = {**_matched(plan), "after": start.row or 0, "limit": limit, "offset": offset}
        return _hits(connection, "walk_index", params)
    params = {**_shelf(plan), "limit": limit, "offset": offset}
    if start.after is None:
        return _hits(connection, "walk_facet", {**params, "score": _BEYOND})
    # First the rest of those that are as good: thousands may be.
    score, after_id = start.after
    hits: list[Hit] = []
    if score >= _least(plan):
        hits = _hits(connection, "walk_equals", {**params, "score": score, "id": after_id})
    if len(hits) < limit:
        hits += _hits(connection, "walk_facet", {**params, "score": score, "limit": limit - len(hits)})
    return hits


def _total(connection: Connection, plan: _Plan) -> tuple[int, bool]:
    """How many match, counted to one more than is shown; and whether all were looked at."""
    if not plan.figures:
        if plan.match is not None:
            return number(connection, SQL["count_index"], {**_matched(plan), "limit": TOTAL + 1}) or 0, True
        return number(connection, SQL["count_facet"], {**_shelf(plan), "limit": TOTAL + 1}) or 0, True
    found = _page(connection, plan, Position(offset=0), TOTAL + 1)
    return len(found.hits), found.last is None


def _shelf(plan: _Plan) -> Params:
    kind, value = plan.facet or ALL
    return {"tenant": plan.tenant, "shelf": plan.shelf, "kind": kind, "value": value, "least": _least(plan)}


def _matched(plan: _Plan) -> Params:
    least = plan.query.min_rating
    return {"match": plan.match, "end": MOST_ROW if least is None else first_row(least, beyond=True)}


def _least(plan: _Plan) -> float:
    return -_BEYOND if plan.query.min_rating is None else plan.query.min_rating


def _hits(connection: Connection, name: str, params: Params) -> list[Hit]:
    return msgspec.convert(connection.execute(SQL[name], params).fetchall(), list[Hit])


def _read(connection: Connection, hits: Iterable[Hit]) -> Iterable[Agent]:
    for hit in hits:
        for row in connection.execute(SQL["agent_by_number"], (hit.agent,)).fetchall():
            yield codec.AGENT.unpack(msgspec.convert(row, tuple[int, bytes])[1])
