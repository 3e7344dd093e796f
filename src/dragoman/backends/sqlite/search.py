"""Discovery: one index is walked from the best agent on, and the walk stops after the page.

Which index: the rarest of the facets asked for; other facets, words and figures are checked by look-ups on the way.
Several skills of which any will do are several walks, merged. Words that at most 1,000 agents have need no walk: those
agents are looked at one by one. Never ranked by the text index: over a common word that costs as much as reading all
its agents.
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Value, number
from dragoman.backends.sqlite.cursor import from_cursor, to_cursor
from dragoman.backends.sqlite.facets import ALL, FINDABLE, NOT_FOUND, PAUSED, PUBLIC, Facet, match_expression
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.agent import Agent, AgentStatus
from dragoman.model.operations import Discover, Match
from dragoman.ports.store import AgentList, Scope

TOTAL: Final = 1000
CANDIDATES: Final = 1000
COMMON: Final = 20_000  # agents with a word: from here on it is met soon enough on the walk
SIZES: Final = (200, 10_000)  # how far facets are counted to find the rarest
ANONYMOUS: Final = "anonymous"
MAX_PAGE: Final = 1000
_BEYOND: Final = 1e308  # no rating is better
_NOTHING: Final = AgentList(agents=(), total=0, exceeded=False, cursor=None)

Params = dict[str, Value]


class Position(msgspec.Struct, frozen=True):
    """Where a page begins: after this agent; without one, after so many."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
    after: tuple[float, str] | None = None


