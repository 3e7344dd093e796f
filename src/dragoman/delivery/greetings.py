"""Sessions with agents whose dialect wants one opened first: opened once, kept, and opened anew when they are over.

One for each agent and caller: what an agent keeps for a session is never another caller's. They are memory alone; one
that is pushed out by others, or that the agent forgot, is opened again by the next call.
"""

from collections import OrderedDict
from typing import Final

import msgspec

from dragoman.delivery.flights import Flights
from dragoman.delivery.over_http import Wire, told
from dragoman.dialects.dialect import Dialect, Outgoing
from dragoman.model.agent import Agent
from dragoman.model.http import NO_HEADERS, Headers
from dragoman.net.errors import NetError
from dragoman.net.tls import ClientIdentity

MOST: Final = 1000
UNPROVEN: Final = 401

Key = tuple[str, str, str]  # the agent's UUID, its URL, the caller


class Greetings:
    """The sessions of one courier."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._open: OrderedDict[Key, Headers] = OrderedDict()
        self._flights: Flights[Headers] = Flights()

    async def greeted(
        self, dialect: Dialect, outgoing: Outgoing, agent: Agent, *, deadline: float, identity: ClientIdentity | None
    ) -> Outgoing:
        """The same in a session, opened if there is none. Raises AgentUnavailable, AgentTimeout, AgentError."""
        key = _key(outgoing, agent)
        session = self._open.get(key)
        if session is None:

            async def opened() -> Headers:
                return await self._greet(dialect, outgoing, agent, key, deadline, identity)

            session = await self._flights.fly("\n".join(key), opened)
        else:
            self._open.move_to_end(key)
        return _within(outgoing, session)

    def known(self, outgoing: Outgoing, agent: Agent) -> Outgoing:
        """The same in the session that there is."""
        return _within(outgoing, self._open.get(_key(outgoing, agent), NO_HEADERS))

    def forget(self, outgoing: Outgoing, agent: Agent) -> None:
        """The agent knows the session no longer."""
        self._open.pop(_key(outgoing, agent), None)

    async def _greet(
        self,
        dialect: Dialect,
        outgoing: Outgoing,
        agent: Agent,
        key: Key,
        deadline: float,
        identity: ClientIdentity | None,
    ) -> Headers:
        greeting = None if dialect.greet is None else dialect.greet(outgoing)
        if greeting is None:
            return NO_HEADERS
        while (request := greeting.ask()) is not None:
            try:
                reply = await self._wire.send(request, deadline=deadline, identity=identity)
            except NetError as error:
                raise told(error, agent.id, outgoing.timeout_ms) from error
            if reply.status == UNPROVEN:
                return NO_HEADERS  # The call itself is refused as well, and there its credential is renewed.
            greeting.hear(reply)
        self._open[key] = greeting.headers
        if len(self._open) > MOST:
            self._open.popitem(last=False)
        return greeting.headers


def _key(outgoing: Outgoing, agent: Agent) -> Key:
    return agent.uuid, outgoing.endpoint.url or "", outgoing.task.caller_id


def _within(outgoing: Outgoing, session: Headers) -> Outgoing:
    if not session:
        return outgoing
    return msgspec.structs.replace(outgoing, headers={**outgoing.headers, **session})
