"""An agent that lives in the process of the hub that serves it: connected in memory, as long as the hub lives."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, final

from dragoman.config import Settings
from dragoman.hub.authenticate import OPERATOR
from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.connect.connection import Connection
from dragoman.sdk.serve.local_link import LocalLink
from dragoman.sdk.serve.registering import Registering
from dragoman.server.built import Built

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent


@final
class AgentResident:
    """The one agent of a server, at work for it in the same process."""

    def __init__(self, agent: "Agent", settings: Settings, clock: Clock, *, register: str | None) -> None:
        self._agent = agent
        self._settings = settings
        self._clock = clock
        self._client = A2AClient(register or agent.hub, agent.api_key, clock=clock)
        self._registering = None if register is None else Registering(agent, settings, self._client, clock)
        self._heard = asyncio.Event()
        self._connection: Connection | None = None
        self._over = asyncio.Event()

    @property
    def root_agent(self) -> str | None:
        """The agent's id."""
        return self._agent.id

    @property
    def stuck(self) -> bool:
        """Whether handlers did not end when they were told to."""
        return self._connection is not None and self._connection.stuck

    def listening(self) -> None:
        """The server can be reached now."""
        self._heard.set()

    def verify(self, token: str, now: datetime) -> JsonObject | None:
        """What a token of the hub that this agent is registered at says: who calls through it."""
        return None if self._registering is None else self._registering.verify(token, now)

    @asynccontextmanager
    async def living(self, built: Built) -> AsyncGenerator[None]:
        """Connected to its hub before the first request, until after the last."""
        self._connection = Connection(
            self._agent, LocalLink(built.desk, OPERATOR), clock=self._clock, client=self._client
        )
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self._work(self._connection))
            registering = group.create_task(self._register())
            opened = group.create_task(self._connection.opened.wait())
            await asyncio.wait({opened, working}, return_when=asyncio.FIRST_COMPLETED)
            try:
                yield
            finally:
                registering.cancel()
                opened.cancel()
                working.cancel()
        await self._client.close()

    async def finish(self) -> None:
        """Take no new calls, and return when those that run have ended."""
        if self._connection is not None:
            self._connection.stop()
            await self._over.wait()

    async def _work(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            self._over.set()

    async def _register(self) -> None:
        await self._heard.wait()
        if self._registering is not None:
            await self._registering.run()
