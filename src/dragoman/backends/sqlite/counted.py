"""A connection that counts what it is given to write, so that the log's growth is known whatever a step writes.

Only for steps off the hot path; calls count their own blobs.
"""

from collections.abc import Iterable, Mapping
from typing import Final, final

from dragoman.backends.sqlite.connection import Connection, Parameters, Rows

ROW_BYTES: Final = 512  # what a row costs in the log beside its values: its share of pages and indexes


@final
class CountedConnection:
    """The same connection; `size` is about how many bytes of log its statements make."""

    __slots__ = ("_connection", "size")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.size = 0

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        """Run one statement."""
        self._count(parameters)
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        """Run one statement for each set of parameters."""
        rows = list(parameters)
        for row in rows:
            self._count(row)
        return self._connection.executemany(sql, rows)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _count(self, parameters: Parameters) -> None:
        values = parameters.values() if isinstance(parameters, Mapping) else parameters
        self.size += ROW_BYTES + sum(len(value) for value in values if isinstance(value, str | bytes))
