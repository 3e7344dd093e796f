"""Whether somebody moved the wall clock. No timer hangs on it, but tokens, signatures and what is shown do."""

import logging
from typing import Final, final

from dragoman.ports.clock import Clock

LOOK_S: Final = 1.0
MOVED_S: Final = 2.0  # less is how clocks are kept right

LOG: Final = logging.getLogger("dragoman")


@final
class WallWatch:
    """Compares the wall clock with the one that never jumps; a jump is logged and counted."""

    __slots__ = ("_apart_s", "_clock", "jumps")

    def __init__(self, clock: Clock) -> None:
        self.jumps = 0
        self._clock = clock
        self._apart_s = self._measured()

    async def run(self) -> None:
        """Look as long as the hub runs."""
        while True:
            await self._clock.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """See whether the clock was moved since the last look."""
        apart_s = self._measured()
        moved_s = apart_s - self._apart_s
        self._apart_s = apart_s
        if abs(moved_s) > MOVED_S:
            self.jumps += 1
            LOG.warning("the wall clock was moved", extra={"fields": {"seconds": round(moved_s, 1)}})

    def _measured(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()
