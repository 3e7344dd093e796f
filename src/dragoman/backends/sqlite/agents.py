"""The registry's rows: agents, their names, their card versions, and what they are found by.

An id, an alias or a UUID never changes hands: names are only added, and a removed agent stays as a tombstone that only
its owner revives.
"""

from collections.abc import Callable, Sequence

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Value, number
from dragoman.backends.sqlite.facets import facets, found_by, row_of, shelves, words
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.agent import Agent, AgentFigures, AgentStatus, RateLimits
from dragoman.ports.minutes import Measured
from dragoman.ports.store import StoredAgent, Taken


class _AgentRow(msgspec.Struct, frozen=True, array_like=True):
    number: int
    doc: bytes


class _CardRow(msgspec.Struct, frozen=True, array_like=True):
    card: bytes


class Full(msgspec.Struct, frozen=True):
    """The tenant has as many agents as it may."""

    most: int


def register(connection: Connection, agent: Agent, most: int | None = None) -> StoredAgent | Taken | Full:
    """Put an agent in, or replace it for its owner. Its UUID, first registration and figures stay."""
    holder = number(connection, SQL["name_holder"], (agent.tenant, agent.id))
    old = None if holder is None else _agent(connection, holder)
    if old is not None and (old.id != agent.id or old.owner_id != agent.owner_id):
        return Taken(name=agent.id)
    if old is not None:
        agent = msgspec.structs.replace(agent, uuid=old.uuid, registered_at=old.registered_at, figures=old.figures)
    taken = _taken(connection, agent, holder)
    if taken is not None:
        return Taken(name=taken)
    if most is not None and (old is None or old.status is AgentStatus.REMOVED):
        have = number(connection, SQL["count_tenants_agents"], (agent.tenant, most)) or 0
        if have >= most:
            return Full(most)
    if old is None or holder is None:
        holder = _insert(connection, agent)
    else:
        _replace(connection, holder, old, agent)
    connection.executemany(SQL["add_name"], [(agent.tenant, name, holder) for name in (agent.id, *agent.aliases)])
    connection.execute(SQL["put_card"], (holder, agent.card.version, codec.pack(agent.card))).fetchall()
    return StoredAgent(agent=agent, created=old is None)


def change(
    connection: Connection,
    tenant: str,
    agent_id: str,
    status: AgentStatus | None,
    open_: bool | None,
    private: bool | None,
    limits: RateLimits | None = None,
) -> Agent | None:
    """Change how an agent stands; None if there is none, or only its tombstone."""
    holder = number(connection, SQL["name_holder"], (tenant, agent_id))
    old = None if holder is None else _agent(connection, holder)
    if holder is None or old is None or old.id != agent_id or old.status is AgentStatus.REMOVED:
        return None
    agent = msgspec.structs.replace(
        old,
        status=old.status if status is None else status,
        open=old.open if open_ is None else open_,
        private=old.private if private is None else private,
        limits_set=old.limits_set if limits is None else None if limits == RateLimits() else limits,
    )
    _replace(connection, holder, old, agent)
    return agent


def set_rating(
    connection: Connection, tenant: str, agent_id: str, rating: Callable[[AgentFigures], float]
) -> tuple[Agent, bool] | None:
    """The agent with the rating that its figures come to, and whether it had another; None if there is none.

    A tombstone keeps it, too.
    """
    return _with_figures(connection, tenant, agent_id, lambda old: msgspec.structs.replace(old, rating=rating(old)))


def set_figures(connection: Connection, measured: Measured, rating: float) -> tuple[Agent, bool] | None:
    """The agent as it was measured, and whether it stood otherwise; None if there is none."""

    def now(old: AgentFigures) -> AgentFigures:
        return AgentFigures(
            rating=rating,
            p95_ms=measured.p95_ms,
            availability=measured.availability,
            calls=measured.calls,
            failures=measured.failures,
            seen_at=measured.seen_at or old.seen_at,
        )

    return _with_figures(connection, measured.tenant, measured.agent_id, now)


def to_check(connection: Connection, after: int, limit: int) -> Sequence[tuple[int, Agent]]:
    """Agents of all tenants that may be called, or might again, after a number, each with its own."""
    rows = connection.execute(SQL["agents_to_check"], (after, limit)).fetchall()
    return [(row.number, codec.AGENT.unpack(row.doc)) for row in msgspec.convert(rows, list[_AgentRow])]


