"""The bus says "look now"; it never carries the only copy of anything.

`publish` is best effort and never blocks or fails a call. A subscriber is told LOST whenever something may have been
missed (at the start, after a reconnect, when its own buffer ran over) and then reads the store again.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Protocol

import msgspec


class Lost(Enum):
    """Something may have been missed: read the store."""

    LOST = "lost"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the bus."""

    topic: str
    data: bytes


class Bus(Protocol):
    """Wake-ups between those who write and those who wait."""

    def publish(self, topic: str, data: bytes) -> None:
        """Tell whoever listens now; duplicates and losses are allowed."""
        ...

    def wants(self, topic: str) -> bool:
        """Whether somebody may listen to the topic: a message nobody hears need not be made."""
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


def mail_topic(tenant: str, box: str) -> str:
    """The topic on which new mail is told."""
    return f"mail.{tenant}.{box}"


AGENTS_CHANGED = "reg.changed"
KEY_REVOKED = "key.revoked"
