"""What a dialect is: a record of pure functions around the canonical model, in two halves.

    inbound    bytes → operation; answer, event, error → bytes      (read, Exchange)
    outbound   operation → bytes; bytes → events                    (ask, hear)

A dialect does no I/O and reads no clock: the server stamps each request with an id and a time, and whatever a dialect
has to make up derives from those.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from dragoman.model.agent import AgentCard, Endpoint
from dragoman.model.answers import Answer
from dragoman.model.content import Message
from dragoman.model.errors import DragomanError
from dragoman.model.events import Remote, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import NO_HEADERS, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.operations import Callback, Operation
from dragoman.model.task import StreamItem, Task

ErrorTable = Mapping[type[DragomanError], tuple[str | int, int]]  # class → code and HTTP status


class Exchange(Protocol):
    """One decoded request, and how to answer it in its own words."""

    @property
    def operation(self) -> Operation:
        """What was asked; Unreadable when the bytes made no sense."""
        ...

    def reply(self, answer: Answer) -> HttpReply:
        """The answer, as this request's dialect says it."""
        ...

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal, as this request's dialect says it."""
        ...


class StreamExchange(Exchange, Protocol):
    """An exchange that can also be answered event by event."""

    def head(self) -> HttpReply:
        """Status and headers of the stream."""
        ...

    def frame(self, item: StreamItem) -> bytes:
        """The frames of one item, its number as their id; empty where the dialect has no word for it."""
        ...


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A path of the hub that a dialect serves; `{name}` stands for one segment."""

    method: str
    path: str
    name: str
    body: str = "call"  # which size cap holds: call, admin


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a card is served: the hub's public address, the agent's base, and whether the owner looks."""

    hub_url: str
    base_url: str
    owner: bool = False


class Verb(StrEnum):
    """What an outgoing request asks of an agent."""

    SEND = "send"
    GET = "get"
    CANCEL = "cancel"


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything an outbound half may use to put one request into words."""

    verb: Verb
    task: Task
    endpoint: Endpoint
    at: datetime
    message: Message | None = None  # what is sent, made to fit; only with SEND
    headers: Headers = NO_HEADERS  # trace and credentials, to go along
    caller: str = ""
    attempt: int = 1
    timeout_ms: int = 0
    reason: str = ""


class Heard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an agent's reply says. `settled`: the call needs no further look (ended, or it waits for its caller)."""

    events: tuple[TaskEvent, ...]
    settled: bool
    remote: Remote | None = None


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the model that a dialect cannot say, and what it becomes."""

    facet: str
    becomes: str


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol: its names, what it offers, and its functions."""

    name: str  # the folder
    slug: str  # the spelling in URLs, flags and JSON
    task_prefix: str  # ids of tasks that this dialect's callers open
    features: frozenset[Feature]
    losses: tuple[Loss, ...] = ()
    hub_identity: bool = False  # its agents are shown the hub's own token and signature
    routes: tuple[Route, ...] = ()
    methods: frozenset[str] = frozenset()
    errors: ErrorTable = {}
    read: Callable[[HttpRequest], Exchange] | None = None
    ask: Callable[[Outgoing], HttpRequest | None]
    hear: Callable[[Outgoing, HttpReply, datetime], Heard]  # the time is that of the reply's arrival
    notify: Callable[[Callback, Task], HttpRequest | None] | None = None
    owns_card: Callable[[JsonObject], bool]
    read_card: Callable[[JsonObject], AgentCard]
    write_card: Callable[[AgentCard, Place], Json] | None = None
    card_paths: tuple[str, ...] = ()  # where its agents publish their card, below their URL
    probe: Callable[[str], HttpRequest] | None = None  # a request that starts no work
    answers_probe: Callable[[HttpReply], bool] | None = None


def wire_error(table: ErrorTable, error: DragomanError) -> tuple[str | int, int]:
    """A dialect's words for an error: those of the nearest class of its ancestry that the table has."""
    for error_class in type(error).__mro__:
        if error_class in table:
            return table[error_class]
    raise LookupError(f"the error table has no root: {type(error).__name__}")
