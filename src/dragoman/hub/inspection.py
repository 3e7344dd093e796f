"""Looks at the store's own file: after a start that follows no proper end, and every night.

What was found is logged, and `/readyz` shows it. A damaged file does not stop the hub: what it can still read and write
is worth more than nothing, and who runs it has to decide.
"""

import logging
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from dragoman.ports.clock import Clock
from dragoman.ports.retention import Inspection as Inspecting

LOG: Final = logging.getLogger("dragoman.store")
FIRST_S: Final = 5.0
NIGHT_H: Final = 3  # o'clock, where the hub runs
AGAIN_S: Final = 3600.0
TRIES: Final = 3  # of one night


class FileState(StrEnum):
    """What is known of the file."""

    UNKNOWN = "not checked yet"
    WHOLE = "ok"
    DAMAGED = "damaged"


class Inspection:
    """When the file is looked at, and what came of it."""

    def __init__(self, *, store: Inspecting, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.state = FileState.UNKNOWN
        self.looked_at: datetime | None = None

    async def run(self) -> None:
        """Look as long as the hub runs."""
        if self._store.left_open():
            await self._clock.sleep(FIRST_S)
            await self.look(quick=True)
        while True:
            await self._clock.sleep(self._until_night())
            for _ in range(TRIES):
                if await self.look(quick=False):
                    break
                await self._clock.sleep(AGAIN_S)

    async def look(self, *, quick: bool) -> bool:
        """Look now; False where that was broken off, for it held up what is written."""
        found = await self._store.inspect(quick=quick)
        fields = {"took_s": round(found.took_s, 1), "quick": quick}
        if found.whole is None:
            LOG.warning("the look at the database was broken off: too much was written", extra={"fields": fields})
            return False
        self.looked_at = self._clock.now()
        if found.whole:
            self.state = FileState.WHOLE
            LOG.info("the database is whole", extra={"fields": fields})
        else:
            self.state = FileState.DAMAGED
            wrong = "; ".join(found.wrong)[:1000]
            LOG.error("the database is damaged: restore a backup", extra={"fields": {**fields, "wrong": wrong}})
        return True

    def _until_night(self) -> float:
        here = self._clock.now().astimezone()
        night = here.replace(hour=NIGHT_H, minute=0, second=0, microsecond=0)
        if night <= here:
            night += timedelta(days=1)
        return self._clock.jitter(max((night - here).total_seconds(), 60.0), 0.01)
