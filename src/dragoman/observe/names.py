"""Every name by which a hub is observed: metrics with their labels, the messages of log lines. Names are API.

Nothing else in the code spells a metric's name; a log line's message is spelled where it is written, and stands here
too. Tests compare this file with what a running hub emits, with the manual, the dashboard and the alerts.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Kind(StrEnum):
    """What a metric is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Label(StrEnum):
    """What metrics are told apart by. Every value comes from the hub's own tables."""

    CALLER = "caller_id"
    TARGET = "target_id"
    SKILL = "skill"
    STATUS = "status"
    DIALECT = "dialect"
    DIALECT_IN = "dialect_in"
    DIALECT_OUT = "dialect_out"
    FACET = "facet"
    CODE = "code"
    CODE_CLASS = "code_class"
    OPERATION = "operation"
    OUTCOME = "outcome"
    REASON = "reason"
    SCOPE = "scope"
    LIMIT = "limit"
    DIRECTION = "direction"
    QUEUE = "queue"
    KIND = "kind"
    BUS = "bus"
    SIGNAL = "signal"
    LABEL = "label"
    TO = "to"
    VERSION = "version"
    STORE = "store"
    PYTHON = "python"


class Metric(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One metric: its name, what it is, what it is told apart by, and what it says in one line."""

    name: str
    kind: Kind
    labels: tuple[Label, ...] = ()
    says: str
    bounds: tuple[float, ...] = ()  # of a histogram's buckets


def _metric(kind: Kind, name: str, says: str, *labels: Label, bounds: tuple[float, ...] = ()) -> Metric:
    return Metric(name=name, kind=kind, labels=labels, says=says, bounds=bounds)


_QUICK: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_CALL: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
_COMMITS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

# -- calls, as the platform document has them

CALLS: Final = _metric(
    Kind.COUNTER,
    "a2a_calls_total",
    "Calls that have ended, each once: completed, failed or cancelled.",
    *(Label.CALLER, Label.TARGET, Label.SKILL, Label.STATUS),
)
CALL_DURATION: Final = _metric(
    Kind.HISTOGRAM,
    "a2a_call_duration_seconds",
    "How long calls took, from received to ended.",
    *(Label.CALLER, Label.TARGET, Label.SKILL),
    bounds=_CALL,
)
CALL_QUEUE: Final = _metric(Kind.GAUGE, "a2a_call_queue_size", "Calls that wait for their target.", Label.TARGET)
BREAKER: Final = _metric(
    Kind.GAUGE, "a2a_circuit_breaker_state", "0 closed, 1 half-open, 2 open: left alone for a while.", Label.TARGET
)

# -- calls, in more detail

REFUSALS: Final = _metric(
    Kind.COUNTER,
    "dragoman_refusals_total",
    "Requests that were refused, by the hub's error code.",
    *(Label.DIALECT, Label.CODE),
)
CALL_FAILURES: Final = _metric(
    Kind.COUNTER, "dragoman_call_failures_total", "Calls that failed, by error code.", Label.TARGET, Label.CODE
)
OVERHEAD: Final = _metric(
    Kind.HISTOGRAM,
    "dragoman_hub_overhead_seconds",
    "Time in the hub without the agent's, of calls that were waited for.",
    *(Label.DIALECT_IN, Label.DIALECT_OUT),
    bounds=_QUICK,
)
FIRST_EVENT: Final = _metric(
    Kind.HISTOGRAM,
    "dragoman_first_event_seconds",
    "How long targets that stream took to the first piece of their answer, from being sent the call.",
    Label.TARGET,
    bounds=_CALL,
)
ATTEMPTS: Final = _metric(
    Kind.COUNTER, "dragoman_attempts_total", "Attempts to have a call done.", Label.TARGET, Label.OUTCOME
)
RETRIES: Final = _metric(
    Kind.COUNTER, "dragoman_retries_total", "Attempts after which another one follows.", Label.TARGET, Label.REASON
)
BREAKER_TRANSITIONS: Final = _metric(
    Kind.COUNTER, "dragoman_breaker_transitions_total", "Changes of circuit breakers, into which state.", Label.TO
)
RATE_LIMITED: Final = _metric(
    Kind.COUNTER, "dragoman_rate_limited_total", "Requests beyond a limit: whose, and which.", Label.SCOPE, Label.LIMIT
)
CALLS_ACTIVE: Final = _metric(
    Kind.GAUGE, "dragoman_calls_active", "Calls for whose target the hub has taken a place.", Label.TARGET
)
AGENT_UP: Final = _metric(Kind.GAUGE, "dragoman_agent_up", "1 the agent can be reached, 0 it cannot.", Label.TARGET)
TRANSLATIONS: Final = _metric(
    Kind.COUNTER,
    "dragoman_translations_total",
    "Calls that were carried from one dialect into another.",
    *(Label.DIALECT_IN, Label.DIALECT_OUT),
)
TRANSLATION_LOSSES: Final = _metric(
    Kind.COUNTER,
    "dragoman_translation_losses_total",
    "Calls of which something became something else, so that a dialect could say it.",
    *(Label.DIALECT, Label.FACET),
)
USAGE_TOKENS: Final = _metric(
    Kind.COUNTER,
    "dragoman_usage_tokens_total",
    "Tokens that agents say they used: input, output, or both where they do not say which.",
    *(Label.CALLER, Label.TARGET, Label.DIRECTION),
)
USAGE_COST: Final = _metric(
    Kind.COUNTER,
    "dragoman_usage_cost_usd_total",
    "What calls cost by their agents' own account.",
    *(Label.CALLER, Label.TARGET),
)

# -- requests, connections, deliveries

HTTP_REQUESTS: Final = _metric(
    Kind.COUNTER,
    "dragoman_http_requests_total",
    "Requests of all kinds that were answered.",
    *(Label.DIALECT, Label.OPERATION, Label.CODE_CLASS),
)
EARLY_REFUSALS: Final = _metric(
    Kind.COUNTER,
    "dragoman_early_refusals_total",
    "Connections and requests refused before it was known what they ask.",
    Label.CODE,
)
AUTH_FAILURES: Final = _metric(
    Kind.COUNTER, "dragoman_auth_failures_total", "Requests refused for who sent them.", Label.REASON
)
DELIVERIES: Final = _metric(
    Kind.COUNTER, "dragoman_deliveries_total", "Attempts to deliver a callback, and their outcome.", Label.OUTCOME
)
DELIVERIES_PENDING: Final = _metric(Kind.GAUGE, "dragoman_deliveries_pending", "Callbacks that wait for an attempt.")
DELIVERIES_PARKED: Final = _metric(Kind.GAUGE, "dragoman_deliveries_parked", "Callbacks that were given up.")
JOBS_OLDEST: Final = _metric(
    Kind.GAUGE, "dragoman_jobs_oldest_seconds", "How long the oldest work waits that could begin.", Label.QUEUE
)
STREAMS: Final = _metric(Kind.GAUGE, "dragoman_streams_open", "Streams that are read.", Label.KIND)
STREAM_DROPS: Final = _metric(
    Kind.COUNTER, "dragoman_stream_drops_total", "Streams whose reader was cut off.", Label.REASON
)
SESSIONS: Final = _metric(Kind.GAUGE, "dragoman_sessions_open", "Sessions of agents that connect.")
SESSION_RESUMES: Final = _metric(
    Kind.COUNTER,
    "dragoman_session_resumes_total",
    "Agents that came back to their session: kept, or lost and begun anew.",
    Label.OUTCOME,
)

# -- the store, the bus, the process

STORE_COMMIT: Final = _metric(
    Kind.HISTOGRAM, "dragoman_store_commit_seconds", "How long one commit took.", bounds=_COMMITS
)
STORE_BATCH: Final = _metric(
    Kind.HISTOGRAM, "dragoman_store_batch_size", "How many commands one commit took.", bounds=_SIZES
)
STORE_LANE: Final = _metric(Kind.GAUGE, "dragoman_store_lane_depth", "Commands that wait for the writer.")
STORE_ERRORS: Final = _metric(Kind.COUNTER, "dragoman_store_errors_total", "What the store failed to do.", Label.KIND)
STORE_WAL: Final = _metric(Kind.GAUGE, "dragoman_store_wal_bytes", "Size of the write-ahead log.")
BUS_LOST: Final = _metric(
    Kind.COUNTER, "dragoman_bus_lost_total", "Times a listener fell behind and read the store again.", Label.BUS
)
LOOP_LAG: Final = _metric(
    Kind.HISTOGRAM,
    "dragoman_loop_lag_seconds",
    "How late the event loop was, looked at ten times a second.",
    bounds=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)
PRESSURE: Final = _metric(
    Kind.GAUGE, "dragoman_pressure_level", "0 everything is taken, 1 what can wait is refused, 2 new calls are."
)
TELEMETRY_DROPPED: Final = _metric(
    Kind.COUNTER, "dragoman_telemetry_dropped_total", "Log lines and spans that were dropped.", Label.SIGNAL
)
LABEL_OVERFLOW: Final = _metric(
    Kind.COUNTER, "dragoman_label_overflow_total", "Values that were counted as `other`.", Label.LABEL
)
BUILD_INFO: Final = _metric(
    Kind.GAUGE,
    "dragoman_build_info",
    "1; which hub this is.",
    *(Label.VERSION, Label.STORE, Label.BUS, Label.PYTHON),
)
PROCESS_CPU: Final = _metric(Kind.COUNTER, "process_cpu_seconds_total", "CPU time of the process.")
PROCESS_RSS: Final = _metric(Kind.GAUGE, "process_resident_memory_bytes", "Memory that the process holds.")
PROCESS_FDS: Final = _metric(Kind.GAUGE, "process_open_fds", "Open files and sockets.")
PROCESS_MAX_FDS: Final = _metric(Kind.GAUGE, "process_max_fds", "Most open files and sockets.")
PROCESS_START: Final = _metric(Kind.GAUGE, "process_start_time_seconds", "When the process began, in Unix time.")

METRICS: Final[tuple[Metric, ...]] = tuple(each for each in globals().copy().values() if isinstance(each, Metric))

# -- log lines: the values of `message`; what varies stands in fields beside it

CALL_COMPLETED: Final = "A2A call completed"
CALL_CANCELLED: Final = "A2A call cancelled"
CALL_FAILED: Final = "A2A call failed"
REFUSED: Final = "refused"
PING: Final = "ping"
LEFT_OUT: Final = "lines left out"
UNREAD: Final = "a figure could not be read"

# Those that the code writes where they happen, by level. An error is a fault of the hub itself.
ERRORS: Final = frozenset(
    {
        "A checkpoint failed.",
        "A hot path failed.",
        "The application did not close in %g s.",
        "The application failed.",
        "The application returned without a complete answer.",
        "The disk could not be looked at.",
        "The log could not be cut.",
        "The store could not be closed tidily; nothing that was acknowledged is lost.",
        "The store could not roll back.",
        "a call broke inside the hub",
        "a call that ended was not noted",
        "a connection broke inside the hub",
        "a job broke",
        "a notice broke",
        "a request broke inside the hub",
        "a stream broke inside the hub",
        "a workflow broke inside the hub",
        "an agent's connection broke inside the hub",
        "background work broke",
        "calls that ended were not counted",
        "the database is damaged: restore a backup",
        "the disk is full: new calls are refused until there is room again",
        "the disk is nearly full: new calls are refused until there is room",
        "the hub could not stop cleanly",
        "the spans of a call could not be made",
    }
)
WARNINGS: Final = frozenset(
    {
        CALL_FAILED,
        UNREAD,
        "%d requests did not finish in %g s and are broken off.",
        "Only %d files may be open; %d connections need more. Raise it with ulimit -n.",
        "a callback is disabled",
        "a callback is parked",
        "a callback's address is disabled",
        "a key cannot be sent: %s",
        "an agent is left alone: its calls fail",
        "an agent is unreachable",
        "an agent was looked at in vain: %s",
        "an agent's account of its usage makes no sense",
        "calls could not be read: some are not found by their trace",
        "no ballast could be set aside",
        "no usable keys of the issuer %s at %s",
        "spans are not taken",
        "the key file cannot be used: %s",
        "the look at the database was broken off: too much was written",
        "the wall clock was moved",
        "there is room on the disk again: new calls are taken",
    }
)
INFOS: Final = frozenset(
    {
        CALL_COMPLETED,
        CALL_CANCELLED,
        REFUSED,
        PING,
        LEFT_OUT,
        "a report came too late",
        "a report names no task",
        "a step waits until its agent takes it",
        "an agent answers again",
        "an agent is back",
        "an agent that was left alone gets one call",
        "audit head",
        "removed what was old enough",
        "the database is whole",
        "the last call is more than a day ago: nothing is removed today",
    }
)
