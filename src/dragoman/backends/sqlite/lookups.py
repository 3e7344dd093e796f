"""Keys looked up together: all that are asked for in one turn of the loop make one trip to a reader.

A trip costs two switches of threads, many times the look itself, and calls with request ids come in bursts.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import final

from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.once import Name
from dragoman.backends.sqlite.tasks import KeyTask, find_once
from dragoman.model.errors import DragomanError

Asked = list[tuple[Name, asyncio.Future[KeyTask | None]]]
Looked = asyncio.Future[list[KeyTask | None]]
Look = Callable[[Connection], list[KeyTask | None]]
Ask = Callable[[Look], Looked]


@final
class Lookups:
    """The keys asked for in this turn."""

    __slots__ = ("_ask", "_asked", "_loop", "_now")

    def __init__(self, ask: Ask, now: Callable[[], int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ask = ask
        self._now = now
        self._asked: Asked = []

    def find(self, name: Name) -> asyncio.Future[KeyTask | None]:
        """The task behind a key that has not expired, and its digest."""
        future: asyncio.Future[KeyTask | None] = self._loop.create_future()
        if not self._asked:
            self._loop.call_soon(self._go)
        self._asked.append((name, future))
        return future

    def _go(self) -> None:
        asked, self._asked = self._asked, []
        names, now = [name for name, _ in asked], self._now()
        try:
            looked = self._ask(lambda connection: [find_once(connection, name, now) for name in names])
        except DragomanError as error:
            _refuse(asked, error)
        else:
            looked.add_done_callback(partial(_tell, asked))


def _tell(asked: Asked, looked: Looked) -> None:
    error = looked.exception()
    if error is not None:
        _refuse(asked, error)
        return
    for (_, future), found in zip(asked, looked.result(), strict=True):
        if not future.done():
            future.set_result(found)


def _refuse(asked: Asked, error: BaseException) -> None:
    for _, future in asked:
        if not future.done():
            future.set_exception(error)
