"""What can be asked of the hub, whatever dialect it was asked in: one struct per operation."""

from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Final

import msgspec

from dragoman.model.agent import AgentCard, AgentStatus, RateLimits
from dragoman.model.callbacks import Callback
from dragoman.model.content import Message
from dragoman.model.errors import DragomanError
from dragoman.model.events import TaskEvent
from dragoman.model.json import Json, JsonObject
from dragoman.model.states import TaskState


class Priority(IntEnum):
    """Which of the calls that wait for one agent goes first."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    URGENT = 3


class Wait(StrEnum):
    """What the caller waits for: the end, each event, or only the word that it was accepted."""

    END = "end"
    STREAM = "stream"
    NONE = "none"


# Bound once, for what every call asks: to find a member in its enum is dear.
STREAMED: Final = Wait.STREAM
ACCEPTED: Final = Wait.NONE


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step that follows a task, found by its skill."""

    skill: str
    id: str | None = None
    agent: str | None = None
    input: Json = None


class SendTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Carry this message to an agent, as a new task or into one that waits for it.

    `alias` is the caller's own name for the task. `sender` is who the caller says it is, where the wire has a field for
    that; it is checked, never believed (`sender_registered`: it must be an agent's name). `key_scope` keeps the keys of
    one kind from those of another; `key_decides`: a repeat under the same key is the same call, whatever it says.
    `request_joins`: the same request under the same request id joins the first. `after`: a stream that broke off and is
    asked for again goes on after that event. `within`: the call whose hints the caller hands on as they are. `sealed`:
    only the target can read the message. `signature`: the sender's own, as it came.
    """

    message: Message
    agent: str | None = None
    skill: str | None = None
    continues: str | None = None
    alias: str | None = None
    context_id: str | None = None
    wait: Wait = Wait.END
    interactive: bool = True
    priority: Priority = Priority.NORMAL
    timeout_s: float | None = None
    deadline: datetime | None = None
    callback: Callback | None = None
    then: tuple[Step | tuple[Step, ...], ...] = ()
    parent_id: str | None = None
    within: str | None = None
    title: str | None = None
    description: str | None = None
    sender: str | None = None
    sender_registered: bool = False
    idempotency_key: str | None = None
    key_scope: str = "key"
    key_decides: bool = False
    request_id: str | None = None
    request_joins: bool = False
    accepts: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    after: int | None = None
    cancel_on_disconnect: bool = False
    at_most_once: bool = False
    metadata: JsonObject | None = None
    sealed: bool = False
    signature: str | None = None


class GetTask(msgspec.Struct, frozen=True, kw_only=True):
    """Show one task; with `agent` only if it was given to that agent. `alias`: the id is the caller's own."""

    task_id: str
    agent: str | None = None
    alias: bool = False


class ListTasks(msgspec.Struct, frozen=True, kw_only=True):
    """Show the caller's tasks, newest status first; with `agent` those given to that agent.

    `caller`: of the callers that may be seen, this one's. `trace_id` and `prefix` (how ids begin) find no more than the
    newest thousand.
    """

    agent: str | None = None
    caller: str | None = None
    skill: str | None = None
    dialect: str | None = None
    context_id: str | None = None
    trace_id: str | None = None
    prefix: str | None = None
    state: TaskState | None = None
    after: datetime | None = None
    limit: int = 50
    cursor: str | None = None


class CancelTask(msgspec.Struct, frozen=True, kw_only=True):
    """Stop one task; with `agent` only if it was given to that agent. `alias`: the id is the caller's own."""

    task_id: str
    reason: str | None = None
    agent: str | None = None
    alias: bool = False
    sender: str | None = None


class FollowTask(msgspec.Struct, frozen=True, kw_only=True):
    """Show what happens to a task from now on, after the task as it is; or, with a number, all that happened after it.

    `ended_ok`: an ended task is shown too. `past_questions`: go on where the task waits for its caller.
    """

    task_id: str
    after: int | None = None
    ended_ok: bool = False
    past_questions: bool = False
    agent: str | None = None
    alias: bool = False


class WatchChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Show what changes from now on, or since a time: agents that come and go, the caller's tasks as they move."""

    agents: bool = True
    tasks: bool = True
    since: datetime | None = None


class ReportTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a target tells of a task it was given. `sender` is who it says it is; under the same `key` it counts once.

    `cancels`: from the one who gave the task, this is the wish to cancel it.
    """

    task_id: str
    events: tuple[TaskEvent, ...]
    sender: str | None = None
    recipient: str | None = None  # whom it is told: the one who gave the task, by whose name for it it may be called
    about: tuple[str, str] | None = None  # the scope and key of the message that it is about
    key: str | None = None
    digest: bytes = b""  # of what was said, to tell a repeat from another report under the same key
    cancels: bool = False
    sealed: bool = False  # only the one who gave the task can read what is told


class ReadMail(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a caller that has no endpoint; what came up to `after` has arrived and goes.

    `box`: whose, where the caller may read for others.
    """

    after: int = 0
    wait_s: float = 0.0
    box: str | None = None


class RateTask(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's own rating of a finished call."""

    task_id: str
    rating: int
    comment: str | None = None


class SetCallback(msgspec.Struct, frozen=True, kw_only=True):
    """Tell this task's events there, too, in the callback's own dialect."""

    task_id: str
    callback: Callback
    agent: str | None = None


class GetCallback(msgspec.Struct, frozen=True, kw_only=True):
    """Show one callback of a task that was set in this dialect; without an id the first."""

    task_id: str
    dialect: str
    callback_id: str | None = None
    agent: str | None = None


class ListCallbacks(msgspec.Struct, frozen=True, kw_only=True):
    """Show a task's callbacks that were set in this dialect."""

    task_id: str
    dialect: str
    agent: str | None = None


class DeleteCallback(msgspec.Struct, frozen=True, kw_only=True):
    """Take one callback away that was set in this dialect."""

    task_id: str
    dialect: str
    callback_id: str
    agent: str | None = None


class RegisterAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Take in an agent: by its card, by one in whatever dialect's shape, or by a URL where the hub looks for one."""

    card: AgentCard | None = None
    any_card: JsonObject | None = None
    came: bytes | None = None  # the very bytes of any_card
    card_keys: tuple[JsonObject, ...] = ()  # public JWKs, one of which signed the card
    url: str | None = None
    id: str | None = None
    dialect: str | None = None
    credentials: JsonObject | None = None
    rate_limits: JsonObject | None = None
    tags: tuple[str, ...] = ()
    open: bool | None = None
    private: bool | None = None


class ChangeAgent(msgspec.Struct, frozen=True, kw_only=True):
    """Pause, resume or remove an agent, or change what its owner set, its card included.

    `probe`: look again what it really speaks. `approve`: its card is no longer in doubt. `rate_limits` that are empty:
    those of its card hold again.
    """

    agent_id: str
    card: AgentCard | None = None
    status: AgentStatus | None = None
    open: bool | None = None
    private: bool | None = None
    credentials: JsonObject | None = None
    rate_limits: RateLimits | None = None
    probe: bool = False
    approve: bool = False


class Match(StrEnum):
    """How several skills of one search count: all must match, or any."""

    ALL = "all"
    ANY = "any"


class Discover(msgspec.Struct, frozen=True, kw_only=True):
    """Find agents: best first, page by page."""

    skills: tuple[str, ...] = ()
    match: Match = Match.ALL
    text: str | None = None
    tags: tuple[str, ...] = ()
    capability: str | None = None
    without_capability: str | None = None
    dialect: str | None = None
    status: AgentStatus | None = None
    also_paused: bool = False
    min_rating: float | None = None
    max_p95_ms: int | None = None
    min_availability: float | None = None
    mine: bool = False
    limit: int = 20
    cursor: str | None = None


class GetCard(msgspec.Struct, frozen=True, kw_only=True):
    """Show one agent (`id`, UUID or alias; `@version` pins one card), or the hub as one.

    `public`: it is asked for at the agent's own place, where strangers look to learn how to call it.
    """

    agent: str | None
    public: bool = False


class ListVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Show the versions an agent's card has had."""

    agent: str


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """Answer at once, with what was sent; for an agent, if there is one of that name. `sender` is checked."""

    agent: str | None = None
    sender: str | None = None
    nonce: str | None = None
    echo: Json = None


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes made no sense; `error` says why."""

    error: DragomanError


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """What a message asks that its sender signed as a whole: done if the signature is right.

    `body` is the message as it came, `at` its time by the sender's clock.
    """

    operation: SendTask | ReportTask | Ping
    sender: str
    signature: str
    body: bytes
    at: datetime


Operation = (
    SendTask
    | GetTask
    | ListTasks
    | CancelTask
    | FollowTask
    | WatchChanges
    | ReportTask
    | ReadMail
    | RateTask
    | SetCallback
    | GetCallback
    | ListCallbacks
    | DeleteCallback
    | RegisterAgent
    | ChangeAgent
    | Discover
    | GetCard
    | ListVersions
    | Ping
    | Signed
    | Unreadable
)
