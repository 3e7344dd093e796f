"""The Agent Platform's messages, named and shaped as its document has them. Nulls are taken as absent."""

from typing import Annotated, Literal

import msgspec

from dragoman.model.json import JsonObject

MAX_TIMEOUT_MS = 3_600_000
MAX_ACCEPTED_MS = 86_400_000
MAX_CALLBACK_HEADERS = 16

TimeoutMs = Annotated[int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_MS)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
PriorityWord = Literal["low", "normal", "medium", "high", "urgent"]


class Options(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a call is to be made."""

    timeout_ms: TimeoutMs | None = None
    priority: PriorityWord | None = None
    callback_url: str | None = None
    cancel_on_disconnect: bool | None = None
    delivery: Literal["at_least_once", "at_most_once"] | None = None


class Context(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call belongs to."""

    conversation_id: Id | None = None
    parent_execution_id: Id | None = None
    continue_call_id: Id | None = None
    metadata: JsonObject | None = None


class CallbackTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the outcome is to be told."""

    url: str
    headers: dict[str, str] | None = None


class StepBody(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A step that follows a call; without an input it is given the result of the one before."""

    skill: Id
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    agent: Id | None = None
    input: JsonObject | None = None


class CallRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The body of a call.

    Two members are ours: `message`, in place of `input`, is text or a list of parts; `then` are the steps that follow,
    those in a list at once.
    """

    skill: Id | None = None
    input: JsonObject | None = None
    message: str | list[JsonObject] | None = None
    target_agent_id: Id | None = None
    options: Options | None = None
    context: Context | None = None
    callback: CallbackTarget | None = None
    then: list[StepBody | list[StepBody]] | None = None


class AcceptedOptions(Options, frozen=True, kw_only=True, gc=False):
    """The same for a call that nobody waits for: it may take longer."""

    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_ACCEPTED_MS)] | None = None


class AcceptedRequest(CallRequest, frozen=True, kw_only=True, gc=False):
    """The body of a call that nobody waits for."""

    options: AcceptedOptions | None = None


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The body of a cancellation, which may have none."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)] | None = None


class RatingRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The body of a rating."""

    rating: Annotated[int, msgspec.Meta(ge=1, le=5)]
    comment: Annotated[str, msgspec.Meta(max_length=1024)] | None = None


class RegistryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a registration: a card of any dialect, or a URL where one is found."""

    agent_card: JsonObject | None = None
    card_keys: list[JsonObject] | None = None
    url: str | None = None
    dialect: str | None = None
    id: str | None = None
    credentials: JsonObject | None = None
    rate_limits: JsonObject | None = None
    tags: list[str] | None = None
    open: bool | None = None
    private: bool | None = None


class RawRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """The same, for the very bytes of its card."""

    agent_card: msgspec.Raw = msgspec.Raw()


class Timing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """When what happened; one of the ends, where there is one."""

    queued_at: str
    started_at: str | None = None
    completed_at: str | None = None
    failed_at: str | None = None
    cancelled_at: str | None = None
    duration_ms: int | None = None


class TraceIds(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a call stands in its trace."""

    trace_id: str
    span_id: str


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What went wrong."""

    code: str
    message: str
    details: JsonObject | None = None
    retryable: bool | None = None


class UsageBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a call used up."""

    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    execution_ms: int | None = None


class CallAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The answer about a call, in the document's order."""

    id: str
    call_id: str
    status: str
    result: JsonObject | None = None
    error: ErrorBody | None = None
    usage: JsonObject | None = None
    progress: float | None = None
    message: str | None = None
    awaiting: str | None = None
    timing: Timing
    trace: TraceIds | None = None


class DiscoveredAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One agent in a search."""

    id: str
    name: str
    skills: list[str]
    rating: float
    response_time_p95_ms: int
    availability: float
    circuit: str
    dialect: str
    status: str
    trust: str
    last_seen_at: str | None = None


class RegistryAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a registration; the last two are shown once."""

    id: str
    uuid: str
    name: str
    version: str
    dialect: str
    status: str
    endpoint: str
    base_url: str
    trust: str | None = None  # only where something vouches for the card
    doubt: str | None = None
    token: str | None = None
    signing_secret: str | None = None


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform agent answers to the hub, read liberally."""

    status: str | None = None
    result: msgspec.UnsetType | object = msgspec.UNSET
    error: JsonObject | None = None
    usage: JsonObject | None = None
