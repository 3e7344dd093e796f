"""What a dialect is: a record of pure functions around the canonical model, in two halves.

    inbound    bytes → operation; answer, event, error → bytes      (read, Exchange)
    outbound   operation → bytes; bytes → events                    (ask, hear, listen)

A dialect does no I/O and reads no clock: the server stamps each request with an id and a time, and whatever a dialect
has to make up derives from those.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

import msgspec

from dragoman.dialects.dialogue import Dialogue
from dragoman.dialects.sse import STREAM_HEADERS, SseEvent
from dragoman.model.agent import Agent, AgentCard, Binding, Endpoint
from dragoman.model.answers import Answer, Card
from dragoman.model.callbacks import Callback
from dragoman.model.changes import Change
from dragoman.model.content import Message
from dragoman.model.errors import DragomanError
from dragoman.model.events import Happened, Remote, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import NO_HEADERS, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.operations import Operation, SendTask
from dragoman.model.task import StreamItem, Task

ErrorTable = Mapping[type[DragomanError], tuple[str | int, int]]  # class → code and HTTP status

Id = str | int | msgspec.UnsetType | None  # of a JSON-RPC request; unset: a notification, which wants no answer
NO_RPC_PARAMS: Final = msgspec.Raw(b"{}")


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One JSON-RPC request as it is framed: which method, what with, and the id to answer under."""

    method: str = ""
    params: msgspec.Raw = NO_RPC_PARAMS
    id: Id = None
    error: DragomanError | None = None  # why this is no request


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


Frames = Callable[[StreamItem], bytes]  # the frames of one item, its number as the id; empty where it has no word