class Hit(msgspec.Struct, frozen=True, array_like=True):
    """An agent that was found, before it is read."""

    score: float
    id: str
    agent: int

    def rank(self) -> tuple[float, str]:
        """Best first, then by id."""
        return (-self.score, self.id)


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A search, ready to run: the facets to walk, and the parameters all walks share."""

    walked: list[Facet]
    must: list[Facet]
    shared: Params


def search(connection: Connection, scope: Scope, query: Discover) -> AgentList:
    """One page of what matches, all of it from one commit. Raises BadParams for a malformed cursor."""
    start = Position(offset=0) if query.cursor is None else from_cursor(query.cursor, Position)
    connection.execute("BEGIN")
    try:
        return _search(connection, scope, query, start)
    finally:
        connection.execute("COMMIT")


def _search(connection: Connection, scope: Scope, query: Discover, start: Position) -> AgentList:
    limit = min(max(query.limit, 1), MAX_PAGE)
    shelves = (FINDABLE, PAUSED) if query.also_paused else (PAUSED if query.status in NOT_FOUND else FINDABLE,)
    plans = [plan for shelf in shelves if (plan := _plan(connection, scope, query, shelf)) is not None]
    if not plans:
        return _NOTHING
    if len(plans) == 1:
        hits, total = _found(connection, plans[0], start, limit + 1)
    else:
        # A page of two shelves is among the first so many of each.
        skip = 0 if start.after is not None else start.offset
        begin = start if start.after is not None else Position(offset=0)
        both = [_found(connection, plan, begin, skip + limit + 1) for plan in plans]
        hits = sorted((hit for found, _ in both for hit in found), key=Hit.rank)[skip : skip + limit + 1]
        total = sum(count for _, count in both)
    shown = hits[:limit]
    cursor = None
    if len(hits) > limit:
        last = shown[-1]
        cursor = to_cursor(Position(offset=start.offset + limit, after=(last.score, last.id)))
    return AgentList(
        agents=tuple(_read(connection, shown)), total=min(total, TOTAL), exceeded=total > TOTAL, cursor=cursor
    )


def _found(connection: Connection, plan: _Plan, start: Position, wanted: int) -> tuple[list[Hit], int]:
    """The first hits after a position, and how many there are in all."""
    few = _with_words(connection, plan) if plan.shared["words"] is not None else None
    if few is None:
        return _walk(connection, _for_walk(connection, plan), start, wanted), _count(connection, plan)
    return _page(few, start, wanted), len(few)


def _plan(connection: Connection, scope: Scope, query: Discover, shelf: int) -> _Plan | None:
    """How to search one shelf; None if nothing can match."""
    if scope.principal == ANONYMOUS:
        shelf += PUBLIC
    text = (query.text or "").strip()
    words = match_expression(text, scope.tenant, shelf) if text else None
    if query.status is AgentStatus.REMOVED or (text and words is None) or (query.mine and scope.principal is None):
        return None
    needed = _needed(scope, query)
    any_of = [("skill", skill) for skill in dict.fromkeys(query.skills)] if query.match is Match.ANY else []
    walked = any_of or [_rarest(connection, scope.tenant, shelf, needed)]
    must = [facet for facet in needed if facet not in walked]
    figures = query.max_p95_ms is not None or query.min_availability is not None
    shared: Params = {
        "tenant": scope.tenant,
        "shelf": shelf,
        "least": -_BEYOND if query.min_rating is None else query.min_rating,
        "must": msgspec.json.encode(must).decode() if must else None,
        "without": query.without_capability,
        "words": words,
        "common": None,
        "figures": 1 if figures else None,
        "p95_ms": 2**62 if query.max_p95_ms is None else query.max_p95_ms,
        "availability": -_BEYOND if query.min_availability is None else query.min_availability,
    }
    return _Plan(walked=walked, must=must, shared=shared)


def _needed(scope: Scope, query: Discover) -> list[Facet]:
    """The facets an agent must have, all of them."""
    needed: list[Facet] = []
    if query.match is Match.ALL:
        needed += [("skill", skill) for skill in query.skills]
    needed += [("tag", tag) for tag in query.tags]
    if query.capability is not None:
        needed.append(("capability", query.capability))
    if query.dialect is not None:
        needed.append(("dialect", query.dialect))
    if query.status is not None:
        needed.append(("status", query.status.value))
    if query.mine and scope.principal is not None:
        needed.append(("owner", scope.principal))
    return list(dict.fromkeys(needed))


def _rarest(connection: Connection, tenant: str, shelf: int, needed: list[Facet]) -> Facet:
    if len(needed) < 2:
        return needed[0] if needed else ALL
    rarest = needed[0]
    for limit in SIZES:
        sizes = {facet: number(connection, SQL["facet_size"], (tenant, shelf, *facet, limit)) or 0 for facet in needed}
        rarest = min(needed, key=sizes.__getitem__)
        if sizes[rarest] < limit:
            break
    return rarest


def _walk(connection: Connection, plan: _Plan, start: Position, wanted: int) -> list[Hit]:
    """The first hits after the position. A page of several walks is among the first so many of each."""
    score, after_id = (_BEYOND, "") if start.after is None else start.after
    skip = 0 if start.after is not None else start.offset
    alone = len(plan.walked) == 1
    found: dict[str, Hit] = {}
    for kind, value in plan.walked:
        params: Params = {**plan.shared, "kind": kind, "value": value, "score": score, "id": after_id}
        params |= {"limit": wanted if alone else wanted + skip, "offset": skip if alone else 0}
        for hit in msgspec.convert(connection.execute(SQL["walk_agents"], params).fetchall(), list[Hit]):
            found[hit.id] = hit
    ranked = sorted(found.values(), key=Hit.rank)
    return ranked if alone else ranked[skip : skip + wanted]


def _for_walk(connection: Connection, plan: _Plan) -> _Plan:
    """The plan with its words where the walk is quickest."""
    words = plan.shared["words"]
    if words is None or (number(connection, SQL["words_size"], (words, COMMON)) or 0) < COMMON:
        return plan
    return msgspec.structs.replace(plan, shared={**plan.shared, "words": None, "common": words})


def _count(connection: Connection, plan: _Plan) -> int:
    if plan.shared["words"] is not None and plan.walked == [ALL]:
        return TOTAL + 1  # more than the candidates, of whom nothing else was asked
    if len(plan.walked) > 1:
        return len(_walk(connection, plan, Position(offset=0), TOTAL + 1))
    kind, value = plan.walked[0]
    params: Params = {**plan.shared, "kind": kind, "value": value, "limit": TOTAL + 1}
    return number(connection, SQL["count_agents"], params) or 0


def _with_words(connection: Connection, plan: _Plan) -> list[Hit] | None:
    """All that match, best first, looked at one by one; None if too many have the words."""
    params: Params = {**plan.shared, "limit": CANDIDATES + 1}
    hits = msgspec.convert(connection.execute(SQL["agents_with_words"], params).fetchall(), list[Hit])
    if len(hits) > CANDIDATES:
        return None

    without = plan.shared["without"]
    if plan.walked == [ALL] and without is None:
        return sorted(hits, key=Hit.rank)

    def has(hit: Hit, facet: Facet) -> bool:
        shelf = (plan.shared["tenant"], plan.shared["shelf"])
        return bool(number(connection, SQL["has_facet"], (*shelf, *facet, hit.score, hit.id)))

    matching = (
        hit for hit in hits if all(has(hit, it) for it in plan.must) and any(has(hit, it) for it in plan.walked)
    )
    kept = (hit for hit in matching if not (isinstance(without, str) and has(hit, ("capability", without))))
    return sorted(kept, key=Hit.rank)


def _page(hits: list[Hit], start: Position, wanted: int) -> list[Hit]:
    if start.after is None:
        return hits[start.offset : start.offset + wanted]
    score, after_id = start.after
    return [hit for hit in hits if hit.rank() > (-score, after_id)][:wanted]


def _read(connection: Connection, hits: Iterable[Hit]) -> Iterable[Agent]:
    for hit in hits:
        for row in connection.execute(SQL["agent_by_number"], (hit.agent,)).fetchall():
            yield codec.AGENT.unpack(msgspec.convert(row, tuple[int, bytes])[1])
