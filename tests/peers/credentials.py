"""What a client of any a2a-sdk does here with a credential of its own: its words on the command line, and a token.

    python PROGRAM URL SCHEME KEY        one message; prints {"state": …} or {"raised": …}

The SDKs fetch no tokens: for `oauth2` a program gets one, at the token URL of the card, as its users do. Programs
beside this file import it and hand in what is their SDK's own; it imports no SDK, and nothing of Dragoman.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable

import httpx

TIMEOUT_S = 40.0

Told = Callable[[httpx.AsyncClient, str, str, str], Awaitable[dict[str, str]]]


async def token(http: httpx.AsyncClient, token_url: str, key: str) -> str:
    """An access token."""
    form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
    answer = await http.post(token_url, data=form)
    return answer.raise_for_status().json()["access_token"]


def tell(told: Told) -> None:
    """Say what came of one message."""

    async def asked() -> dict[str, str]:
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
            return await told(http, *sys.argv[1:])

    print(json.dumps(asyncio.run(asked())))
