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
class Meters:
    """So many in each period, for any number of names; one number each, and none of a limit that is whole again.

    What was used of a limit says nothing of another: whose limit is changed begins anew.
    """

    def __init__(self, period_ns: int) -> None:
        self._period_ns = period_ns
        self._whole_at: dict[tuple[str, int], int] = {}
        self._sweep_at = FEWEST_SWEPT

    def __len__(self) -> int:
        return len(self._whole_at)

    def wait_ns(self, name: str, limit: int, now_ns: int) -> int:
        """How long until the next one passes; 0: now."""
        share = -(-self._period_ns // limit)
        whole_at = self._whole_at.get((name, limit), now_ns)
        return max(0, whole_at - now_ns - share * (limit - 1))

    def take(self, name: str, limit: int, now_ns: int) -> None:
        """Count one that passes."""
        share = -(-self._period_ns // limit)
        self._whole_at[name, limit] = max(self._whole_at.get((name, limit), now_ns), now_ns) + share
        if len(self._whole_at) >= self._sweep_at:
            self._sweep(now_ns)

    def give_back(self, name: str, limit: int, now_ns: int, since_ns: int) -> None:
        """One that was taken since then did not count: what of its share has not come back by itself, does now."""
        left_ns = -(-self._period_ns // limit) - max(0, now_ns - since_ns)
        if left_ns > 0 and (name, limit) in self._whole_at:
            self._whole_at[name, limit] -= left_ns

    def whole_in_ns(self, name: str, limit: int, now_ns: int) -> int:
        """How long until the whole limit is there again."""
        return max(0, self._whole_at.get((name, limit), now_ns) - now_ns)

    def _sweep(self, now_ns: int) -> None:
        self._whole_at = {meter: at for meter, at in self._whole_at.items() if at > now_ns}
        self._sweep_at = max(FEWEST_SWEPT, 2 * len(self._whole_at))


@final
class _Scope:
    """The meters of one kind of thing that has limits: agents, keys or tenants."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.meters = {limit: Meters(period_ns) for limit, (_, period_ns) in PERIODS.items()}
        self.at_once: dict[str, int] = {}


_Metered = tuple[_Scope, str, str, int]  # whose meters, of which limit, under which name, and how many


class Limits:
    """The meters of one hub."""

    def __init__(self, *, clock: Clock, tenants: RateLimits | None = None) -> None:
        self._clock = clock
        self._tenants = tenants  # what each tenant may ask for
        self._by_agent = _Scope("agent")
        self._by_key = _Scope("key")
        self._by_tenant = _Scope("tenant")
        self._held: dict[str, list[tuple[_Scope, str]]] = {}  # calls that count among those of a key or tenant at once

    def take(self, caller: Caller | None, agent: Agent | None, task_id: str) -> None:
        """Count a call for its caller, its agent, or both. Raises RateLimited; then nothing was counted."""
        limits = None if agent is None else agent.limits
        if (
            (limits is None or (limits.requests_per_minute is None and limits.requests_per_hour is None))
            and (caller is None or caller.limits is None)
            and self._tenants is None
        ):
            return
        metered = self._metered(caller, agent)
        now_ns = self._now_ns()
        longest, refusal = 0, None
        for each in metered:
            scope, limit, name, allowed = each
            wait_ns = scope.meters[limit].wait_ns(name, allowed, now_ns)
            if wait_ns > longest:
                longest, refusal = wait_ns, each
        if refusal is not None:
            raise self._refusal(refusal, now_ns, longest)
        if caller is not None:
            self._hold(caller, task_id)
        for scope, limit, name, allowed in metered:
            scope.meters[limit].take(name, allowed, now_ns)

    def give_back(self, caller: Caller | None, agent: Agent | None, *, since: float) -> None:
        """A call that was counted since then came to nothing."""
        now_ns, since_ns = self._now_ns(), round(since * SECOND)
        for scope, limit, name, allowed in self._metered(caller, agent):
            scope.meters[limit].give_back(name, allowed, now_ns, since_ns)

    def release(self, task_id: str) -> None:
        """A call is over: it counts no longer among those that run at once."""
        for scope, name in self._held.pop(task_id, ()):
            scope.at_once[name] -= 1
            if not scope.at_once[name]:
                del scope.at_once[name]

    def _metered(self, caller: Caller | None, agent: Agent | None) -> list[_Metered]:
        """The meters that a call has to pass."""
        metered: list[_Metered] = []
        if agent is not None:
            _add(metered, self._by_agent, agent.uuid, agent.limits)
        if caller is not None:
            for scope, name, limits in self._of(caller):
                _add(metered, scope, name, limits)
        return metered

    def _of(self, caller: Caller) -> list[tuple[_Scope, str, RateLimits]]:
        """The limits of who calls."""
        of: list[tuple[_Scope, str, RateLimits]] = []
        if caller.limits is not None and caller.key_id is not None:
            of.append((self._by_key, caller.key_id, caller.limits))
        if self._tenants is not None:
            of.append((self._by_tenant, caller.tenant, self._tenants))
        return of

    def _hold(self, caller: Caller, task_id: str) -> None:
        """Count the call among those that its key and tenant have at once. Raises RateLimited; then it does not."""
        if task_id in self._held:
            return
        held: list[tuple[_Scope, str]] = []
        for scope, name, limits in self._of(caller):
            most = limits.concurrent_requests
            if most is not None and scope.at_once.get(name, 0) >= most:
                at_once = (scope, "concurrent_requests", name, most)
                raise self._refusal(at_once, 0, AT_ONCE_WAIT_S * SECOND)
            if most is not None:
                held.append((scope, name))
        for scope, name in held:
            scope.at_once[name] = scope.at_once.get(name, 0) + 1
        if held:
            self._held[task_id] = held

    def _refusal(self, metered: _Metered, now_ns: int, wait_ns: int) -> RateLimited:
        scope, limit, name, allowed = metered
        per, whole_in_ns = "at once", wait_ns
        if limit in PERIODS:
            per, whole_in_ns = PERIODS[limit][0], scope.meters[limit].whole_in_ns(name, allowed, now_ns)
        return rate_limited(
            f"{allowed} requests {per} are allowed{_OF[scope.kind]}",
            limit=limit,
            scope=scope.kind,
            allowed=allowed,
            wait_s=_seconds(wait_ns),
            reset=round(self._clock.now().timestamp()) + _seconds(whole_in_ns),
        )

    def _now_ns(self) -> int:
        return round(self._clock.monotonic() * SECOND)


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


def _add(metered: list[_Metered], scope: _Scope, name: str, limits: RateLimits) -> None:
    if limits.requests_per_minute is not None:
        metered.append((scope, "requests_per_minute", name, limits.requests_per_minute))
    if limits.requests_per_hour is not None:
        metered.append((scope, "requests_per_hour", name, limits.requests_per_hour))


def _seconds(ns: int) -> int:
    return max(1, -(-ns // SECOND))
