"""The published client a2a-sdk 0.3.26, as its users use it: resolves a card, has its factory make a client, and talks.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. `--binding` is the
transport that it asks its factory for. Standard input has one step per line, standard output one line for each; `url`
is an agent's base, and a client is made there once:

    {"url": …, "do": "card"}                            {"cards": [the one its resolver gets]}
    {"url": …, "do": "send", "message": {…}}            {"events": […]}; with "wait": false it returns at once, with
                                                        "push": {…} it says where the task is told of
    {"url": …, "do": "get" | "cancel", "id": …}         {"task": {…}}
    {"url": …, "do": "stream", "message": {…}}          {"events": […], "task": as the client put it together}
    {"url": …, "do": "subscribe", "id": …}              the same
    {"url": …, "do": "push", "config": {…}}             {"configs": set, and read}
    {"do": "notice", "body": {…}}                       {"notice": what the SDK reads in the body of a notification}

With "live": true `stream` and `subscribe` also tell of each event as it comes, in a line of its own: {"event": {…}}.

Messages, tasks and cards are in the JSON of A2A 0.3. What the client raises is {"raised": its class, "code": that of
JSON-RPC or HTTP, "message": …}. Each line also has `asked`: method and path of every request made.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator

import httpx
from a2a.client import A2ACardResolver, A2AClientError, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    AgentCard,
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    PushNotificationConfig,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskStatusUpdateEvent,
)

TIMEOUT_S = 40.0


class Session:
    """One transport, and the clients of the agents met so far."""

    def __init__(self, binding: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.asked: list[list[str]] = []
        self.http = httpx.AsyncClient(headers=headers, timeout=TIMEOUT_S, event_hooks={"request": [self.note]})
        self.binding = binding
        self.factory = self.clients_of(streaming=False)
        self.streaming = self.clients_of(streaming=True)
        self.clients: dict[tuple[str, bool], Client] = {}

    def clients_of(self, *, streaming: bool, push: list[PushNotificationConfig] | None = None) -> ClientFactory:
        """What makes the clients: those that ask for streams, or to be told of their tasks, or neither."""
        return ClientFactory(
            ClientConfig(
                streaming=streaming,
                httpx_client=self.http,
                supported_transports=[self.binding],
                use_client_preference=True,
                push_notification_configs=push or [],
            )
        )

    async def note(self, request: httpx.Request) -> None:
        """Remember one request."""
        self.asked.append([request.method, request.url.path])

    async def client(self, url: str, *, streaming: bool = False) -> Client:
        """The client that talks to the agent there."""
        if (url, streaming) not in self.clients:
            card = await A2ACardResolver(self.http, url).get_agent_card()
            self.clients[url, streaming] = (self.streaming if streaming else self.factory).create(card)
        return self.clients[url, streaming]

    async def told_client(self, step: dict) -> Client:
        """A client that has its tasks told of, which is a matter of its configuration."""
        push = [PushNotificationConfig.model_validate(step["push"])]
        card = await A2ACardResolver(self.http, step["url"]).get_agent_card()
        return self.clients_of(streaming=False, push=push).create(card)

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
            case "stream":
                client = await self.client(step["url"], streaming=True)
                return await streamed(client.send_message(Message.model_validate(step["message"])), step)
            case "subscribe":
                client = await self.client(step["url"], streaming=True)
                return await streamed(client.resubscribe(TaskIdParams(id=step["id"])), step)
            case "push":
                return {"configs": await self.push(step)}
            case "notice":
                return {"notice": shown(Task.model_validate(step["body"]))}
            case other:
                raise ValueError(f"there is no step {other!r}")

    async def push(self, step: dict) -> list[dict]:
        """A config of a task, set and looked at; this client can neither list nor delete."""
        client, config = await self.client(step["url"]), TaskPushNotificationConfig.model_validate(step["config"])
        kept = await client.set_task_callback(config)
        named = {"id": config.task_id, "push_notification_config_id": kept.push_notification_config.id}
        read = await client.get_task_callback(GetTaskPushNotificationConfigParams(**named))
        return [shown(kept), shown(read)]

    async def send(self, step: dict) -> list[dict]:
        """Everything that the client yields for a message: tasks, or one message."""
        message = Message.model_validate(step["message"])
        how = MessageSendConfiguration(blocking=step.get("wait", True))
        client = await (self.told_client(step) if "push" in step else self.client(step["url"]))
        events = [event async for event in client.send_message(message, configuration=how)]
        return [shown(event if isinstance(event, Message) else event[0]) for event in events]


async def streamed(events: AsyncIterator, step: dict) -> dict:
    """What a stream brought, each event as it came if the step wants that, and the task that the client made of it."""
    found, task = [], None
    async for task, update in events:
        found.append(shown(update or task))
        if step.get("live"):
            print(json.dumps({"event": found[-1]}), flush=True)
    return {"events": found, "task": shown(task)}


Shown = AgentCard | Message | Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent | TaskPushNotificationConfig


def shown(value: Shown) -> dict:
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
