"""Reads beside the writer: a few connections on threads of their own, each read one short look at the last commit.

Inline there is no thread: reads run at once on the connection that is given.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar, final

from dragoman.backends.sqlite.connection import Connection
from dragoman.model.errors import Overloaded

T = TypeVar("T")

WAITING: Final = 10_000


class _Read(Protocol):
    def __call__(self, connection: Connection, /) -> Callable[[], None]: ...


@final
class Readers:
    """The read lane of one file; without `threads` reads run on the loop."""

    __slots__ = ("_connections", "_loop", "_queue", "_threads")

    def __init__(self, connections: Sequence[Connection], *, threads: bool) -> None:
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        # Bounded by WAITING in `read`: a queue that blocks would block the loop.
        self._queue: queue.SimpleQueue[_Read | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        if threads:
            for number, connection in enumerate(connections):
                thread = threading.Thread(
                    target=self._run, args=(connection,), name=f"store-reader-{number}", daemon=True
                )
                thread.start()
                self._threads.append(thread)

    async def read(self, run: Callable[[Connection], T]) -> T:
        """What the function returns; raises Overloaded when 10,000 reads wait."""
        return await self.ask(run)

    def ask(self, run: Callable[[Connection], T]) -> asyncio.Future[T]:
        """What the function will return; raises Overloaded when 10,000 reads wait."""
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._threads:
            _outcome(run, self._connections[0], future)()
            return future
        if self._queue.qsize() >= WAITING:
            raise Overloaded("The store has too much to read.")
        self._queue.put(lambda connection: _outcome(run, connection, future))
        return future

    async def stop(self) -> None:
        """Finish what was asked, end the threads, close their connections."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await self._loop.run_in_executor(None, thread.join)
        self._threads.clear()

    def _run(self, connection: Connection) -> None:
        while (read := self._queue.get()) is not None:
            self._loop.call_soon_threadsafe(read(connection))
        connection.close()


def _outcome(run: Callable[[Connection], T], connection: Connection, future: asyncio.Future[T]) -> Callable[[], None]:
    """Run it here; what is returned tells the loop."""
    try:
        found = run(connection)
    except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
        failure = error
        return lambda: None if future.done() else future.set_exception(failure)
    return lambda: None if future.done() else future.set_result(found)
