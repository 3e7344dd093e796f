"""The published client a2a-sdk 0.3.26, as its users use it: resolves a card, has its factory make a client, and talks.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. `--binding` is the
transport that it asks its factory for. Standard input has one step per line, standard output one line for each; `url`
is an agent's base, and a client is made there once:

    {"url": …, "do": "card"}                            {"cards": [the one its resolver gets]}
    {"url": …, "do": "send", "message": {…}}            {"events": […]}; with "wait": false it returns at once
    {"url": …, "do": "get" | "cancel", "id": …}         {"task": {…}}

Messages, tasks and cards are in the JSON of A2A 0.3. What the client raises is {"raised": its class, "code": that of
JSON-RPC or HTTP, "message": …}. Each line also has `asked`: method and path of every request made.
"""

import argparse
import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, A2AClientError, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import AgentCard, Message, MessageSendConfiguration, Task, TaskIdParams, TaskQueryParams

TIMEOUT_S = 40.0


class Session:
    """One transport, and the clients of the agents met so far."""

    def __init__(self, binding: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.asked: list[list[str]] = []
        self.http = httpx.AsyncClient(headers=headers, timeout=TIMEOUT_S, event_hooks={"request": [self.note]})
        self.factory = ClientFactory(
            ClientConfig(
                streaming=False, httpx_client=self.http, supported_transports=[binding], use_client_preference=True
            )
        )
        self.clients: dict[str, Client] = {}

    async def note(self, request: httpx.Request) -> None:
        """Remember one request."""
        self.asked.append([request.method, request.url.path])

    async def client(self, url: str) -> Client:
        """The client that talks to the agent there."""
        if url not in self.clients:
            card = await A2ACardResolver(self.http, url).get_agent_card()
            self.clients[url] = self.factory.create(card)
        return self.clients[url]

    async def step(self, step: dict) -> dict:
        """Carry out one step."""
        match step["do"]:
            case "card":
                card = await A2ACardResolver(self.http, step["url"]).get_agent_card()
                self.factory.create(card)
                return {"cards": [shown(card)]}
            case "send":
                return {"events": await self.send(step)}
            case "get":
                client = await self.client(step["url"])
                return {"task": shown(await client.get_task(TaskQueryParams(id=step["id"])))}
            case "cancel":
                client = await self.client(step["url"])
                return {"task": shown(await client.cancel_task(TaskIdParams(id=step["id"])))}
            case other:
                raise ValueError(f"there is no step {other!r}")

    async def send(self, step: dict) -> list[dict]:
        """Everything that the client yields for a message: tasks, or one message."""
        message = Message.model_validate(step["message"])
        how = MessageSendConfiguration(blocking=step.get("wait", True))
        client = await self.client(step["url"])
        events = [event async for event in client.send_message(message, configuration=how)]
        return [shown(event if isinstance(event, Message) else event[0]) for event in events]


def shown(value: AgentCard | Message | Task) -> dict:
    """An object of the SDK as JSON."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def raised(error: A2AClientError) -> dict:
    """What the client raised."""
    said = {"raised": type(error).__name__, "message": str(error)}
    if isinstance(error, A2AClientJSONRPCError):
        said |= {"code": error.error.code, "message": error.error.message}
    elif isinstance(error, A2AClientHTTPError):
        said["code"] = error.status_code
    return said


async def run(binding: str, token: str) -> None:
    """Every step, one after the other."""
    session = Session(binding, token)
    async with session.http:
        for line in sys.stdin:
            session.asked.clear()
            try:
                said = await session.step(json.loads(line))
            except A2AClientError as error:
                said = raised(error)
            print(json.dumps({**said, "asked": session.asked}), flush=True)


def main() -> None:
    """Talk until standard input ends."""
    parser = argparse.ArgumentParser(description="The published client of A2A 0.3.")
    parser.add_argument("--binding", choices=("JSONRPC", "HTTP+JSON"), required=True)
    parser.add_argument("--token", default="")
    asked = parser.parse_args()
    asyncio.run(run(asked.binding, asked.token))


if __name__ == "__main__":
    main()
