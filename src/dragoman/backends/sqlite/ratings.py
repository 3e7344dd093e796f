"""What callers said of calls, and what it comes to for each agent."""

from typing import Final

import msgspec

from dragoman.backends.sqlite import agents, codec
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.agent import Agent
from dragoman.model.rating import COUNTED, rating_of
from dragoman.ports.store import Rating

_PUT: Final = SQL["put_rating"]
_SUM: Final = SQL["sum_ratings"]


class Stars(msgspec.Struct, frozen=True, array_like=True):
    """The stars of an agent's newest ratings, and how many those are."""

    stars: int
    said: int


def rate(connection: Connection, rating: Rating) -> tuple[Agent, bool] | None:
    """Keep a rating in place of the call's earlier one; the agent as it is held now, and whether that changed."""
    row = (rating.task_id, rating.tenant, rating.agent_id, rating.stars, rating.comment)
    connection.execute(_PUT, (*row, codec.to_micros(rating.rated_at))).fetchall()
    found = stars_of(connection, rating.tenant, rating.agent_id)
    return agents.set_rating(
        connection,
        rating.tenant,
        rating.agent_id,
        lambda figures: rating_of(found.stars, found.said, figures.calls, figures.failures),
    )


def stars_of(connection: Connection, tenant: str, agent_id: str) -> Stars:
    """What callers said of an agent, added up."""
    rows = connection.execute(_SUM, (tenant, agent_id, COUNTED)).fetchall()
    return msgspec.convert(rows[0], Stars)
