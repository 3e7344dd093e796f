"""Work that many want at once and one does: the others wait for it and get what it got, its error included.

Whoever does it may be cancelled: then the next of those that wait does it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, final

from dragoman.model.errors import DragomanError

T = TypeVar("T")


@final
class _Flight(Generic[T]):
    __slots__ = ("error", "landed", "outcome")

    def __init__(self) -> None:
        self.landed = asyncio.Event()
        self.outcome: list[T] = []
        self.error: DragomanError | None = None


@final
class Flights(Generic[T]):
    """Work under way, by name; as many as there are callers that wait."""

    __slots__ = ("_flights",)

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def fly(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """What the work gives, done once for all who ask meanwhile. Raises what it raises."""
        while (flight := self._flights.get(name)) is not None:
            await flight.landed.wait()
            if flight.error is not None:
                raise type(flight.error)(flight.error.message, **flight.error.details)
            if flight.outcome:
                return flight.outcome[0]
        flight = self._flights[name] = _Flight[T]()
        try:
            outcome = await work()
        except DragomanError as error:
            flight.error = error
            raise
        else:
            flight.outcome.append(outcome)
            return outcome
        finally:
            del self._flights[name]
            flight.landed.set()
