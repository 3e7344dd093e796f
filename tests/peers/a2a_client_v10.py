"""The published client a2a-sdk 1.3.0, as its users use it: resolves a card, has its factory make a client, and talks.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. `--binding` is the
transport that it asks its factory for. Standard input has one step per line, standard output one line for each; `url`
is an agent's base, and a client is made there once:

    {"url": …, "do": "card"}                            {"cards": the one its resolver gets, the one its factory gets}
    {"url": …, "do": "send", "message": {…}}            {"events": […]}; with "wait": false it returns at once, with
                                                        "push": {…} it says where the task is told of
    {"url": …, "do": "get" | "cancel", "id": …}         {"task": {…}}
    {"url": …, "do": "list", "context": …}              {"listed": {…}}
    {"url": …, "do": "stream", "message": {…}}          {"events": […]}, by a client that asks for streams
    {"url": …, "do": "subscribe", "id": …}              {"events": […]}, by such a client; it cancels at the first one
    {"url": …, "do": "watch", "id": …}                  {"events": […]}, by such a client, to the end
    {"url": …, "do": "push", "config": {…}}             {"configs": created, read, listed, and listed once deleted};
                                                        with "keep": true only the first two
    {"do": "notice", "body": {…}}                       {"notice": what the SDK reads in the body of a notification}

With "live": true `stream` and `watch` also tell of each event as it comes, in a line of its own: {"event": {…}}.

Messages, tasks and cards are in the JSON of A2A 1.0, whichever version is on the wire. What the client raises is
{"raised": its class, "message": …}. Each line also has `asked`: method, path and A2A-Version of every request made.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
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
        self.factory = self.clients_of(streaming=False)
        self.streaming = self.clients_of(streaming=True)
        self.clients: dict[tuple[str, bool], Client] = {}

    def clients_of(self, *, streaming: bool) -> ClientFactory:
        """What makes the clients, of those that ask for streams or of those that do not."""
        return ClientFactory(
            ClientConfig(
                streaming=streaming,
                httpx_client=self.http,
                supported_protocol_bindings=[self.binding],
                use_client_preference=True,
            )
        )

    def connection(self) -> httpx.AsyncClient:
        """An HTTP client whose requests are noted."""
        return httpx.AsyncClient(headers=self.headers, timeout=TIMEOUT_S, event_hooks={"request": [self.note]})

    async def note(self, request: httpx.Request) -> None:
        """Remember one request."""
        self.asked.append([request.method, request.url.path, request.headers.get("A2A-Version")])

    async def client(self, url: str, *, streaming: bool = False) -> Client:
        """The client that talks to the agent there."""
        if (url, streaming) not in self.clients:
            factory = self.streaming if streaming else self.factory
            self.clients[url, streaming] = await factory.create_from_url(url)
        return self.clients[url, streaming]

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
            case "stream":
                client = await self.client(step["url"], streaming=True)
                request = SendMessageRequest(message=ParseDict(step["message"], Message()))
                return await told(client.send_message(request), step)
            case "watch":
                client = await self.client(step["url"], streaming=True)
                return await told(client.subscribe(SubscribeToTaskRequest(id=step["id"])), step)
            case "subscribe":
                return {"events": await self.subscribe(step)}
            case "push":
                return {"configs": await self.push(step)}
            case "notice":
                return {"notice": MessageToDict(ParseDict(step["body"], StreamResponse()))}
            case other:
                raise ValueError(f"there is no step {other!r}")

    async def subscribe(self, step: dict) -> list[dict]:
        """What a subscriber sees of a task that is cancelled as soon as it sees it."""
        client = await self.client(step["url"], streaming=True)
        events = []
        async for event in client.subscribe(SubscribeToTaskRequest(id=step["id"])):
            if not events:
                await client.cancel_task(CancelTaskRequest(id=step["id"]))
            events.append(MessageToDict(event))
        return events

    async def push(self, step: dict) -> list[dict]:
        """A config of a task, made, looked at, and taken away again."""
        client, config = await self.client(step["url"]), ParseDict(step["config"], TaskPushNotificationConfig())
        made = await client.create_task_push_notification_config(config)
        named = {"task_id": config.task_id, "id": made.id}
        read = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**named))
        if step.get("keep"):
            return [MessageToDict(each) for each in (made, read)]
        every = ListTaskPushNotificationConfigsRequest(task_id=config.task_id)
        listed = await client.list_task_push_notification_configs(every)
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named))
        left = await client.list_task_push_notification_configs(every)
        return [MessageToDict(each) for each in (made, read, listed, left)]

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
        if "push" in step:
            ParseDict(step["push"], request.configuration.task_push_notification_config)
        client = await self.client(step["url"])
        return [MessageToDict(event) async for event in client.send_message(request)]


async def told(events: AsyncIterator[StreamResponse], step: dict) -> dict:
    """What a stream brought, each event as it came where the step wants that."""
    found = []
    async for event in events:
        found.append(MessageToDict(event))
        if step.get("live"):
            print(json.dumps({"event": found[-1]}), flush=True)
    return {"events": found}


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
