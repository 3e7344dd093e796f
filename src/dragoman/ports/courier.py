"""The courier carries an opened call to its agent and brings back what happened."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

from dragoman.model.agent import Agent, AgentCard
from dragoman.model.call import OpenedCall
from dragoman.model.events import TaskEvent
from dragoman.model.json import JsonObject
from dragoman.model.task import Task


class Delivered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of sending a call. Not settled: it goes on, and `follow` learns how."""

    events: tuple[TaskEvent, ...]
    settled: bool


class Courier(Protocol):
    """What the hub needs from delivery; it names no dialect and opens no socket itself."""

    async def deliver(self, opened: OpenedCall) -> Delivered:
        """Send the call; what the agent or the network did to it is in the events, never raised."""
        ...

    def follow(self, opened: OpenedCall, task: Task) -> AsyncIterator[Sequence[TaskEvent]]:
        """The further events of a call that was sent, as `task` knows it; the last of them settle it."""
        ...

    async def cancel(self, task: Task, agent: Agent, reason: str) -> None:
        """Tell the target to stop, once, best effort; never raises."""
        ...

    async def examine(self, url: str, dialect: str | None) -> AgentCard:
        """Fetch the card at a URL and see what really answers there.

        Raises BadParams with what was seen, if nothing usable answers or the address is not allowed.
        """
        ...

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        ...

    async def keep_credentials(self, agent: Agent, credentials: JsonObject) -> None:
        """Store how the hub authenticates to an agent, sealed and bound to its origin. Raises BadParams."""
        ...
