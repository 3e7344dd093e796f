"""Look again at an agent that no longer understands its calls: it may speak another dialect than it did.

Told of every call that ends, it counts those in a row that failed because the agent did not know the method or the
version, or answered something that cannot be read. At the third it has the agent looked at, at most once in five
minutes each. Does not send the failed calls again.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from dragoman.hub.carry import Spawn
from dragoman.model.errors import DragomanError, Failure
from dragoman.model.task import Task
from dragoman.ports.clock import Clock

LOG: Final = logging.getLogger("dragoman.hub")
IN_A_ROW: Final = 3
APART_S: Final = 300.0
MOST_AGENTS: Final = 10_000  # counted at once; beyond it all counts begin anew
_NOT_UNDERSTOOD: Final = frozenset({-32601, -32009})
_UNREADABLE: Final = "invalid_response"

Look = Callable[[str, str], Awaitable[object]]  # at an agent, by tenant and id; raises DragomanError


class Reprobe:
    """Notices when calls to an agent start failing for want of a common language."""

    def __init__(self, *, look: Look, clock: Clock, spawn: Spawn) -> None:
        self._look = look
        self._clock = clock
        self._spawn = spawn
        self._failed: dict[tuple[str, str], int] = {}  # in a row, by tenant and agent
        self._looked: dict[tuple[str, str], float] = {}

    def ended(self, task: Task) -> None:
        """Count one call that has ended, and look at its agent if it is time to."""
        if task.failure is None and not self._failed:
            return
        key = (task.tenant, task.agent_id)
        if not not_understood(task.failure):
            self._failed.pop(key, None)
            return
        if len(self._failed) >= MOST_AGENTS:
            self._failed.clear()
        self._failed[key] = self._failed.get(key, 0) + 1
        if self._failed[key] >= IN_A_ROW and self._is_due(key):
            self._spawn(self._look_at(*key))

    def _is_due(self, key: tuple[str, str]) -> bool:
        now = self._clock.monotonic()
        last = self._looked.get(key)
        if last is not None and now - last < APART_S:
            return False
        self._looked = {known: at for known, at in self._looked.items() if now - at < APART_S}
        self._looked[key] = now
        del self._failed[key]
        return True

    async def _look_at(self, tenant: str, agent_id: str) -> None:
        try:
            await self._look(tenant, agent_id)
        except DragomanError as error:
            # What it speaks now could not be learned: its calls go on failing, and tell their callers why.
            LOG.warning("an agent was looked at in vain: %s", error.message, extra={"fields": {"agent_id": agent_id}})


def not_understood(failure: Failure | None) -> bool:
    """Whether a call failed because agent and hub did not understand each other."""
    if failure is None or failure.code != "AGENT_ERROR":
        return False
    details = failure.details or {}
    return details.get("agent_code") in _NOT_UNDERSTOOD or details.get("reason") == _UNREADABLE
