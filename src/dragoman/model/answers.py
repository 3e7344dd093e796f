"""What the hub answers, before any dialect puts it into words."""

from collections.abc import AsyncIterator

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.json import Json
from dragoman.model.operations import Callback
from dragoman.model.task import StreamItem, Task


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The task is on disk and will be carried out."""

    task: Task
    estimate_ms: int | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some tasks, and where the next page begins."""

    tasks: tuple[Task, ...]
    total: int
    cursor: str | None = None


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A task's events, each after its commit."""

    items: AsyncIterator[StreamItem]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, as this caller may see it."""

    agent: Agent
    owner: bool = False  # the caller may see the registered endpoint
    protected: bool = True  # who calls it needs a credential
    is_hub: bool = False  # the hub itself, as an agent that picks another


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


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """An agent is in the registry; token and signing secret are there the first time only."""

    agent: Agent
    created: bool
    protected: bool = True
    token: str | None = None
    signing_secret: str | None = None


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
    | Card
    | Versions
    | AgentPage
    | Registered
    | Pong
    | Callback
    | CallbackList
    | Noted
    | Mail
    | Done
)
