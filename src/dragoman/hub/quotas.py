"""Quotas of tenants: how many agents, open calls and stored bytes each may have.

Agents are counted exactly, in the commit that registers one. Of the other two the figures are looked at every few
seconds; between two looks nothing is counted, so that a call costs no more than a look into a set. What a tenant asks
back (results, cancelling, forgetting) is never refused.
"""

from typing import Final

from dragoman.model.errors import RateLimited
from dragoman.ports.clock import Clock
from dragoman.ports.store import Housekeeping

LOOK_S: Final = 5.0  # so no figure that counts is older than 10 s


class Quotas:
    """Which tenants may make no new calls now; as many entries as there are tenants."""

    def __init__(
        self, *, store: Housekeeping, clock: Clock, agents: int | None, open_calls: int | None, stored_bytes: int | None
    ) -> None:
        self._store = store
        self._clock = clock
        self.agents = agents
        self._limits: dict[str, int | None] = {"open_calls": open_calls, "stored_bytes": stored_bytes}
        self._over: dict[str, str] = {}

    def over(self, tenant: str) -> RateLimited | None:
        """Why the tenant may open no more calls now: over one of its quotas; None if it may."""
        if tenant not in self._over:
            return None
        quota = self._over[tenant]
        limit = self._limits[quota]
        return RateLimited(
            f"The tenant {tenant} has its quota of {quota.replace('_', ' ')}: {limit}.",
            retry_after_s=round(LOOK_S),
            reason="quota",
            quota=quota,
            limit=limit,
        )

    async def run(self) -> None:
        """Look at the figures as long as the hub runs."""
        if all(limit is None for limit in self._limits.values()):
            return
        while True:
            await self.look()
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """See which tenants are over a quota."""
        usage = await self._store.usage()
        taken = {"open_calls": usage.open_calls, "stored_bytes": usage.stored_bytes}
        self._over = {
            tenant: quota
            for quota, limit in self._limits.items()
            if limit is not None
            for tenant, have in taken[quota].items()
            if have >= limit
        }
