"""Look at an agent from this machine, with the code that the hub uses for registration.

The user names the address, so any may be dialled. Nothing of the hub is needed.
"""

import asyncio
from typing import Final

from dragoman.cli.exchange import ANYWHERE, WireLog, progress
from dragoman.cli.output import Output
from dragoman.delivery.over_http import MAX_CARD
from dragoman.delivery.probe import Examined, look, send
from dragoman.delivery.probe.asker import MOST_REQUESTS
from dragoman.dialects import DIALECTS
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.net import AddressRule, Client, NetError
from dragoman.ports.clock import SystemClock
from dragoman.sdk.client.settings import is_loopback

MAX_ANSWER: Final = 10 * 1024 * 1024


async def examine(url: str, output: Output, *, named: str | None, text: str | None, everything: bool) -> Examined:
    """Everything that can be found out about a URL, and with a text what comes of sending it."""
    clock = SystemClock()
    client = Client(clock=clock, rule=AddressRule.of(ANYWHERE, plain_http_anywhere=True))
    shown = WireLog(output)
    asked = 0

    async def fetch(request: HttpRequest, deadline: float, max_body: int = MAX_CARD) -> HttpReply:
        nonlocal asked
        asked += 1
        started = clock.monotonic()
        shown.show_request(request)
        reply = await client.send(request, deadline=deadline, max_body=max_body)
        shown.show_reply(reply, clock.monotonic() - started)
        return reply

    async def fetch_answer(request: HttpRequest, deadline: float) -> HttpReply:
        return await fetch(request, deadline, MAX_ANSWER)

    def waiting() -> str:
        return f"looking at {url}, request {asked} of at most {MOST_REQUESTS}"

    try:
        async with asyncio.TaskGroup() as group:
            bar = group.create_task(progress(clock, waiting, output))
            try:
                examined = await look(
                    url, fetch=fetch, dialects=DIALECTS, clock=clock, named=named, everything=everything
                )
                if text is not None:
                    examined = await send(text, examined, fetch=fetch_answer, dialects=DIALECTS, clock=clock)
            finally:
                bar.cancel()
    finally:
        await client.close()
    return examined


async def may_hub_call(url: str, hub_url: str) -> bool:
    """Whether a hub at that address may call this one, by its default settings."""
    allowed = ("loopback",) if is_loopback(hub_url) else ()
    client = Client(clock=SystemClock(), rule=AddressRule.of(allowed))
    try:
        await client.check(url)
    except NetError:
        return False
    finally:
        await client.close()
    return True
