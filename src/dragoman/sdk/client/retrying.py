"""When a request to the hub is made again: only what never became a call, on one schedule, inside the deadline.

The hub itself repeats deliveries to agents, so nothing that an agent did or failed to do is tried again here.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dragoman.model.errors import DragomanError, Overloaded, RateLimited
from dragoman.ports.clock import Clock
from dragoman.sdk.errors import HubUnreachable

WAITS_S: Final = (1.0, 2.0, 4.0)  # the schedule `send` of docs/reliability.md
SHARE: Final = 0.2
MOST_S: Final = 15.0  # of waiting in all
# No connection, one that was lost, or an answer of something in between that had no hub behind it.
LOST: Final = frozenset({"refused", "unresolved", "timeout", "reset", "http_502", "http_503", "http_504"})

Got = TypeVar("Got")


class Retries:
    """How often, and when, one client tries again."""

    def __init__(self, clock: Clock, retries: int) -> None:
        self._clock = clock
        self._retries = retries

    async def run(self, attempt: Callable[[], Awaitable[Got]], *, deadline: float, repeatable: bool) -> Got:
        """What the first try brings that succeeds. Raises what the last one failed with."""
        waited_s = 0.0
        for tried in range(self._retries):
            try:
                return await attempt()
            except DragomanError as error:
                wait_s = self._wait_s(error, tried, repeatable)
                too_long = wait_s is None or waited_s + wait_s > MOST_S
                if wait_s is None or too_long or self._clock.monotonic() + wait_s >= deadline:
                    raise
            waited_s += wait_s
            await self._clock.sleep(wait_s)
        return await attempt()

    def _wait_s(self, error: DragomanError, tried: int, repeatable: bool) -> float | None:
        """How long to wait before the next try; None where there is none."""
        wait_s = self._clock.jitter(WAITS_S[min(tried, len(WAITS_S) - 1)], SHARE)
        if isinstance(error, HubUnreachable):
            return wait_s if error.reason in LOST and (repeatable or not error.sent) else None
        if is_refused_by_the_hub(error):
            return max(wait_s, float(error.retry_after_s or 0))
        return None


def is_refused_by_the_hub(error: DragomanError) -> bool:
    """Whether the hub itself had no room: no call came to exist, so there is no trace of one."""
    return isinstance(error, Overloaded | RateLimited) and error.trace_id is None
