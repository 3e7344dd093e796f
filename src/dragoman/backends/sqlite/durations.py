"""How long the last calls of each skill took: one small row each, replaced as a whole."""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.store import Took

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, ...]).decode
_PUT: Final = SQL["put_duration"]
_GET: Final = SQL["get_duration"]


def put(connection: Connection, histories: Sequence[Took]) -> None:
    """Keep these histories, each in place of the one that was there."""
    rows = [(each.tenant, each.agent_id, each.skill, _encode(each.last_ms)) for each in histories]
    connection.executemany(_PUT, rows)


def get(connection: Connection, tenant: str, agent_id: str, skill: str) -> tuple[int, ...]:
    """The history of one skill, oldest first; empty where there is none."""
    rows = connection.execute(_GET, (tenant, agent_id, skill)).fetchall()
    return _decode(msgspec.convert(rows[0], tuple[bytes])[0]) if rows else ()
