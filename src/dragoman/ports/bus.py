"""The bus says "look now"; it never carries the only copy of anything.

`publish` is best effort and never blocks or fails a call. A subscriber is told LOST whenever something may have been
missed (at the start, after a reconnect, when its own buffer ran over) and then reads the store again.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Protocol

import msgspec

from dragoman.model.events import Happened
from dragoman.model.task import Task


class Lost(Enum):
    """Something may have been missed: read the store."""

    LOST = "lost"


class Grown(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is said of a task that has grown: its new events, and the task with them."""

    task: Task
    happened: Sequence[Happened]


class Said(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message of the bus; of a task's growth that was told in this process, the growth itself."""

    topic: str
    data: bytes = b""
    grown: Grown | None = None


Hear = Callable[[Said | Lost], None]  # called on the loop; it must neither wait nor fail


class Bus(Protocol):
    """Wake-ups between those who write and those who wait."""

    @property
    def lost(self) -> int:
        """How often a subscriber fell so far behind that it was told LOST."""
        ...

    def publish(self, topic: str, data: bytes | Grown) -> None:
        """Tell whoever listens now; duplicates and losses are allowed."""
        ...

    def wants(self, topic: str) -> bool:
        """Whether somebody may listen to the topic: a message nobody hears need not be made."""
        ...

    def listen(self, topic: str, hear: Hear) -> Callable[[], None]:
        """Have `hear` called for every message, LOST first, until the function returned is called.

        Of a topic, or of all that begin with `prefix.*`.
        """
        ...

    def subscribe(self, pattern: str) -> AbstractAsyncContextManager[AsyncIterator[Said | Lost]]:
        """Listen to a topic, or to all that begin with `prefix.*`; the first item is LOST."""
        ...

    async def close(self) -> None:
        """End every subscription."""
        ...


def task_topic(task_id: str) -> str:
    """The topic on which a task's growth is told."""
    return f"ev.{task_id}"


EVERY_TASK = task_topic("*")


def mail_topic(tenant: str, box: str) -> str:
    """The topic on which new mail is told."""
    return f"mail.{tenant}.{box}"


AGENTS_CHANGED = "reg.changed"
KEY_REVOKED = "key.revoked"
