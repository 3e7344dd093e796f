"""The life of an application in an ASGI server: it is built when the server starts and put away when it stops."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from dragoman.server.exchange import Receive, Scope, Send

LOG: Final = logging.getLogger("dragoman.server")

Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class Living:
    """An ASGI application that exists only while its server runs."""

    def __init__(self, life: Callable[[], AbstractAsyncContextManager[Asgi]]) -> None:
        self._life = life
        self._alive: Asgi = self._not_yet
        self.failure: Exception | None = None  # why it could not start

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """A request for the application, or the server's word that it starts or stops."""
        return self._live(receive, send) if scope["type"] == "lifespan" else self._alive(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        started = False
        try:
            async with self._life() as self._alive:
                started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
                self._alive = self._not_yet
        except Exception as error:
            if started:
                LOG.exception("the hub could not stop cleanly")
            self.failure = error
            stage = "shutdown" if started else "startup"
            await send({"type": f"lifespan.{stage}.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    async def _not_yet(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"1")]})
        await send({"type": "http.response.body", "body": b""})
