"""Ask a stranger, with manners: one request at a time, few of them, each of them short, and no secret unasked.

At the bound nothing more is asked: `ask` returns None, and what was learned until then counts.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median
from typing import Final

import msgspec

from dragoman import __version__
from dragoman.delivery.probe.findings import Tried
from dragoman.delivery.probe.places import origin_of
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.net.addresses import without_login
from dragoman.net.errors import NetError, Reach
from dragoman.ports.clock import Clock

Fetch = Callable[[HttpRequest, float], Awaitable[HttpReply]]  # by a monotonic deadline; raises NetError
Describe = Callable[[HttpReply], str]

MOST_REQUESTS: Final = 24
EACH_S: Final = 5.0
TOTAL_S: Final = 30.0
AGENT: Final = f"dragoman-doctor/{__version__}".encode()
_HOPELESS: Final = frozenset({Reach.FORBIDDEN, Reach.UNRESOLVED, Reach.REFUSED, Reach.TLS, Reach.CLOSED})
_PATIENCE: Final = 2  # requests to one host that may go without an answer
_LOCKED: Final = (401, 403)


class Asker:
    """The requests of one look, and what they tell about the one who answers."""

    def __init__(self, fetch: Fetch, clock: Clock, *, url: str, credentials: Headers) -> None:
        self.nonce = clock.new_id("")
        self.tried: list[Tried] = []
        self.locked = False
        self.challenge: str | None = None
        self.reach = ""
        self._fetch = fetch
        self._clock = clock
        self._own = origin_of(url)
        self._credentials = credentials
        self._deadline = clock.monotonic() + TOTAL_S
        self._silent: dict[str, int] = {}  # by origin: how often nothing came back
        self._skews: list[tuple[float, float]] = []

    @property
    def left(self) -> int:
        """How many requests may still be made."""
        return MOST_REQUESTS - len(self.tried)

    async def ask(self, what: str, request: HttpRequest, describe: Describe) -> HttpReply | None:
        """The reply; None where there is none, or nothing more may be asked there."""
        reply = await self._once(what, request, describe)
        if reply is None or reply.status not in _LOCKED:
            return reply
        self.locked = True
        scheme = reply.headers.get(b"www-authenticate", b"").decode("latin-1").partition(" ")[0]
        self.challenge = self.challenge or scheme or None
        if not self._credentials or origin_of(request.url) != self._own:
            return reply
        shown = msgspec.structs.replace(request, headers={**request.headers, **self._credentials})
        return await self._once(f"{what} with the credential", shown, describe) or reply

    @property
    def latency_ms(self) -> float | None:
        """How long an answer usually took."""
        times = [each.ms for each in self.tried if each.status is not None and each.ms is not None]
        return median(times) if times else None

    @property
    def clock_skew_s(self) -> float | None:
        """How far the other clock is ahead, as well as whole seconds tell it."""
        if not self._skews:
            return None
        low, high = max(low for low, _ in self._skews), min(high for _, high in self._skews)
        if low > high:
            low, high = self._skews[-1]
        return round((low + high) / 2, 2)

    async def _once(self, what: str, request: HttpRequest, describe: Describe) -> HttpReply | None:
        now = self._clock.monotonic()
        origin = origin_of(request.url)
        if self.left <= 0 or now >= self._deadline or self._silent.get(origin, 0) >= _PATIENCE:
            return None
        sent = msgspec.structs.replace(request, headers={**request.headers, b"user-agent": AGENT})
        place = f"{request.method} {without_login(request.url)}"
        try:
            reply = await self._fetch(sent, min(now + EACH_S, self._deadline))
        except NetError as error:
            self._silent[origin] = _PATIENCE if error.kind in _HOPELESS else self._silent.get(origin, 0) + 1
            self.reach = self.reach or error.kind.value
            self.tried.append(Tried(what=what, request=place, says=str(error)))
            return None
        taken_ms = (self._clock.monotonic() - now) * 1000
        says = describe(reply)
        self.tried.append(Tried(what=what, request=place, says=says, status=reply.status, ms=round(taken_ms, 2)))
        self._compare(reply, self._clock.now())
        return reply

    def _compare(self, reply: HttpReply, now: datetime) -> None:
        """The server's whole second holds its time: several of them narrow the difference down."""
        try:
            date = parsedate_to_datetime(reply.headers.get(b"date", b"").decode("latin-1"))
            ahead = (date - now) / timedelta(seconds=1)
        except (TypeError, ValueError, OverflowError):
            return
        self._skews.append((ahead, ahead + 1.0))
