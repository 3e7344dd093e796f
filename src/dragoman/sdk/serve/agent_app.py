"""`agent.app`: the agent's server as an ASGI application, for servers that are not ours.

Where they listen is not known here. So callers need a token unless DRAGOMAN_AUTH is `none`, and then only this machine
is served; and the address in the agent's cards is that of DRAGOMAN_PUBLIC_URL, or of DRAGOMAN_PORT on this machine.
"""

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from dragoman.backends.local.bus import LocalBus
from dragoman.model.loopback import is_loopback_address
from dragoman.observe.calls import CallLog
from dragoman.ports.clock import SystemClock
from dragoman.sdk.serve.agent_server import greet, settings_of
from dragoman.sdk.serve.resident import AgentResident
from dragoman.server import app
from dragoman.server.drain import Drain
from dragoman.server.exchange import Receive, Scope, Send
from dragoman.server.from_settings import log_form
from dragoman.server.lifespan import Asgi, Living

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent

_log: Final = logging.getLogger("dragoman.agent")


def asgi(agent: "Agent") -> Asgi:
    """The agent as an ASGI application that lives as long as the server that runs it."""

    @asynccontextmanager
    async def life() -> AsyncGenerator[Asgi]:
        auth = os.environ.get("DRAGOMAN_AUTH") or "token"
        settings = settings_of(agent, host=None, port=None, data=None, auth=auth)
        clock, bus = SystemClock(), LocalBus()
        resident = AgentResident(agent, settings, clock, register=None)
        secrets = app.load_secrets(settings)
        async with app.living(
            settings,
            secrets,
            store=app.sqlite_store(settings, clock, bus),
            bus=bus,
            clock=clock,
            drain=Drain(),
            calls=CallLog(form=log_form(settings), level=settings.log.level),
            resident=resident,
        ) as built:
            greet(agent, app.facts_of(settings, secrets, settings.public_url), clock)
            yield Watched(built, settings.public_url, open_to_all=settings.auth == "none")
            await resident.finish()

    living = Living(life)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await living(scope, receive, send)

    return application  # a coroutine function: by that servers know which ASGI this is


@final
class Watched:
    """The application, for whom it is meant: where anybody may call, only this machine is anybody."""

    def __init__(self, built: Asgi, public_url: str, *, open_to_all: bool) -> None:
        self._built = built
        self._public = urlsplit(public_url)
        self._open_to_all = open_to_all
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one WebSocket."""
        client: tuple[str, int] | None = scope.get("client")
        if self._open_to_all and not _is_here(client):
            await _refuse(scope, receive, send)
            return
        self._compare(scope.get("server"))
        await self._built(scope, receive, send)

    def _compare(self, server: tuple[str, int | None] | None) -> None:
        """Say once that the cards name another port than the one that is used."""
        if (
            self._warned
            or server is None
            or server[1] is None
            or self._public.hostname not in ("localhost", "127.0.0.1")
        ):
            return
        self._warned = True
        if server[1] != self._public.port:
            _log.warning(
                "The agent's cards name %s, but it is reached at port %d: set DRAGOMAN_PUBLIC_URL, or DRAGOMAN_PORT.",
                self._public.geturl(),
                server[1],
            )


def _is_here(client: tuple[str, int] | None) -> bool:
    """Whether a request comes from this machine; over a UNIX socket it has no address."""
    try:
        return client is None or is_loopback_address(client[0])
    except ValueError:
        return False


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"With DRAGOMAN_AUTH=none only this machine is served.\n"})
