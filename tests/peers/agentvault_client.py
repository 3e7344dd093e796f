"""The published client agentvault 0.2.1, as its users use it: it loads a card and carries out what it is told.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. Its key comes from the
environment, AGENTVAULT_KEY_DRAGOMAN, or the two of an OAuth client. Where a card has a scheme that takes a key, this
client wants one and looks no further: a second argument names the one scheme that the card keeps.
Standard input has one step per line, standard output one line for each:

    {"do": "card"}                                  the card as the client has read it
    {"do": "send", "parts": […], "mcp": {…}}        {"id": …}
    {"do": "say", "id": …, "parts": […]}            {"sent": true}
    {"do": "get", "id": …}, {"do": "wait", "id": …} the task; wait: once it is neither SUBMITTED nor WORKING
    {"do": "cancel", "id": …}                       {"canceled": true}
    {"do": "listen", "id": …}                       {"events": […]}, once the stream has ended

In place of `id`, the last task is meant. What the client raises is {"raised": its class, "code": …, "message": …}.
"""

import asyncio
import json
import sys
import time

from agentvault import AgentVaultClient, KeyManager
from agentvault.agent_card_utils import fetch_agent_card_from_url
from agentvault.exceptions import AgentVaultError
from agentvault.models import Message, TaskState

PATIENCE_S = 20.0
OPEN = (TaskState.SUBMITTED, TaskState.WORKING)


class Session:
    """One card, and the tasks of its agent."""

    def __init__(self, client: AgentVaultClient, keys: KeyManager, url: str, scheme: str | None) -> None:
        self.scheme = scheme
        self.client = client
        self.keys = keys
        self.url = url
        self.card = None
        self.last = ""

    async def step(self, step: dict) -> dict:
        """Carry out one step."""
        if self.card is None:
            self.card = await fetch_agent_card_from_url(self.url)
            if self.scheme is not None:
                self.card.auth_schemes = [each for each in self.card.auth_schemes if each.scheme == self.scheme]
        task_id = step.get("id", self.last)
        match step["do"]:
            case "card":
                return self.card.model_dump(mode="json", by_alias=True, exclude_none=True)
            case "send":
                message = Message(role="user", parts=step["parts"], metadata=step.get("metadata"))
                self.last = await self.client.initiate_task(
                    self.card, message, self.keys, mcp_context=step.get("mcp"), webhook_url=step.get("webhook")
                )
                return {"id": self.last}
            case "say":
                message = Message(role="user", parts=step["parts"])
                return {"sent": await self.client.send_message(self.card, task_id, message, self.keys)}
            case "get":
                return await self.shown(task_id)
            case "wait":
                return await self.settled(task_id)
            case "cancel":
                return {"canceled": await self.client.terminate_task(self.card, task_id, self.keys)}
            case "listen":
                events = [
                    event.model_dump(mode="json", by_alias=True, exclude_none=True)
                    async for event in self.client.receive_messages(self.card, task_id, self.keys)
                ]
                return {"events": events}
            case other:
                raise ValueError(f"there is no step {other!r}")

    async def shown(self, task_id: str) -> dict:
        """The task as the client's model has it."""
        task = await self.client.get_task_status(self.card, task_id, self.keys)
        return task.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def settled(self, task_id: str) -> dict:
        """The task once it is done or asks."""
        until = time.monotonic() + PATIENCE_S
        while True:
            task = await self.client.get_task_status(self.card, task_id, self.keys)
            if task.state not in OPEN or time.monotonic() > until:
                return task.model_dump(mode="json", by_alias=True, exclude_none=True)
            await asyncio.sleep(0.02)


async def run(url: str, scheme: str | None = None) -> None:
    """Every step, one after the other."""
    async with AgentVaultClient(default_timeout=20.0) as client:
        session = Session(client, KeyManager(use_keyring=False), url, scheme)
        for line in sys.stdin:
            try:
                said = await session.step(json.loads(line))
            except AgentVaultError as error:
                said = {"raised": type(error).__name__, "code": getattr(error, "status_code", None)}
                said["message"] = str(error)
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:3]))
