"""What the any-to-any tests share: content without a dialect, how a stub agent behaves, and what a stub caller sees.

The stubs in `agents/` and `callers/` speak one dialect each, in words of their own: none of them uses the hub's code,
so a mistake there cannot hide itself.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, Protocol

import msgspec

from tests.support.stub_server import StubHandler, on_free_port

QUESTION: Final = "Which one?"
FAILURE: Final = "it broke"


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file: its bytes, or where it is."""

    raw: bytes | None = None
    uri: str | None = None
    name: str | None = None
    media_type: str | None = None


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """What is said, in no dialect's words: exactly one of the three in the tests, any mixture on the wire."""

    text: str | None = None
    data: Any = None
    file: File | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller got back: the task in the model's words, or the dialect's own error."""

    task_id: str | None = None
    context_id: str | None = None
    state: str | None = None  # submitted working input-required completed failed canceled rejected
    content: tuple[Content, ...] = ()
    message: str | None = None  # the question, or why it failed
    error: str | int | None = None  # the dialect's own code
    status: int = 200  # of HTTP
    raw: Any = None


class Caller(Protocol):
    """A client of one dialect, talking to the hub over real sockets. `agent` is the target's id at the hub."""

    slug: str

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Send a message as this dialect does, and wait for the end as its clients do (poll where they poll)."""
        ...

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """A further message: into the task if it asks for input, else into its context."""
        ...

    def get(self, agent: str, first: Seen) -> Seen:
        """The task again. Raises NotImplementedError where the dialect has no such word."""
        ...

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel the task. Raises NotImplementedError where the dialect has no such word."""
        ...


class StubAgent:
    """An agent in a thread of the test: where it is, what it was sent, and how its slow work is let go."""

    def __init__(self, slug: str) -> None:
        self.slug = slug
        self.url = ""
        self.card: dict[str, Any] = {}
        self.requests: list[tuple[str, str, Mapping[str, str], Any]] = []  # method, path, headers, decoded body
        self.arrived = threading.Event()
        self.cancelled = threading.Event()
        self.release = threading.Event()  # set when the agent stops: nothing waits for ever
        self.names_after_s = 0.0  # how long it takes to say by which name it has a task


def wish_of(text: str | None) -> str:
    """What a text asks a stub agent to do: fail, slow (until cancelled), ask (once), reject, or echo."""
    return text if text in ("fail", "slow", "ask", "reject") else "echo"


Handle = Callable[[str, str, Mapping[str, str], Any], tuple[int, Mapping[str, str], bytes]]


@contextlib.contextmanager
def serving(agent: StubAgent, handle: Handle) -> Generator[StubAgent]:
    """Serve `handle(method, path, headers, body)` on a free port of the loopback address within the block."""

    class Handler(StubHandler):
        def _serve(self) -> None:
            raw, headers = self.read_body(), self.read_headers()
            body: Any = None
            with contextlib.suppress(ValueError):
                body = json.loads(raw) if raw else None
            agent.requests.append((self.command, self.path, headers, body))
            answer = handle(self.command, self.path, headers, body)
            with contextlib.suppress(OSError):
                self.say(*answer)

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the names the parent calls

    with on_free_port(Handler) as agent.url:
        try:
            yield agent
        finally:
            agent.release.set()


def json_answer(body: Any, status: int = 200) -> tuple[int, Mapping[str, str], bytes]:
    """A JSON reply."""
    return status, {}, json.dumps(body).encode()
