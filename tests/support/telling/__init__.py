"""Agents that tell their answer in two halves, the second when the test lets them; one file per dialect.

To `tell` an agent says FIRST, waits until the test lets it go on, says SECOND and is done. To `slow` it works until it
is told to stop. What its dialect streams it streams; where it is asked for the whole, it answers at the end.
"""

import contextlib
import importlib
import itertools
import json
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from dragoman.dialects.dialect import Dialect
from tests.support.stub_server import StubHandler, on_free_port

FIRST: Final = "one "
SECOND: Final = "two"
WHOLE: Final = FIRST + SECOND
WAIT_S: Final = 60.0
_numbers = itertools.count(1)

Answer = dict[str, Any] | Iterator[bytes]  # what is sent as JSON, or as a stream of events


class Work:
    """One call: what it has said so far, and how it ended."""

    def __init__(self, call_id: str, wish: str, teller: "Teller") -> None:
        self.id = call_id
        self.said: list[str] = []
        self.state = "working"
        self._changed = threading.Condition()
        self._teller = teller
        self._wish = wish
        threading.Thread(target=self._do, daemon=True).start()

    def cancel(self) -> None:
        """Stop working."""
        self._end("canceled")
        self._teller.cancelled.set()

    def pieces(self) -> Iterator[str]:
        """What it says, as it says it, to the end."""
        seen = 0
        while True:
            with self._changed:
                while len(self.said) == seen and self.state == "working":
                    assert self._changed.wait(WAIT_S), "nobody let it go on"
                fresh, ended = self.said[seen:], self.state != "working"
            seen += len(fresh)
            yield from fresh
            if ended:
                return

    def outcome(self) -> str:
        """How it ended, once it has."""
        with self._changed:
            self._changed.wait_for(lambda: self.state != "working", WAIT_S)
            return self.state

    def _do(self) -> None:
        if self._wish == "slow":
            return
        self._say(FIRST)
        self._teller.go.wait(WAIT_S)
        self._say(SECOND)
        self._end("completed")

    def _say(self, text: str) -> None:
        with self._changed:
            if self.state == "working":
                self.said.append(text)
            self._changed.notify_all()

    def _end(self, state: str) -> None:
        with self._changed:
            if self.state == "working":
                self.state = state
            self._changed.notify_all()


class Teller:
    """An agent in a thread of the test."""

    def __init__(self) -> None:
        self.url = ""
        self.card: dict[str, Any] = {}
        self.arrived = threading.Event()
        self.cancelled = threading.Event()
        self.go = threading.Event()
        self.works: dict[str, Work] = {}

    def reset(self) -> None:
        """Be as new for the next test."""
        for event in (self.arrived, self.cancelled, self.go):
            event.clear()

    def begin(self, wish: str, call_id: str = "") -> Work:
        """Take a call."""
        work = Work(call_id or f"remote-{next(_numbers)}", wish, self)
        self.works[work.id] = work
        self.arrived.set()
        return work


Handle = Callable[[str, str, Mapping[str, str], Any], Answer]


def telling_agent(dialect: Dialect) -> AbstractContextManager[Teller]:
    """The agent that speaks a dialect."""
    made: Any = importlib.import_module(f"tests.support.telling.{dialect.name}").agent
    return made()


@contextlib.contextmanager
def told_over_http(teller: Teller, handle: Handle) -> Generator[Teller]:
    """Serve `handle(method, path, headers, body)` on a free port of the loopback address within the block."""

    class Handler(StubHandler):
        def _serve(self) -> None:
            raw = self.read_body()
            said = handle(self.command, self.path, self.read_headers(), json.loads(raw) if raw else None)
            with contextlib.suppress(OSError):
                if isinstance(said, dict):
                    self.say_json(200, said)
                else:
                    self.begin_stream()
                    for frame in said:
                        self.wfile.write(frame)

        do_GET = do_POST = _serve  # noqa: N815 - the names the parent calls

    with on_free_port(Handler) as teller.url:
        try:
            yield teller
        finally:
            teller.go.set()


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def wish_in(value: Any) -> str:
    """What is asked for, wherever in a request it is said."""
    return "slow" if '"slow"' in json.dumps(value) else "tell"