class Streaming(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a stream is answered: its headers, and what each of its items is in the dialect's words.

    As long as its reader: `frames` holds no more than it needs, not the request.
    """

    frames: Frames
    headers: Headers = STREAM_HEADERS
    broken: Callable[[DragomanError], bytes] | None = None  # how it says that it cannot go on, where it has words
    nothing_left: bytes = b""  # what a reader is told that had seen the end before, where it waits for a last word


@runtime_checkable
class StreamExchange(Exchange, Protocol):
    """An exchange that can also be answered event by event."""

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """How the stream of that task, in that context, is answered."""
        ...


@runtime_checkable
class ChangesExchange(Exchange, Protocol):
    """An exchange that can also be answered by what changes at the hub, change by change."""

    def changes(self) -> Callable[[Change], bytes]:
        """The frames of one change."""
        ...


class Level(StrEnum):
    """Where a route stands."""

    HUB = "hub"  # at exactly this path
    BASE = "base"  # below every agent's base, in the dialect's own mount there, and at the hub's root
    MOUNT = "mount"  # only in the dialect's own mount


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A path that a dialect serves; `{name}` stands for one segment, `{name}:verb` for one that ends so.

    Below an agent's base the request's params hold the agent's name as `agent`; at the hub's root they do not.
    """

    method: str
    path: str
    name: str
    body: str = "call"  # which size cap holds: call, admin
    level: Level = Level.HUB
    tenant: bool = False  # at the hub's root also as `/{agent}` + path


RPC: Final = "rpc"  # the name of the route by which JSON-RPC comes in, at mounts and shared URLs


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a card is served: the hub's address, the agent's base (with its final slash), and who looks."""

    hub_url: str
    base_url: str
    owner: bool = False
    protected: bool = True  # who calls the agent needs a credential
    one_agent: bool = False  # the root is this agent's own, and not a hub's


class Verb(StrEnum):
    """What an outgoing request asks of an agent."""

    SEND = "send"
    STREAM = "stream"  # send, and receive what happens in the same answer
    SUBSCRIBE = "subscribe"  # receive what happens to a task that was sent before
    GET = "get"
    CANCEL = "cancel"


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything an outbound half may use to put one request into words."""

    verb: Verb
    task: Task
    asked: SendTask  # what is being carried: the request that opened the task, or that which continues it
    endpoint: Endpoint
    at: datetime
    message: Message | None = None  # what is sent, made to fit; only with SEND and STREAM
    headers: Headers = NO_HEADERS  # trace and credentials, to go along
    caller: str = ""
    attempt: int = 1
    timeout_ms: int = 0
    reason: str = ""
    hub_url: str = ""  # where the agent reaches the hub
    hub_id: str = ""  # the hub's own UUID, for wires on which senders have one


class Notice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything an inbound half may use to tell a caller of one event, later and elsewhere."""

    callback: Callback
    task: Task
    happened: Happened
    url: str  # where it is posted; empty for a mailbox
    recipient: str  # who is told, by the name it has on the wire
    hub_url: str
    hub_id: str
    at: datetime


class Heard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an agent's reply says. `settled`: the call needs no further look (ended, or it waits for its caller)."""

    events: tuple[TaskEvent, ...]
    settled: bool
    remote: Remote | None = None


class Listener(Protocol):
    """Hears one stream of an agent: each event with what was heard before in mind."""

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What an event says, of what was not known yet. Raises BadAgentReply."""
        ...


class Talk(Protocol):
    """What is said to an agent before it is called: one request after the other, each made of what was answered."""

    def ask(self) -> HttpRequest | None:
        """The next request; None when all is said."""
        ...

    def hear(self, reply: HttpReply) -> None:
        """Go on by what was answered. Raises BadAgentReply."""
        ...


class Greeting(Talk, Protocol):
    """How a session with an agent is opened."""

    @property
    def headers(self) -> Headers:
        """What every request of the session shows; empty until it is open."""
        ...


class Introduction(Talk, Protocol):
    """How an agent that has no card tells what it is."""

    @property
    def what(self) -> str:
        """The question that was asked last, for people."""
        ...

    @property
    def card(self) -> JsonObject | None:
        """The card that its answers make, for the dialect's own `read_card`; None as long as they make none."""
        ...


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the model that a dialect cannot say, and what it becomes.

    `hinted`: it stands in the `dragoman` block of some metadata, so that between two hubs nothing is lost.
    """

    facet: str
    becomes: str
    hinted: bool = False


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One protocol: its names, what it offers, and its functions."""

    name: str  # the folder
    slug: str  # the spelling in URLs, flags and JSON
    task_prefix: str  # ids of tasks that this dialect's callers open
    features: frozenset[Feature]
    losses: tuple[Loss, ...] = ()
    repeats_after_s: tuple[float, ...] = ()  # waits before a send that failed may be repeated under the same id
    hub_identity: bool = False  # its agents are shown the hub's own token and signature
    routes: tuple[Route, ...] = ()
    methods: frozenset[str] = frozenset()  # the JSON-RPC methods it claims on shared URLs
    methods_begin: str = ""  # and all that begin like this
    rpc_paths: tuple[str, ...] = ()  # further URLs of the hub where this dialect's JSON-RPC is spoken
    dialogue: Dialogue | None = None  # how it is spoken where both sides may write
    batches: bool = False  # its JSON-RPC requests may come several at once
    bindings: frozenset[Binding] = frozenset({Binding.JSONRPC})  # the framings in which it calls agents
    lacks: Mapping[Binding, frozenset[Feature]] = {}  # what it has, but not in every framing
    owns_body: Callable[[JsonObject], bool] | None = None  # a body that is no JSON-RPC, on a shared URL
    owns_request: Callable[[HttpRequest], bool] | None = None  # a request there whose body says nothing at all
    errors: ErrorTable = {}
    read: Callable[[HttpRequest], Exchange] | None = None
    read_framed: Callable[[HttpRequest, Frame], Exchange] | None = None  # on a shared URL, which has read the frame
    ask: Callable[[Outgoing], HttpRequest | None]
    hear: Callable[[Outgoing, HttpReply, datetime], Heard]  # the time is that of the reply's arrival
    # What an agent answers instead of a stream goes to `hear`, which raises NotSupported where it has none.
    listen: Callable[[Outgoing], Listener] | None = None
    notify: Callable[[Notice], HttpRequest | None] | None = None
    # Where calls go in a session: how it is opened, unless this endpoint needs none. `hear` raises BadAgentReply with
    # `reopen` where the agent knows it no longer.
    greet: Callable[[Outgoing], Greeting | None] | None = None
    introduce: Callable[[str], Introduction] | None = None  # where agents have no cards: how the one at a URL is asked
    owns_card: Callable[[JsonObject], bool]
    read_card: Callable[[JsonObject], AgentCard]
    write_card: Callable[[Agent, Place], Json] | None = None
    signed_forms: Callable[[JsonObject], tuple[JsonObject, ...]] | None = None  # what signatures on its cards cover
    card_paths: tuple[str, ...] = ()  # where its agents publish their card, below their URL
    probe: Callable[[str], HttpRequest] | None = None  # a request that starts no work
    answers_probe: Callable[[HttpReply], bool] | None = None


def place_of(answer: Card, hub_url: str, mount: str = "") -> Place:
    """Where the agent of a card is called: at its base (or in a mount there), or at the root if that is its place."""
    base = f"{hub_url}/" if answer.is_hub or answer.at_root else f"{hub_url}/agents/{answer.agent.id}/"
    if mount:
        base += f"{mount}/"
    return Place(
        hub_url=hub_url, base_url=base, owner=answer.owner, protected=answer.protected, one_agent=answer.at_root
    )


def in_mount(request: HttpRequest, slug: str) -> bool:
    """Whether a request was sent to where only that dialect is spoken: `/agents/{agent}/{slug}`, or `/{slug}`."""
    segments = request.url.partition("?")[0].split("/")
    return segments[1:2] == [slug] or (segments[1:2] == ["agents"] and segments[3:4] == [slug])


def unasked(answer: Answer, slug: str) -> AssertionError:
    """The fault of a hub that gives a dialect an answer which none of its requests asks for."""
    return AssertionError(f"no request of {slug} is answered by {type(answer).__name__}")


def wire_error(table: ErrorTable, error: DragomanError) -> tuple[str | int, int]:
    """A dialect's words for an error: those of the nearest class of its ancestry that the table has."""
    for error_class in type(error).__mro__:
        if error_class in table:
            return table[error_class]
    raise LookupError(f"the error table has no root: {type(error).__name__}")
