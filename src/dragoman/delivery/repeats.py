"""A send that failed, sent again under the same id, where the dialect's own rule says when and how often."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from dragoman.model.errors import Failure
from dragoman.model.events import StatusChanged
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered

ALL_WAITS_S: Final = 15.0  # what the waits before one send may take together


async def repeated(
    delivered: Delivered,
    waits_s: Iterable[float],
    send: Callable[[], Awaitable[Delivered]],
    *,
    clock: Clock,
    deadline: float,
) -> Delivered:
    """What came of it in the end. An agent that asks for more time than planned gets it, within the bounds."""
    waited_s = 0.0
    for planned_s in waits_s:
        wait_s = max(planned_s, _asked_for_s(delivered))
        waited_s += wait_s
        if not may_repeat(delivered) or waited_s > ALL_WAITS_S or clock.monotonic() + wait_s >= deadline:
            break
        await clock.sleep(wait_s)
        delivered = await send()
    return delivered


def may_repeat(delivered: Delivered) -> bool:
    """Whether a send failed in a way in which the same send may not."""
    failure = _failure_of(delivered)
    return failure is not None and failure.retryable


def _asked_for_s(delivered: Delivered) -> float:
    failure = _failure_of(delivered)
    said = (failure.details or {}).get("retry_after") if failure is not None else None
    return float(said) if isinstance(said, int) and not isinstance(said, bool) else 0.0


def _failure_of(delivered: Delivered) -> Failure | None:
    last = delivered.events[-1]
    return last.failure if isinstance(last, StatusChanged) else None
