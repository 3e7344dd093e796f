"""The durable store, as small protocols: what must survive, and what one step of the hub writes.

A use case is one frozen command, carried out whole or not at all; no code above a backend opens a transaction.
A lost race is a result (`Raced`, `Duplicate`), never an exception: no command fails its neighbours. What a command
wrote is on disk when its call returns, unless it says otherwise; listeners on the bus are told after that.
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from dragoman.model.agent import Agent, AgentStatus, RateLimits
from dragoman.model.budget import Budget
from dragoman.model.events import Happened, TaskEvent
from dragoman.model.operations import Discover, ListTasks
from dragoman.model.task import Task
from dragoman.ports.audit import Act, Audit, Usage
from dragoman.ports.deliveries import Delivery, DeliveryList, DeliveryQuery, NewNotice, Outcome, Pending, Receiver
from dragoman.ports.minutes import Minutes
from dragoman.ports.retention import Inspection, Retention
from dragoman.ports.usage import Conversations, UsageDays

CALLS = "call"
WORKFLOWS = "workflow"
CALLBACKS = "callback"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Whose things are looked at: a tenant, and within it one principal, or all of them for an administrator."""

    tenant: str
    principal: str | None


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a job: a replica in one of its lives. Writes of an earlier epoch change nothing."""

    replica: str
    epoch: int


class Once(msgspec.Struct, frozen=True, kw_only=True):
    """A key under which a call is made once: same key and digest give the same task until it expires."""

    principal: str
    scope: str  # "key" for Idempotency-Key, "request" for X-Request-ID; dialects add their own
    key: str
    digest: bytes
    expires_at: datetime


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """Work that must not be lost. Without an owner it waits for a worker; a notice also waits for its line."""

    queue: str
    payload: bytes = b""
    run_at: datetime | None = None
    rank: float = 0.0
    owner: Owner | None = None
    notice: NewNotice | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed job; `attempt` fences it: a write that names an older attempt changes nothing."""

    id: int
    queue: str
    tenant: str
    task_id: str
    attempt: int
    payload: bytes
    owner: Owner


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A task is opened: its first event, its job, and the key it is made once under.

    `durable`: the call returns when all this is on disk. Otherwise it returns when it is decided, and a backend may
    hold the rows back a short while, to write a call that ends at once as one row.
    """

    task: Task
    job: NewJob
    durable: bool
    once: Once | None = None
    alias: Once | None = None  # the caller's own name for the task: it finds the task, it refuses none


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The task is ours to carry."""


class Duplicate(msgspec.Struct, frozen=True, kw_only=True):
    """The key is known: this is its task. `same`: the digest is the same too."""

    task_id: str
    same: bool


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a task, to be written after number `after`; `task` is the task with them folded in.

    With a final `task.state` the job of the call ends in the same step. `jobs` (callbacks) are born in it, and under
    `once` it is known that this step was made.
    """

    task: Task
    after: int
    events: tuple[TaskEvent, ...]
    jobs: tuple[NewJob, ...] = ()
    once: Once | None = None


class Raced(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody else wrote first; nothing of the growth was written. This is the task now."""

    task: Task


class TaskList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of tasks, newest status first; `total` is counted up to 1,000."""

    tasks: tuple[Task, ...]
    total: int
    cursor: str | None


class Tasks(Protocol):
    """Calls: opened, grown, read."""

    def open(self, opening: Opening) -> Awaitable[Opened | Duplicate]:
        """Open a task, or find the one its key names."""
        ...

    def append(self, growth: Growth) -> Awaitable[Raced | None]:
        """Write a step of a task; returns when it is on disk (None), or what came first."""
        ...

    async def load(self, scope: Scope, task_id: str) -> Task | None:
        """One task of that scope; a foreign one is as unknown as one that never was."""
        ...

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Happened]:
        """Events after a number, in order."""
        ...

    async def find_once(self, tenant: str, principal: str, scope: str, key: str) -> tuple[str, bytes] | None:
        """The task id and digest behind a key, if it has not expired."""
        ...

    async def context_owner(self, tenant: str, context_id: str) -> str | None:
        """Who was the first to name a conversation so."""
        ...

    async def last_turn(self, scope: Scope, context_id: str, agent_id: str) -> Task | None:
        """The last task of a conversation that an agent had from a caller."""
        ...

    async def list_tasks(self, scope: Scope, query: ListTasks) -> TaskList:
        """A page of the scope's tasks."""
        ...


