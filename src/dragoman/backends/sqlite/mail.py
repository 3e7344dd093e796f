"""Mailboxes: messages for callers without an endpoint, numbered as they came, each until it has arrived."""

import msgspec

from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL


def put(connection: Connection, tenant: str, box: str, body: bytes) -> None:
    """One more message."""
    connection.execute(SQL["put_mail"], (tenant, box, body)).fetchall()


def drop(connection: Connection, tenant: str, box: str, up_to: int) -> None:
    """Forget what has arrived."""
    connection.execute(SQL["drop_mail"], (tenant, box, up_to)).fetchall()


def waiting(connection: Connection, tenant: str, box: str, limit: int) -> list[tuple[int, bytes]]:
    """What waits, oldest first."""
    rows = connection.execute(SQL["mail_of"], (tenant, box, limit)).fetchall()
    return msgspec.convert(rows, list[tuple[int, bytes]])
