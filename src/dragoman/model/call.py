"""Who calls, and a call on its way: each step of admission is a type, so a step cannot be left out.

SendTask → admit → AdmittedCall → open → OpenedCall → deliver
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from dragoman.model.agent import Agent, Endpoint, RateLimits, Skill
from dragoman.model.budget import Budget
from dragoman.model.compiled import NO_SCHEMA, Compiled
from dragoman.model.content import Message
from dragoman.model.operations import SendTask
from dragoman.model.task import Task, Trace


class Arrival(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a request came: when, in which dialect, in which trace, and under which id its task would be known."""

    task_id: str
    request_id: str
    at: datetime
    dialect: str
    trace: Trace
    since: float  # monotonic
    signed: bool = False  # by its caller, with a signature that covers the time too
    address: str = ""  # the client's


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller: what every decision below is made for."""

    tenant: str
    id: str
    agent_id: str | None = None
    scopes: frozenset[str] = frozenset()
    key_id: str | None = None
    allow: tuple[str, ...] = ()  # target:skill patterns; none means all
    admin: bool = False  # the hub's administrator, not only a tenant's
    anonymous: bool = False
    limits: RateLimits | None = None  # of its key
    budget: Budget | None = None  # of its key

    @property
    def name(self) -> str:
        """How this caller is named towards agents and in logs: its agent id, else its own id."""
        return self.agent_id or self.id


class AdmittedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may be made: every check is behind it."""

    caller: Caller
    operation: SendTask
    agent: Agent
    endpoint: Endpoint
    skill: Skill | None
    message: Message  # what is sent: defaults filled in, made to fit the target
    task: Task
    timeout_s: float  # how long the whole call may take
    deadline: float  # monotonic
    signed: bool = False  # the request that made it was
    durable: bool = False  # somebody else may need the task as soon as it is sent: it must be on disk before
    compiled: Compiled = NO_SCHEMA  # its skill's
    others: tuple[str, ...] = ()  # agents that could take it where this one cannot be reached, best first


class Before(StrEnum):
    """Whether an earlier life of the hub may have sent a call, and whether it may be sent once more."""

    UNSENT = "unsent"
    REPEATABLE = "repeatable"
    UNREPEATABLE = "unrepeatable"  # it goes on only if its target still has it


class OpenedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose task is open: only this can be delivered."""

    call: AdmittedCall
    task: Task
    attempt: int = 1
    before: Before = Before.UNSENT
    waited_ms: int = 0  # for a place at the target, where over 1 ms; `Sent` keeps it
