"""Lines for what leaves no other trace: refusals and pings. So many a second, and how many were left out.

Says who, what and why by their names; nothing of a body, a header or a message is in it.
"""

import logging
from typing import Final

from dragoman.ports.clock import Clock

LOG: Final = logging.getLogger("dragoman.noticed")
PER_SECOND: Final = 20


class Noticed:
    """Writes these lines, and stays bounded when somebody makes thousands of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = 0.0
        self._written = 0
        self._left_out = 0

    def note(self, what: str, **fields: object) -> None:
        """One line, unless this second has had its share."""
        now = self._clock.monotonic()
        if now - self._since >= 1.0:
            if self._left_out:
                LOG.info("lines left out", extra={"fields": {"lines": self._left_out}})
            self._since, self._written, self._left_out = now, 0, 0
        if self._written >= PER_SECOND:
            self._left_out += 1
            return
        self._written += 1
        LOG.info(what, extra={"fields": {name: value for name, value in fields.items() if value is not None}})