class Jobs(Protocol):
    """Work that must not be lost."""

    async def lease(self, queues: Sequence[str], limit: int, owner: Owner) -> Sequence[Job]:
        """Claim due jobs that nobody of a live epoch holds, by rank; each claim is attempt + 1."""
        ...

    async def finish(self, job: Job) -> bool:
        """The job is done and gone; False if it was no longer ours."""
        ...

    async def retry(self, job: Job, run_at: datetime) -> bool:
        """Give the job back for later; False if it was no longer ours."""
        ...

    async def next_due(self, queue: str) -> datetime | None:
        """When the next sleeping job of this queue falls due, if one sleeps."""
        ...

    async def begin_epoch(self, replica: str) -> Owner:
        """A new life of a replica: what its earlier lives held may be claimed."""
        ...


class Deliveries(Protocol):
    """Notices to callbacks. Only the first pending one of each line has a job."""

    async def pending(self, job: Job) -> Pending | None:
        """The notice that a job is to deliver; None if it is none."""
        ...

    async def receiver(self, tenant: str, url: str) -> Receiver | None:
        """What is held against an address, if anything."""
        ...

    async def attempted(self, job: Job, outcome: Outcome | None) -> bool:
        """Note what a notice has come to and let its line go on; None: there is nothing to tell any more.

        A delivery forgets its address's failures; a replay that arrives enables it too. False if the job was no longer
        ours: then nothing is noted.
        """
        ...

    async def list_deliveries(self, scope: Scope, query: DeliveryQuery) -> DeliveryList:
        """A page of the scope's deliveries. Raises BadParams for a malformed cursor."""
        ...

    async def replay(self, scope: Scope, ids: Sequence[str], act: Act | None = None) -> Sequence[Delivery]:
        """Have these sent once more, from the beginning of the schedule; the ones of this scope, as they stand now."""
        ...

    async def switch_receiver(
        self, scope: Scope, delivery_id: str, reason: str | None, at: datetime, act: Act | None = None
    ) -> Delivery | None:
        """Disable a delivery's address for a reason, and what waits for it; or enable it. None: no such delivery."""
        ...


