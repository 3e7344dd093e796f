"""Callers that follow a call event by event: one file per dialect, none of which uses the hub's code.

Every one opens a call as a stream and can come back to it after it was cut. What it sees is told in no dialect's words.
"""

import contextlib
import importlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from dragoman.dialects.dialect import Dialect
from tests.support.sse_client import SseItem, SseStream

FINAL: Final = frozenset({"completed", "failed", "canceled", "rejected"})


class Piece(NamedTuple):
    """One event: the words of the answer that it brought, and the state, if it told one."""

    id: str
    text: str = ""
    state: str | None = None
    message: str | None = None  # why it failed
    whole: str | None = None  # the words of the whole answer, where an event has them all
    task_id: str | None = None


class Followed:
    """One open stream of a call."""

    def __init__(self, pieces: Iterator[Piece], task_id: str | None = None) -> None:
        self._pieces = pieces
        self.task_id = task_id
        self.seen: list[Piece] = []

    @property
    def last_id(self) -> str:
        """The number of the last event that was seen."""
        return next((piece.id for piece in reversed(self.seen) if piece.id), "")

    def until(self, wanted: Callable[[Piece], bool]) -> Piece:
        """Read on until a piece is wanted."""
        for piece in self._pieces:
            self.seen.append(piece)
            self.task_id = self.task_id or piece.task_id
            if wanted(piece):
                return piece
        raise AssertionError(f"the stream ended before that: {self.seen}")

    def rest(self) -> list[Piece]:
        """Read to the end."""
        for piece in self._pieces:
            self.seen.append(piece)
            self.task_id = self.task_id or piece.task_id
        return self.seen


class Follower(Protocol):
    """A client of one dialect that follows its calls."""

    slug: str

    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> AbstractContextManager[Followed]:
        """Make a call and follow it from its beginning."""
        ...

    def resume(self, agent: str, cut: Followed) -> AbstractContextManager[Followed]:
        """Go on with a stream that was cut, after the last event that was seen."""
        ...

    def cancel(self, agent: str, stream: Followed) -> None:
        """Cancel the call that a stream is of."""
        ...


def follower_of(dialect: Dialect) -> Callable[[str, str], Follower]:
    """The follower that speaks a dialect."""
    module: Any = importlib.import_module(f"tests.support.following.{dialect.name}")
    made: Callable[[str, str], Follower] = module.FOLLOWER
    return made


def followed(stream: SseStream, read: Callable[[SseItem], Piece], task_id: str | None = None) -> Followed:
    """A stream of events read as pieces; a refusal is a failure of the test."""
    assert stream.is_stream, (stream.status, stream.body())
    return Followed((read(item) for item in stream), task_id)


@contextlib.contextmanager
def cut_off(opened: AbstractContextManager[Followed], wanted: Callable[[Piece], bool]) -> Generator[Followed]:
    """A stream that is read up to some piece, and then cut."""
    with opened as stream:
        stream.until(wanted)
    yield stream
