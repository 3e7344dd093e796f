"""Deliveries: notices to callbacks, from their birth until they are forgotten, and the addresses they go to.

A line is what one callback is told of one task: its notices go one after the other, in the order of their events.
Whatever ends a notice (delivered, parked, disabled) lets its line go on.
"""

from datetime import datetime
from enum import StrEnum

import msgspec


class DeliveryState(StrEnum):
    """How a notice stands: still tried; given up until a replay; its address is disabled; it arrived."""

    PENDING = "pending"
    PARKED = "parked"
    DISABLED = "disabled"
    DELIVERED = "delivered"


class NewNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice that an event owes to a callback; without a URL its address is found when it is sent."""

    callback_id: str
    seq: int
    url: str = ""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A notice whose turn it is: what it is about, how often it was tried since it was born or replayed."""

    id: str
    callback_id: str
    seq: int
    tries: int
    replays: int


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """An address that has failed since it last took a notice, or is disabled."""

    failing_since: datetime | None = None
    disabled_at: datetime | None = None
    reason: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a notice has come to. Pending: it is tried again at `again_at`.

    `disables`: why its address is disabled from now on, and with it what else waits for that address.
    """

    state: DeliveryState
    at: datetime
    url: str = ""
    answer: str = ""
    dialled: bool = True
    again_at: datetime | None = None
    disables: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A notice as it is listed. Pending without `again_at`: it is due, on its way, or waits for an earlier one."""

    id: str
    task_id: str
    callback_id: str
    caller_id: str
    seq: int
    url: str
    state: DeliveryState
    born_at: datetime
    tries: int
    replays: int
    tried_at: datetime | None = None
    answer: str | None = None
    again_at: datetime | None = None
    disabled: str | None = None  # why its address is


class DeliveryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which deliveries are asked for; without states, of all."""

    states: tuple[DeliveryState, ...] = ()
    url: str | None = None
    task_id: str | None = None
    since: datetime | None = None
    limit: int = 50
    cursor: str | None = None


class DeliveryList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of deliveries, newest first."""

    deliveries: tuple[Delivery, ...]
    cursor: str | None
