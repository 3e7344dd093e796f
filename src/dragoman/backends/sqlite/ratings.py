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


class _Sum(msgspec.Struct, frozen=True, array_like=True):
    stars: int
    said: int


def rate(connection: Connection, rating: Rating) -> tuple[Agent, bool] | None:
    """Keep a rating in place of the call's earlier one; the agent as it is held now, and whether that changed."""
    row = (rating.task_id, rating.tenant, rating.agent_id, rating.stars, rating.comment)
    connection.execute(_PUT, (*row, codec.to_micros(rating.rated_at))).fetchall()
    rows = connection.execute(_SUM, (rating.tenant, rating.agent_id, COUNTED)).fetchall()
    found = msgspec.convert(rows[0], _Sum)
    return agents.set_rating(connection, rating.tenant, rating.agent_id, rating_of(found.stars, found.said))
