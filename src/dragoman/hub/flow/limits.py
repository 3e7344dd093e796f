"""How often: so many calls a minute, an hour and at once, for agents, keys and tenants.

A meter (GCRA) is one number, the time at which its whole limit is there again: each call moves it on by one share of
the period, and one that would move it further than the whole limit is refused. The burst is the limit itself. Whole
nanoseconds, so that nothing is lost in rounding. What may pass is seen over all meters before any is moved, without an
await between: a call that is refused has taken nothing.
"""

from collections.abc import Mapping
from typing import Final, final

from dragoman.model.agent import Agent, RateLimits
from dragoman.model.call import Caller
from dragoman.model.errors import RateLimited
from dragoman.ports.clock import Clock

SECOND: Final = 1_000_000_000
FEWEST_SWEPT: Final = 1024
AT_ONCE_WAIT_S: Final = 1  # nobody knows when a call that runs will end
PERIODS: Final[Mapping[str, tuple[str, int]]] = {
    "requests_per_minute": ("a minute", 60 * SECOND),
    "requests_per_hour": ("an hour", 3600 * SECOND),
}


@final
class Meter:
    """One limit of one name: so many in each period."""

    __slots__ = ("_share_ns", "_spare_ns", "allowed", "kind", "limit", "passes_at_ns")

    def __init__(self, kind: str, limit: str, allowed: int) -> None:
        self.kind: Final = kind  # of what it is a limit
        self.limit: Final = limit
        self.allowed: Final = allowed
        self._share_ns = -(-PERIODS[limit][1] // allowed)
        self._spare_ns = self._share_ns * (allowed - 1)
        self.passes_at_ns = -self._spare_ns  # from when the next one passes; the whole limit is there `_spare_ns` later

    def wait_ns(self, now_ns: int) -> int:
        """How long until the next one passes; 0: now."""
        return max(0, self.passes_at_ns - now_ns)

    def take(self, now_ns: int) -> None:
        """Count one that passes."""
        whole_ns, at_ns = now_ns - self._spare_ns, self.passes_at_ns
        self.passes_at_ns = (at_ns if at_ns > whole_ns else whole_ns) + self._share_ns

    def give_back(self, now_ns: int, since_ns: int) -> None:
        """One that was taken since then did not count: what of its share has not come back by itself, does now."""
        self.passes_at_ns -= max(0, self._share_ns - max(0, now_ns - since_ns))

    def whole_in_ns(self, now_ns: int) -> int:
        """How long until the whole limit is there again."""
        return max(0, self.passes_at_ns + self._spare_ns - now_ns)


@final
class Meters:
    """The meters of one kind of thing that has limits: agents, keys or tenants; none of who has its limits whole.

    What was used of a limit says nothing of another: a limit that is changed begins anew.
    """

    def __init__(self, kind: str) -> None:
        self.kind: Final = kind
        self.at_once: dict[str, int] = {}
        self._by_name: dict[str, tuple[Agent | RateLimits, tuple[Meter, ...]]] = {}
        self._sweep_at = FEWEST_SWEPT

    def __len__(self) -> int:
        return len(self._by_name)

    def of(self, name: str, said_by: Agent | RateLimits, now_ns: int) -> tuple[Meter, ...]:
        """The meters that whoever has this name has to pass, by its limits or by the agent that has them."""
        known = self._by_name.get(name)
        if known is not None and known[0] is said_by:
            return known[1]
        limits = _limits_of(said_by)
        if known is not None and _limits_of(known[0]) == limits:
            self._by_name[name] = (said_by, known[1])
            return known[1]
        if limits.requests_per_minute is None and limits.requests_per_hour is None:
            return ()
        if len(self._by_name) >= self._sweep_at:
            self._sweep(now_ns)
        before = {} if known is None else {(meter.limit, meter.allowed): meter for meter in known[1]}
        asked = (
            ("requests_per_minute", limits.requests_per_minute),
            ("requests_per_hour", limits.requests_per_hour),
        )
        meters = tuple(
            [
                before.get((limit, allowed)) or Meter(self.kind, limit, allowed)
                for limit, allowed in asked
                if allowed is not None
            ]
        )
        self._by_name[name] = (said_by, meters)
        return meters

    def _sweep(self, now_ns: int) -> None:
        self._by_name = {
            name: known for name, known in self._by_name.items() if any(each.whole_in_ns(now_ns) for each in known[1])
        }
        self._sweep_at = max(FEWEST_SWEPT, 2 * len(self._by_name))


class Limits:
    """The limits of one hub."""

    def __init__(self, *, clock: Clock, tenants: RateLimits | None = None) -> None:
        self._clock = clock
        self._tenants = tenants  # what each tenant may ask for
        self._by_agent = Meters("agent")
        self._by_key = Meters("key")
        self._by_tenant = Meters("tenant")
        self._held: dict[str, list[tuple[Meters, str]]] = {}  # calls that count among those of a key or tenant at once

    def take(self, caller: Caller | None, agent: Agent | None, task_id: str) -> None:
        """Count a call for its caller, its agent, or both. Raises RateLimited; then nothing was counted."""
        now_ns = round(self._clock.monotonic() * SECOND)
        meters = self._meters(caller, agent, now_ns)
        for meter in meters:
            if meter.passes_at_ns > now_ns:
                raise self._over(meters, now_ns)
        if caller is not None and (caller.limits is not None or self._tenants is not None):
            self._hold(caller, task_id)
        for meter in meters:
            meter.take(now_ns)

    def give_back(self, caller: Caller | None, agent: Agent | None, *, since: float) -> None:
        """A call that was counted since then came to nothing."""
        now_ns, since_ns = round(self._clock.monotonic() * SECOND), round(since * SECOND)
        for meter in self._meters(caller, agent, now_ns):
            meter.give_back(now_ns, since_ns)

    def release(self, task_id: str) -> None:
        """A call is over: it counts no longer among those that run at once."""
        for scope, name in self._held.pop(task_id, ()):
            scope.at_once[name] -= 1
            if not scope.at_once[name]:
                del scope.at_once[name]

    def _meters(self, caller: Caller | None, agent: Agent | None, now_ns: int) -> tuple[Meter, ...]:
        """The meters that a call has to pass."""
        meters = () if agent is None else self._by_agent.of(agent.uuid, agent, now_ns)
        if caller is not None and (caller.limits is not None or self._tenants is not None):
            for scope, name, limits in self._of(caller):
                meters += scope.of(name, limits, now_ns)
        return meters

    def _of(self, caller: Caller) -> list[tuple[Meters, str, RateLimits]]:
        """The limits of who calls."""
        of: list[tuple[Meters, str, RateLimits]] = []
        if caller.limits is not None and caller.key_id is not None:
            of.append((self._by_key, caller.key_id, caller.limits))
        if self._tenants is not None:
            of.append((self._by_tenant, caller.tenant, self._tenants))
        return of

    def _hold(self, caller: Caller, task_id: str) -> None:
        """Count the call among those that its key and tenant have at once. Raises RateLimited; then it does not."""
        if task_id in self._held:
            return
        held: list[tuple[Meters, str]] = []
        for scope, name, limits in self._of(caller):
            most = limits.concurrent_requests
            if most is not None and scope.at_once.get(name, 0) >= most:
                wait_ns = AT_ONCE_WAIT_S * SECOND
                raise self._refusal(scope.kind, "concurrent_requests", most, wait_ns, wait_ns)
            if most is not None:
                held.append((scope, name))
        for scope, name in held:
            scope.at_once[name] = scope.at_once.get(name, 0) + 1
        if held:
            self._held[task_id] = held

    def _over(self, meters: tuple[Meter, ...], now_ns: int) -> RateLimited:
        """The refusal by the meter that lets the next one pass last."""
        last = max(meters, key=lambda meter: meter.passes_at_ns)
        wait_ns, whole_in_ns = last.wait_ns(now_ns), last.whole_in_ns(now_ns)
        return self._refusal(last.kind, last.limit, last.allowed, wait_ns, whole_in_ns)

    def _refusal(self, kind: str, limit: str, allowed: int, wait_ns: int, whole_in_ns: int) -> RateLimited:
        per = PERIODS[limit][0] if limit in PERIODS else "at once"
        return rate_limited(
            f"{allowed} requests {per} are allowed{_OF[kind]}",
            limit=limit,
            scope=kind,
            allowed=allowed,
            wait_s=_seconds(wait_ns),
            reset=round(self._clock.now().timestamp()) + _seconds(whole_in_ns),
        )


_OF: Final[Mapping[str, str]] = {"agent": "", "key": " with this key", "tenant": " in this tenant"}


def rate_limited(message: str, *, limit: str, scope: str, allowed: int, wait_s: int, reset: int) -> RateLimited:
    """The refusal of a call beyond a limit, with what every dialect needs to say it."""
    return RateLimited(
        message,
        retry_after_s=wait_s,
        limit=limit,
        scope=scope,
        allowed=allowed,
        remaining=0,
        reset=reset,
        retry_after=wait_s,
    )


def _limits_of(said_by: Agent | RateLimits) -> RateLimits:
    return said_by.limits if isinstance(said_by, Agent) else said_by


def _seconds(ns: int) -> int:
    return max(1, -(-ns // SECOND))