class Mailboxes(Protocol):
    """Messages for those who have no endpoint."""

    async def put_mail(self, tenant: str, box: str, body: bytes) -> None:
        """Keep a message until it has been fetched."""
        ...

    async def read_mail(self, tenant: str, box: str, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """What waits in a box, numbered, oldest first; what came up to `after` has arrived and goes."""
        ...

    async def next_mail(self, tenant: str, box: str, after: int) -> tuple[int, bytes] | None:
        """The oldest message of a box beyond the number `after`, with its own; nothing goes."""
        ...

    async def drop_mail(self, tenant: str, box: str, numbers: Collection[int]) -> None:
        """These have arrived and go."""
        ...


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it shall stand in the registry, and whose act that is; `most`: how many its tenant may have."""

    agent: Agent
    act: Act | None = None
    most: int | None = None


class StoredAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The agent as it stands now, and whether this registration made it."""

    agent: Agent
    created: bool


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The id, or one of its aliases, belongs to somebody else."""

    name: str


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of agents, best first; beyond 1,000 `total` stays there and `exceeded` says so."""

    agents: tuple[Agent, ...]
    total: int
    exceeded: bool
    cursor: str | None


class Agents(Protocol):
    """The registry."""

    async def register(self, registration: Registration) -> StoredAgent | Taken:
        """Put an agent in, or replace its card: the owner's alone. Every card version stays readable.

        Raises RateLimited where its tenant has as many agents as it may; nothing is changed then.
        """
        ...

    async def find_agent(
        self, tenant: str, name: str, version: str | None = None, *, removed: bool = False
    ) -> Agent | None:
        """An agent by id, UUID or alias, with its current card or the one of that version; `removed`: its tombstone."""
        ...

    async def versions(self, tenant: str, agent_id: str) -> Sequence[str]:
        """The versions its card has had, newest first."""
        ...

    async def search(self, scope: Scope, query: Discover) -> AgentList:
        """Agents that match, best rating first; then by id, or in the order they came where several things are asked.

        A page may be short and yet have a cursor, where figures are asked for that few have. Raises BadParams for a
        malformed cursor.
        """
        ...

    async def change_agent(
        self,
        tenant: str,
        agent_id: str,
        status: AgentStatus | None,
        open_: bool | None,
        private: bool | None,
        act: Act | None = None,
        limits: RateLimits | None = None,
    ) -> Agent | None:
        """Change how an agent stands; None if there is none. Empty limits take away those that were set."""
        ...

    async def agents_to_check(self, after: int, limit: int) -> Sequence[tuple[int, Agent]]:
        """Agents of all tenants that may be called, or might again, after a number, each with its own."""
        ...


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is kept: never the key itself, only its keyed digest."""

    key_id: str
    digest: bytes
    tenant: str
    principal: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    agent_id: str | None = None
    allow: tuple[str, ...] = ()
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    signing_secret: bytes | None = None  # sealed
    limits: RateLimits | None = None
    budget: Budget | None = None


class Keys(Protocol):
    """Who may do what."""

    async def add_key(self, key: StoredKey, act: Act | None = None) -> None:
        """Keep a new key."""
        ...

    async def find_key(self, key_id: str) -> StoredKey | None:
        """One key, revoked and expired ones included."""
        ...

    async def list_keys(self, tenant: str | None) -> Sequence[StoredKey]:
        """A tenant's keys, or all, newest first."""
        ...

    async def revoke_key(self, key_id: str, at: datetime, act: Act | None = None) -> bool:
        """End a key from that time on; False if there is none."""
        ...

    async def change_key(
        self, key_id: str, limits: RateLimits | None, budget: Budget | None, act: Act | None = None
    ) -> bool:
        """Set how often a key may call and what it may spend; False if there is none."""
        ...

    async def key_used(self, key_id: str, at: datetime) -> None:
        """Note that a key was used; at most once a minute each."""
        ...


class Vault(Protocol):
    """Sealed values by name: signing keys, credentials towards agents."""

    async def put_sealed(self, name: str, sealed: bytes) -> None:
        """Keep a sealed value, replacing what was there."""
        ...

    async def get_sealed(self, name: str) -> bytes | None:
        """A sealed value, if there is one."""
        ...


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something of one caller's that counts once until it expires: the digest of a signature's own id."""

    tenant: str
    caller: str
    digest: bytes
    expires_at: datetime


class SeenMarks(Protocol):
    """What may be used once."""

    async def see(self, marks: Sequence[Mark]) -> bool:
        """Whether none of them was seen before; when that is told, all of them are on disk."""
        ...


class Took(msgspec.Struct, frozen=True, kw_only=True):
    """How long the last completed calls of one skill took, in milliseconds, oldest first."""

    tenant: str
    agent_id: str
    skill: str
    last_ms: tuple[int, ...]


class Durations(Protocol):
    """How long calls took."""

    async def put_took(self, histories: Sequence[Took]) -> None:
        """Keep these histories, each in place of the one that was there."""
        ...

    async def took(self, tenant: str, agent_id: str, skill: str) -> Sequence[int]:
        """The history of one skill; empty where there is none."""
        ...


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """How good a call was, by the word of its caller: from 1 to 5. The tenant is the agent's."""

    tenant: str
    agent_id: str
    task_id: str
    stars: int
    rated_at: datetime
    comment: str | None = None


class Ratings(Protocol):
    """What callers said of calls."""

    async def rate(self, rating: Rating) -> Agent | None:
        """Keep a rating in place of the call's earlier one; the agent as it is rated now, None if there is none."""
        ...


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """How the writing stands: what was taken and is not on disk yet, what was ever taken, whether the disk is full."""

    waiting: int
    submitted: int
    full: bool


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in the store: notices, those that were given up, and the oldest work of each queue."""

    pending: int
    parked: int
    oldest_s: Mapping[str, float]


class LaneFigures(Protocol):
    """What was noted of the writing since the start: counts by size (see `observe/names.py`) and sums."""

    @property
    def commits(self) -> "Tallied":
        """How long commits took, in seconds."""
        ...

    @property
    def batches(self) -> "Tallied":
        """How many commands each took."""
        ...

    @property
    def errors(self) -> Mapping[str, int]:
        """What failed, by kind."""
        ...


class Tallied(Protocol):
    """Figures, counted by size."""

    counts: list[int]
    sum: float


class Housekeeping(Protocol):
    """What tenants take of the store, and what is removed from it."""

    async def forget(self, scope: Scope, ids: Sequence[str], act: Act | None = None) -> Sequence[str]:
        """Remove what was written in these calls of the scope; those that are open are left out. The ids of the rest.

        Rows, times, states and digests stay; what was still to be told of them is told no more.
        """
        ...

    async def usage(self) -> Usage:
        """What each tenant takes now."""
        ...


class Store(
    Tasks,
    Jobs,
    Deliveries,
    Mailboxes,
    Agents,
    Keys,
    Vault,
    SeenMarks,
    Durations,
    Minutes,
    Ratings,
    Audit,
    UsageDays,
    Conversations,
    Housekeeping,
    Retention,
    Inspection,
    Protocol,
):
    """Everything durable, in one backend."""

    async def start(self) -> None:
        """Open it, bring its schema up to date."""
        ...

    async def check(self) -> bool:
        """Whether a commit went through within the last seconds (tries one where none was due)."""
        ...

    def lane(self) -> Lane:
        """What waits to be written, and whether there is room for new things; asked many times a second."""
        ...

    def log_bytes(self) -> int:
        """How large the log is that was not copied into the database yet."""
        ...

    @property
    def lane_figures(self) -> LaneFigures:
        """What was noted of the writing since the start."""
        ...

    async def backlog(self) -> Backlog:
        """What waits in the store."""
        ...

    async def close(self) -> None:
        """Write what is queued, leave the file tidy."""
        ...
