"""Whether an agent that has a URL answers at all: it is asked for its card, as it would be called.

Any answer is one, a refusal too; only what a gateway says of somebody behind it that is gone is none. What the card
says is not looked at here.
"""

from typing import Final

from dragoman.delivery.credential_kinds import origin_of
from dragoman.delivery.over_http import Wire
from dragoman.delivery.proof import Proof, Shown
from dragoman.model.agent import Agent
from dragoman.model.errors import AgentUnavailable
from dragoman.model.http import HttpRequest
from dragoman.model.json import is_object
from dragoman.net.errors import NetError
from dragoman.ports.clock import Clock

GONE: Final = frozenset({502, 503, 504})  # a gateway's words: who is behind it does not answer
_HEADERS: Final = {b"accept": b"application/json"}


class Pulse:
    """Asks agents whether they are there."""

    def __init__(self, *, wire: Wire, credentials: Proof, clock: Clock, timeout_s: float) -> None:
        self._wire = wire
        self._credentials = credentials
        self._clock = clock
        self._timeout_s = timeout_s

    async def problem(self, agent: Agent, url: str) -> str | None:
        """Why an agent does not answer at the URL at which it is called; None: it does."""
        place = _card_place(agent, url)
        shown = await self._shown(agent, place)
        request = HttpRequest(method="GET", url=place, headers={**_HEADERS, **shown.headers})
        try:
            reply = await self._wire.fetch(request, self._clock.monotonic() + self._timeout_s, shown.identity)
        except NetError as error:
            return str(error)
        return f"HTTP {reply.status}" if reply.status in GONE else None

    async def _shown(self, agent: Agent, url: str) -> Shown:
        try:
            await self._credentials.ready(agent)
            headers = self._credentials.shown(agent, url, subject=agent.owner_id, chain=(), by_hub=False)
        except AgentUnavailable:
            return Shown()  # Whether it is there shows without a credential, too.
        return Shown(headers=headers, identity=self._credentials.identities.get(agent.uuid))


def _card_place(agent: Agent, url: str) -> str:
    """Where the agent's card was found, if that is where it is called, too; else the place where it is called."""
    found = None if agent.probe is None else agent.probe.get("card")
    place = found.get("url") if is_object(found) else None
    return place if isinstance(place, str) and origin_of(place) == origin_of(url) else url
