"""One HTTP exchange with the hub, while something on stderr shows that it goes on.

The only module of the command line that runs an event loop for requests; imported when the first one is made.
"""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Callable
from typing import Final

from dragoman.cli.output import Output, say
from dragoman.cli.times import took
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.net import AddressRule, Client, ClientLimits
from dragoman.ports.clock import Clock, SystemClock
from dragoman.security.redact import Redactor

# The user names the hub: whatever address it has may be dialled.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")
QUIET_S: Final = 1.0
FRAME_S: Final = 0.1
LINE_S: Final = 10.0
SHOWN_BYTES: Final = 2048
FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


async def exchange(request: HttpRequest, timeout_s: float, waiting: str, output: Output) -> HttpReply:
    """Send the request and return the reply; raises NetError."""
    clock = SystemClock()
    client = Client(clock=clock, rule=AddressRule.of(ANYWHERE, plain_http_anywhere=True), limits=ClientLimits())
    wire = WireLog(output)
    wire.show_request(request)
    started = clock.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            shown = group.create_task(progress(clock, lambda: waiting, output))
            try:
                reply = await client.send(request, deadline=started + timeout_s)
            finally:
                shown.cancel()
    except BaseExceptionGroup as several:
        # The group wraps what the one request raised.
        raise several.exceptions[0] from several.exceptions[0].__cause__
    finally:
        await client.close()
    wire.show_reply(reply, clock.monotonic() - started)
    return reply


async def progress(clock: Clock, waiting: Callable[[], str], output: Output) -> None:
    """Show on stderr what is waited for, until this is cancelled."""
    if output.quiet:
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        for count in itertools.count(1):
            await clock.sleep(LINE_S)
            say(f"{waiting()} ({took(count * LINE_S)})")
    started = clock.monotonic()
    await clock.sleep(QUIET_S)
    try:
        for frame in itertools.cycle(FRAMES):
            sys.stderr.write(f"\r{frame} {waiting()} {took(clock.monotonic() - started)} ")
            sys.stderr.flush()
            await clock.sleep(FRAME_S)
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class WireLog:
    """What -v shows of requests and replies, without their secrets."""

    def __init__(self, output: Output) -> None:
        self._shown = output.verbose > 0
        self._redactor = Redactor(os.urandom(16))

    def show_request(self, request: HttpRequest) -> None:
        """Show what is sent."""
        if self._shown:
            self._lines(">", f"{request.method} {request.url}", request.headers, request.body)

    def show_reply(self, reply: HttpReply, seconds: float) -> None:
        """Show what came back, and when."""
        if self._shown:
            self._lines("<", f"HTTP {reply.status} in {took(seconds)}", reply.headers, reply.body)

    def _lines(self, mark: str, first: str, headers: Headers, body: bytes) -> None:
        say(f"{mark} {self._redactor.text(first)}")
        for name, value in self._redactor.headers(headers).items():
            say(f"{mark} {name.decode('latin-1')}: {value.decode('latin-1')}")
        if body:
            say(f"{mark} {self._body(body)}")

    def _body(self, body: bytes) -> str:
        try:
            text = json.dumps(self._redactor.json(json.loads(body)), ensure_ascii=False)
        except ValueError:
            text = self._redactor.text(body.decode("utf-8", "replace"))
        return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}… ({len(body)} bytes)"
