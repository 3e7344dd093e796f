"""Mailboxes: messages for callers without an endpoint, numbered as they came, each until it has arrived."""

from collections.abc import Collection

import msgspec

from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL


def put(connection: Connection, tenant: str, box: str, body: bytes, now: int) -> None:
    """One more message."""
    connection.execute(SQL["put_mail"], (tenant, box, body, now)).fetchall()


def drop(connection: Connection, tenant: str, box: str, up_to: int) -> None:
    """Forget what has arrived."""
    connection.execute(SQL["drop_mail"], (tenant, box, up_to)).fetchall()


def drop_these(connection: Connection, tenant: str, box: str, numbers: Collection[int]) -> None:
    """Forget these, and no other."""
    for number in numbers:
        connection.execute(SQL["drop_letter"], (tenant, box, number)).fetchall()


def beyond(connection: Connection, tenant: str, box: str, number: int) -> tuple[int, bytes] | None:
    """The oldest message that came after that number, if there is one."""
    rows = connection.execute(SQL["next_mail"], (tenant, box, number)).fetchall()
    return msgspec.convert(rows[0], tuple[int, bytes]) if rows else None


def waiting(connection: Connection, tenant: str, box: str, limit: int) -> list[tuple[int, bytes]]:
    """What waits, oldest first."""
    rows = connection.execute(SQL["mail_of"], (tenant, box, limit)).fetchall()
    return msgspec.convert(rows, list[tuple[int, bytes]])
