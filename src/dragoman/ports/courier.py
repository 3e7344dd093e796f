"""The courier carries an opened call to its agent and brings back what happened."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

import msgspec

from dragoman.model.agent import Agent, AgentCard
from dragoman.model.call import OpenedCall
from dragoman.model.callbacks import Callback
from dragoman.model.events import Happened, TaskEvent
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.model.task import Task


class Delivered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of sending a call. Not settled: it goes on, and `follow` learns how."""

    events: tuple[TaskEvent, ...]
    settled: bool
    recorded: Callable[[], None] | None = None  # called when the events are on disk, by whoever records them
    unsent: bool = False  # it failed, and nothing of it can have reached the agent: another one could have it


class Told(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of telling somebody. Not delivered: later again, unless the receiver is `gone` for good.

    `status` is the answer's; delivered without one, there was nothing to say.
    """

    delivered: bool
    gone: bool = False
    status: int | None = None
    reason: str = ""
    retry_after_s: int | None = None


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at a URL found: the card to call by, and everything else, to be kept with the agent.

    Where a card was found there: at which URL, and its very bytes. `introduced`: it was made of what the agent
    answered, so that what it has now is known whenever it is asked again.
    """

    card: AgentCard
    probe: JsonObject
    found_at: str | None = None
    body: bytes | None = None
    introduced: bool = False


class Courier(Protocol):
    """What the hub needs from delivery; it names no dialect and opens no socket itself."""

    async def deliver(self, opened: OpenedCall) -> Delivered:
        """Send the call; what the agent or the network did to it is in the events, never raised."""
        ...

    def streams(self, opened: OpenedCall) -> bool:
        """Whether the target tells of the call event by event, in the answer to its sending."""
        ...

    def stream(self, opened: OpenedCall) -> AsyncGenerator[Delivered]:
        """Send the call and tell what happens as it happens. If the last is not settled, `follow` learns the rest."""
        ...

    def follow(self, opened: OpenedCall, now: Callable[[], Task]) -> AsyncGenerator[Sequence[TaskEvent]]:
        """The further events of a call that was sent, after what the task holds `now`; the last of them settle it."""
        ...

    async def cancel(self, task: Task, agent: Agent, reason: str) -> None:
        """Tell the target to stop, once, best effort; never raises."""
        ...

    async def notify(
        self,
        callback: Callback,
        task: Task,
        happened: Happened,
        *,
        url: str,
        recipient: str,
        secret: Secret | None,
        span_id: str,
    ) -> Told:
        """Tell an address of one event, once, signed with the receiver's secret; never raises.

        The receiver is told `span_id` as its place in the call's trace.
        """
        ...

    def put_into_words(self, callback: Callback, task: Task, happened: Happened, *, recipient: str) -> bytes | None:
        """The same as it would be posted, for a mailbox; None where the callback's dialect has no word for it."""
        ...

    async def examine(
        self,
        url: str,
        dialect: str | None = None,
        *,
        credentials: JsonObject | None = None,
        agent: Agent | None = None,
    ) -> Probed:
        """Fetch the card at a URL and see what really answers there; a dialect that is named is tried first.

        Where a credential is wanted, the one given is shown, or the one stored for the agent that is looked at again.
        Raises BadParams with what was seen, if nothing usable answers or the address is not allowed.
        """
        ...

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        ...

    async def keep_credentials(self, agent: Agent, credentials: JsonObject) -> None:
        """Store how the hub authenticates to an agent, sealed and bound to its origin. Raises BadParams."""
        ...
