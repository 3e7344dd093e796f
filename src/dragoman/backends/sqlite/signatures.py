"""Marks of signatures that were seen: each is new once. What has expired goes with the ones that come."""

from collections.abc import Sequence
from typing import Final

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.store import Mark

FORGOTTEN_AT_ONCE: Final = 16  # more than come at once, so that the table shrinks; few, so that nobody waits


def see(connection: Connection, marks: Sequence[Mark], now: int) -> bool:
    """Whether all of them are new; from now on none of them is."""
    connection.execute(SQL["forget_marks"], (now, FORGOTTEN_AT_ONCE)).fetchall()
    fresh = [
        connection.execute(
            SQL["see_mark"], (mark.tenant, mark.caller, mark.digest, codec.to_micros(mark.expires_at), now)
        ).fetchall()
        for mark in marks
    ]
    return all(fresh)
