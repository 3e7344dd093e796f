"""What the hub answers, before any dialect puts it into words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self, TypeVar

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.callbacks import Callback
from dragoman.model.changes import Change
from dragoman.model.circuit import Circuit
from dragoman.model.json import Json, JsonObject
from dragoman.model.task import StreamItem, Task

Item_co = TypeVar("Item_co", covariant=True)


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The task is on disk and will be carried out."""

    task: Task
    estimate_ms: int | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some tasks, and where the next page begins."""

    tasks: tuple[Task, ...]
    total: int
    cursor: str | None = None


class Items(Protocol[Item_co]):
    """The items of a stream as they come, those that have gathered together; one reader."""

    @property
    def cut(self) -> bool:
        """Whether the reader was too slow and missed the rest; it may come back for it."""
        ...

    @property
    def carried(self) -> bool:
        """Whether what it tells of is being done here, for its reader."""
        ...

    def __aiter__(self) -> Self:
        """Iterate once, to the end."""
        ...

    async def __anext__(self) -> Sequence[Item_co]:
        """What has come since; at least one item."""
        ...

    def stop(self) -> None:
        """The hub stops: there are no further items, and that is not the reader's wish."""
        ...

    def close(self) -> None:
        """Nobody reads any more: what waits for the next items is woken, and there are none."""
        ...


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a task, each event after its commit."""

    items: Items[StreamItem]
    tenant: str
    task_id: str
    context_id: str


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What changes among agents and among the caller's tasks, for as long as somebody reads."""

    items: Items[Change]


class SignsCards(Protocol):
    """What signs the cards that the hub serves."""

    @property
    def kid(self) -> str:
        """The key that signs now."""
        ...

    def signatures(self, digest: bytes, forms: Callable[[], Sequence[JsonObject]]) -> bytes:
        """The JSON of the signatures on the card of that digest, over these forms of it; empty if there can be none."""
        ...


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, as this caller may see it."""

    agent: Agent
    owner: bool = False  # the caller may see the registered endpoint
    protected: bool = True  # who calls it needs a credential
    is_hub: bool = False  # the hub itself, as an agent that picks another
    at_root: bool = False  # the agent whose own server this is: its base is the root
    signer: SignsCards | None = None


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions an agent's card has had, newest first."""

    agent_id: str
    versions: tuple[str, ...]


class AgentPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some agents, best first, and where the next page begins."""

    agents: tuple[Agent, ...]
    total: int
    exceeded: bool = False
    cursor: str | None = None
    circuits: Mapping[str, Circuit] = {}  # of those that are not called freely at the moment, by their id


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """An agent is in the registry; token and signing secret are there the first time only."""

    agent: Agent
    created: bool
    protected: bool = True
    token: str | None = None
    signing_secret: str | None = None


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller said of a call is kept; the agent as it is rated now."""

    task_id: str
    stars: int
    comment: str | None
    agent: Agent


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a ping."""

    nonce: str | None = None
    echo: Json = None


class CallbackList(msgspec.Struct, frozen=True, kw_only=True):
    """A task's callbacks."""

    callbacks: tuple[Callback, ...]


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """A report was taken; not `applied` if the task could no longer change."""

    task: Task
    applied: bool = True


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that waited, each as it would have been posted, and the number up to which these go."""

    messages: tuple[bytes, ...]
    cursor: int


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It is done; there is nothing to show."""


Answer = (
    Task
    | Accepted
    | TaskPage
    | Stream
    | Changes
    | Card
    | Versions
    | AgentPage
    | Registered
    | Rated
    | Pong
    | Callback
    | CallbackList
    | Noted
    | Mail
    | Done
)
