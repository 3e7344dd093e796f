"""A file by its link: one that the hub hosts wherever the hub is, any other only from a public address, by https.

An answer is a stranger's word: it must not make this machine ask its own network for something. No credential goes
along; the hub's links are signed.
"""

import asyncio
from typing import Final
from urllib.parse import urlsplit

from dragoman.cli.exchange import ANYWHERE
from dragoman.cli.fault import Fault
from dragoman.cli.hub import Hub
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.net import AddressRule, Client, ClientLimits, NetError
from dragoman.ports.clock import SystemClock
from dragoman.sdk.client.settings import is_loopback

WAIT_S: Final = 60.0
MOST_BYTES: Final = 256 * 1024 * 1024
HOSTED: Final = "/files/"


def fetched(hub: Hub | None, uri: str) -> bytes:
    """The bytes behind a link. Raises Fault."""
    link = urlsplit(uri)
    rule = AddressRule.of()
    if hub is not None and link.path.startswith(HOSTED) and _is_at(hub, uri):
        # The hub's public name may be one that only its operator's machines know.
        uri = f"{hub.url}{link.path}?{link.query}"
        rule = AddressRule.of(ANYWHERE, plain_http_anywhere=True)
    elif link.scheme != "https":
        raise Fault(f"the answer's file lies at {uri}", next="fetch it yourself, if you trust the agent")
    try:
        reply = asyncio.run(_fetch(HttpRequest(method="GET", url=uri, headers={}, body=b""), rule))
    except NetError as error:
        raise Fault(f"{uri} could not be fetched ({error.kind.value})", next="fetch it yourself") from error
    if reply.status != 200:
        raise Fault(f"{uri} answered with HTTP {reply.status}", next="call again: links hold for some hours")
    return reply.body


def _is_at(hub: Hub, uri: str) -> bool:
    ours, its = urlsplit(hub.url), urlsplit(uri)
    same = ours.hostname == its.hostname or (is_loopback(hub.url) and is_loopback(uri))
    return same and ours.port == its.port


async def _fetch(request: HttpRequest, rule: AddressRule) -> HttpReply:
    clock = SystemClock()
    client = Client(clock=clock, rule=rule, limits=ClientLimits())
    try:
        return await client.send(request, deadline=clock.monotonic() + WAIT_S, max_body=MOST_BYTES)
    finally:
        await client.close()
