"""The figures that others keep, as metrics: each function reads one part of the hub at the scrape."""

import platform
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dragoman import __version__
from dragoman.config import Settings
from dragoman.delivery.connections import Connections
from dragoman.hub.endings import Endings
from dragoman.hub.flow.breakers import Breakers
from dragoman.hub.flow.gate import Gate
from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.health import Health
from dragoman.model.circuit import Circuit
from dragoman.observe import logs, names
from dragoman.observe.calls import CallLog
from dragoman.observe.cells import Histogram
from dragoman.observe.export import Exporter
from dragoman.observe.exposition import Sample
from dragoman.observe.metrics import Metrics
from dragoman.observe.names import Metric
from dragoman.ports.bus import Bus
from dragoman.ports.store import Store

LOG_LINES: Final = "log"
SPANS: Final = "spans"
CIRCUITS: Final = {Circuit.CLOSED: 0, Circuit.HALF_OPEN: 1, Circuit.OPEN: 2}  # as the platform document has it


def build_info(settings: Settings) -> Iterator[Sample]:
    """Which hub this is."""
    yield Sample(names.BUILD_INFO, (__version__, settings.store, settings.bus, platform.python_version()), 1)


def dropped(calls: CallLog, exporter: Exporter | None) -> Iterator[Sample]:
    """What was not written down."""
    yield Sample(names.TELEMETRY_DROPPED, (LOG_LINES,), calls.dropped)
    yield Sample(names.TELEMETRY_DROPPED, (SPANS,), 0 if exporter is None else exporter.dropped)


def lane(store: Store) -> Iterator[Sample]:
    """How the writing goes."""
    figures = store.lane_figures
    yield Sample(names.STORE_COMMIT, (), tallied(names.STORE_COMMIT, figures.commits.counts, figures.commits.sum))
    yield Sample(names.STORE_BATCH, (), tallied(names.STORE_BATCH, figures.batches.counts, figures.batches.sum))
    yield Sample(names.STORE_LANE, (), store.lane().waiting)
    yield Sample(names.STORE_WAL, (), store.log_bytes())
    for kind, count in figures.errors.items():
        yield Sample(names.STORE_ERRORS, (kind,), count)


async def backlog(store: Store) -> Iterable[Sample]:
    """What waits in the store."""
    waiting = await store.backlog()
    return (
        Sample(names.DELIVERIES_PENDING, (), waiting.pending),
        Sample(names.DELIVERIES_PARKED, (), waiting.parked),
        *(Sample(names.JOBS_OLDEST, (queue,), seconds) for queue, seconds in waiting.oldest_s.items()),
    )


def bus_lost(bus: Bus, name: str) -> Iterator[Sample]:
    """How often somebody fell behind on the bus."""
    yield Sample(names.BUS_LOST, (name,), bus.lost)


def sessions(connections: Connections) -> Iterator[Sample]:
    """Agents that are connected, and those that came back."""
    yield Sample(names.SESSIONS, (), connections.sessions_open)
    yield Sample(names.SESSION_RESUMES, ("kept",), connections.resumes.kept)
    yield Sample(names.SESSION_RESUMES, ("lost",), connections.resumes.lost)


def pressed(pressure: Pressure) -> Iterator[Sample]:
    """How late the loop is, and what is refused for that."""
    yield Sample(names.LOOP_LAG, (), tallied(names.LOOP_LAG, pressure.lags, pressure.lag_sum_s))
    yield Sample(names.PRESSURE, (), pressure.level)


def queued(gate: Gate) -> Iterator[Sample]:
    """Calls that wait for their target, and those that have a place at it."""
    for agent_id, calls in gate.waiting().items():
        yield Sample(names.CALL_QUEUE, (agent_id,), calls)
    for agent_id, calls in gate.running().items():
        yield Sample(names.CALLS_ACTIVE, (agent_id,), calls)


def up(metrics: Metrics, health: Health, connections: Connections) -> Iterator[Sample]:
    """Which agents can be reached: those that were called or were connected, and those that do not answer."""
    for agent_id in metrics.targets():
        yield Sample(names.AGENT_UP, (agent_id,), 1)
    for agent_id, connected in connections.standing().items():
        yield Sample(names.AGENT_UP, (agent_id,), int(connected))
    for agent_id in health.down():
        yield Sample(names.AGENT_UP, (agent_id,), 0)


def broken(breakers: Breakers) -> Iterator[Sample]:
    """Targets that are, or were lately, left alone."""
    for _, agent_id, circuit in breakers.states():
        yield Sample(names.BREAKER, (agent_id,), CIRCUITS[circuit])
    for circuit, count in breakers.transitions.items():
        yield Sample(names.BREAKER_TRANSITIONS, (circuit,), count)


def tallied(metric: Metric, counts: Sequence[int], total: float) -> Histogram:
    """A histogram that somebody else keeps, as it is now."""
    cells = Histogram(metric.bounds)
    cells.counts[:] = counts
    cells.sum = total
    return cells


def set_level(endings: Endings, calls: CallLog, level: str) -> None:
    """Have only lines written that are as grave as this; those of calls that have ended are written as before."""
    endings.catch_up()
    logs.HUB.setLevel(level.upper())
    calls.set_level(level)
