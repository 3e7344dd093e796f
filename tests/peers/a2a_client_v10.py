"""The published client a2a-sdk 1.3.0, as its users use it: resolves a card, has its factory make a client, and talks.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. `--binding` is the
transport that it asks its factory for. Standard input has one step per line, standard output one line for each; `url`
is an agent's base, and a client is made there once:

    {"url": …, "do": "card"}                            {"cards": the one its resolver gets, the one its factory gets}
    {"url": …, "do": "send", "message": {…}}            {"events": […]}; with "wait": false it returns at once
    {"url": …, "do": "get" | "cancel", "id": …}         {"task": {…}}
    {"url": …, "do": "list", "context": …}              {"listed": {…}}

Messages, tasks and cards are in the JSON of A2A 1.0, whichever version is on the wire. What the client raises is
{"raised": its class, "message": …}. Each line also has `asked`: method, path and A2A-Version of every request made.
"""

import argparse
import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict

TIMEOUT_S = 40.0


class Session:
    """One transport, and the clients of the agents met so far."""

    def __init__(self, binding: str, token: str) -> None:
        self.binding = binding
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.asked: list[list[str | None]] = []
        self.http = self.connection()
        self.factory = ClientFactory(
            ClientConfig(
                streaming=False,
                httpx_client=self.http,
                supported_protocol_bindings=[binding],
                use_client_preference=True,
            )
        )
        self.clients: dict[str, Client] = {}

    def connection(self) -> httpx.AsyncClient:
        """An HTTP client whose requests are noted."""
        return httpx.AsyncClient(headers=self.headers, timeout=TIMEOUT_S, event_hooks={"request": [self.note]})

    async def note(self, request: httpx.Request) -> None:
        """Remember one request."""
        self.asked.append([request.method, request.url.path, request.headers.get("A2A-Version")])

    async def client(self, url: str) -> Client:
        """The client that talks to the agent there."""
        if url not in self.clients:
            self.clients[url] = await self.factory.create_from_url(url)
        return self.clients[url]

    async def step(self, step: dict) -> dict:
        """Carry out one step."""
        match step["do"]:
            case "card":
                return {"cards": await self.cards(step["url"])}
            case "send":
                return {"events": await self.send(step)}
            case "get":
                client = await self.client(step["url"])
                return {"task": MessageToDict(await client.get_task(GetTaskRequest(id=step["id"])))}
            case "cancel":
                client = await self.client(step["url"])
                return {"task": MessageToDict(await client.cancel_task(CancelTaskRequest(id=step["id"])))}
            case "list":
                client = await self.client(step["url"])
                request = ListTasksRequest(context_id=step["context"], page_size=10, include_artifacts=True)
                return {"listed": MessageToDict(await client.list_tasks(request))}
            case other:
                raise ValueError(f"there is no step {other!r}")

    async def cards(self, url: str) -> list[dict]:
        """The card by a resolver of its own, which names no version, and by the factory's connection, which does."""
        async with self.connection() as plain:
            resolved = [await A2ACardResolver(each, url).get_agent_card() for each in (plain, self.http)]
        for card in resolved:
            self.factory.create(card)
        return [MessageToDict(card) for card in resolved]

    async def send(self, step: dict) -> list[dict]:
        """Everything that the client yields for a message."""
        request = SendMessageRequest(
            message=ParseDict(step["message"], Message()),
            configuration=SendMessageConfiguration(return_immediately=not step.get("wait", True)),
        )
        client = await self.client(step["url"])
        return [MessageToDict(event) async for event in client.send_message(request)]


async def run(binding: str, token: str) -> None:
    """Every step, one after the other."""
    session = Session(binding, token)
    async with session.http:
        for line in sys.stdin:
            session.asked.clear()
            try:
                said = await session.step(json.loads(line))
            except (A2AError, NotImplementedError) as error:
                said = {"raised": type(error).__name__, "message": str(error)}
            print(json.dumps({**said, "asked": session.asked}), flush=True)


def main() -> None:
    """Talk until standard input ends."""
    parser = argparse.ArgumentParser(description="The published client of A2A 1.0.")
    parser.add_argument("--binding", choices=("JSONRPC", "HTTP+JSON"), required=True)
    parser.add_argument("--token", default="")
    asked = parser.parse_args()
    asyncio.run(run(asked.binding, asked.token))


if __name__ == "__main__":
    main()
