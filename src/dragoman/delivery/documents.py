"""Small documents of other hosts, fetched with the hub's own client and its rule of where it may call."""

from typing import Final

from dragoman.delivery.over_http import Wire
from dragoman.model.http import HttpRequest
from dragoman.net.errors import NetError
from dragoman.ports.clock import Clock

WITHIN_S: Final = 10.0
_HEADERS: Final = {b"accept": b"application/json"}


class Documents:
    """Fetches documents by their URLs."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire = wire
        self._clock = clock

    async def fetch(self, url: str) -> bytes | None:
        """The document, of at most 256 KiB; None where it cannot be had within ten seconds, or the hub may not ask."""
        request = HttpRequest(method="GET", url=url, headers=_HEADERS)
        try:
            reply = await self._wire.fetch(request, self._clock.monotonic() + WITHIN_S)
        except NetError:
            return None
        return reply.body if reply.status == 200 else None