def find(connection: Connection, tenant: str, name: str, version: str | None, *, removed: bool = False) -> Agent | None:
    """An agent by id, alias or UUID, its card the current one or that of the version; or else only its tombstone."""
    agent_number = number(connection, SQL["name_holder"], (tenant, name))
    agent = None if agent_number is None else _agent(connection, agent_number)
    if agent is None or name not in (agent.id, *agent.aliases):
        agent_number = number(connection, SQL["uuid_holder"], (name,))
        agent = None if agent_number is None else _agent(connection, agent_number)
        # A UUID names an agent of any tenant, but only one that anyone may see.
        if agent is not None and agent.tenant != tenant and (agent.private or not agent.open):
            return None
    if agent is None or (agent.status is AgentStatus.REMOVED) is not removed:
        return None
    if version is None or version == agent.card.version:
        return agent
    rows = connection.execute(SQL["card_of_version"], (agent_number, version)).fetchall()
    if not rows:
        return None
    return msgspec.structs.replace(agent, card=codec.CARD.unpack(msgspec.convert(rows[0], _CardRow).card))


def versions(connection: Connection, tenant: str, agent_id: str) -> Sequence[str]:
    """The versions its card has had, newest first."""
    agent_number = number(connection, SQL["name_holder"], (tenant, agent_id))
    rows = connection.execute(SQL["versions_of"], (agent_number,)).fetchall()
    return [version for (version,) in msgspec.convert(rows, list[tuple[str]])]


def _agent(connection: Connection, agent_number: int) -> Agent | None:
    rows = connection.execute(SQL["agent_by_number"], (agent_number,)).fetchall()
    return codec.AGENT.unpack(msgspec.convert(rows[0], _AgentRow).doc) if rows else None


def _with_figures(
    connection: Connection, tenant: str, agent_id: str, change: Callable[[AgentFigures], AgentFigures]
) -> tuple[Agent, bool] | None:
    """The agent with other figures, and whether they are others; None if there is none."""
    holder = number(connection, SQL["name_holder"], (tenant, agent_id))
    old = None if holder is None else _agent(connection, holder)
    if holder is None or old is None or old.id != agent_id:
        return None
    figures = change(old.figures)
    if figures == old.figures:
        return old, False
    agent = msgspec.structs.replace(old, figures=figures)
    if figures.rating == old.figures.rating:
        # It stays where it is in every search: nothing but its own row changes.
        row = (holder, figures.p95_ms, figures.availability, codec.pack(agent))
        connection.execute(SQL["set_agent_figures"], row).fetchall()
    else:
        _replace(connection, holder, old, agent)
    return agent, True


def _taken(connection: Connection, agent: Agent, own: int | None) -> str | None:
    """A name or UUID of the agent that belongs to another."""
    for name in (agent.id, *agent.aliases):
        for query, key in (("name_holder", (agent.tenant, name)), ("uuid_holder", (name,))):
            holder = number(connection, SQL[query], key)
            if holder is not None and holder != own:
                return name
    holder = number(connection, SQL["uuid_holder"], (agent.uuid,))
    return agent.uuid if holder is not None and holder != own else None


def _standing(agent: Agent) -> tuple[Value, ...]:
    figures = agent.figures
    return (agent.status.value, figures.rating, figures.p95_ms, figures.availability, codec.pack(agent))


def _insert(connection: Connection, agent: Agent) -> int:
    row = (agent.tenant, agent.id, agent.uuid, *_standing(agent))
    agent_number = number(connection, SQL["add_agent"], row) or 0
    _shelve(connection, agent_number, agent)
    return agent_number


def _replace(connection: Connection, agent_number: int, old: Agent, agent: Agent) -> None:
    connection.executemany(SQL["drop_facet"], [row[:6] for row in _facet_rows(agent_number, old)])
    connection.execute(SQL["drop_indexed"], (row_of(old.figures.rating, agent_number),)).fetchall()
    connection.execute(SQL["change_agent"], (agent_number, *_standing(agent))).fetchall()
    _shelve(connection, agent_number, agent)


def _shelve(connection: Connection, agent_number: int, agent: Agent) -> None:
    connection.executemany(SQL["add_facet"], _facet_rows(agent_number, agent))
    if shelves(agent):
        row = (row_of(agent.figures.rating, agent_number), found_by(agent), words(agent))
        connection.execute(SQL["add_indexed"], row).fetchall()


def _facet_rows(agent_number: int, agent: Agent) -> list[tuple[Value, ...]]:
    score = agent.figures.rating
    return [
        (agent.tenant, shelf, kind, value, score, agent.id, agent_number)
        for shelf in shelves(agent)
        for kind, value in facets(agent)
    ]
