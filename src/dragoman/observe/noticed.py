"""Lines for what leaves no other trace: refusals and pings. So many a second, and how many were left out.

Says who, what and why by their names; nothing of a body, a header or a message is in it. What one caller makes is
counted by itself: nobody's noise hides another's lines.
"""

import logging
from typing import Final

from dragoman.observe.names import LEFT_OUT
from dragoman.ports.clock import Clock, Timer

LOG: Final = logging.getLogger("dragoman.noticed")
PER_SECOND: Final = 10  # lines of one caller and code
ALL_PER_SECOND: Final = 200  # lines of all together
SECOND_S: Final = 1.0


class Noticed:
    """Writes these lines, and stays bounded when somebody makes thousands of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written = 0
        self._seen: dict[tuple[str, str], list[int]] = {}  # in this second: lines written, and left out
        self._others = 0  # left out beyond what is told apart
        self._turn: Timer | None = None

    def note(self, what: str, who: str, code: str = "", **fields: object) -> None:
        """One line, unless this second has had its share."""
        if self._turn is None:
            self._turn = self._clock.call_at(self._clock.monotonic() + SECOND_S, self._sum_up)
        seen = self._seen.get((who, code))
        if seen is None:
            if len(self._seen) >= ALL_PER_SECOND:
                self._others += 1
                return
            seen = self._seen[who, code] = [0, 0]
        if seen[0] >= PER_SECOND or self._written >= ALL_PER_SECOND:
            seen[1] += 1
            return
        seen[0] += 1
        self._written += 1
        told = {"code": code or None, **fields}
        LOG.info(what, extra={"fields": {name: value for name, value in told.items() if value is not None}})

    def close(self) -> None:
        """Say what was left out last."""
        if self._turn is not None:
            self._turn.cancel()
            self._sum_up()

    def _sum_up(self) -> None:
        """The second is over."""
        seen, others = self._seen, self._others
        self._seen, self._written, self._others, self._turn = {}, 0, 0, None
        for (who, code), (_, left_out) in seen.items():
            if left_out:
                LOG.info(LEFT_OUT, extra={"fields": {"who": who, "code": code, "lines": left_out}})
        if others:
            LOG.info(LEFT_OUT, extra={"fields": {"lines": others}})
