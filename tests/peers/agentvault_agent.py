"""An agent built with the published agentvault-server-sdk 0.1.1, as a stranger would write it.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. JSON-RPC is at `/a2a/`,
its card, which leaves the final slash out as published ones do, at `/agent-card.json`. Prints `ready` once it listens.

What it does is what the first text says: `fail`, `crash` (the SDK's own error handlers answer), `slow` (until it is
cancelled), `ask` (a question, whose answer it repeats), `tell` (two messages, once somebody has subscribed); anything
else is repeated in a message of role assistant and in an artifact. Its streams tell what happens from then on, as the
SDK's store of tasks hands it out: of a task that is over they never say a word.

`--protect apiKey` wants PEER_SECRET in X-Api-Key, `--protect oauth2` a token of `/token`, which gives one to the client
`peer` with PEER_SECRET. `/seen` counts the tokens given and the requests refused.
"""

import argparse
import asyncio
import os
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs

import uvicorn
from agentvault.models import A2AEvent, Artifact, Message, Task, TaskState, TaskStatusUpdateEvent, TextPart
from agentvault_server_sdk import BaseA2AAgent, create_a2a_router
from agentvault_server_sdk.exceptions import AgentServerError, TaskNotFoundError
from agentvault_server_sdk.fastapi_integration import (
    agent_server_error_handler,
    generic_exception_handler,
    task_not_found_handler,
    validation_exception_handler,
)
from agentvault_server_sdk.state import TERMINAL_STATES, InMemoryTaskStore
from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import ValidationError

HOST = "127.0.0.1"


class Echo(BaseA2AAgent):
    """Gives back what it was told."""

    def __init__(self, store: InMemoryTaskStore) -> None:
        super().__init__({"name": "echo"})
        self.store = store
        self.messages: dict[str, list[Message]] = {}
        self.artifacts: dict[str, list[Artifact]] = {}
        self.works: set[asyncio.Task] = set()
        self.heard: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)  # set once somebody subscribes

    async def handle_task_send(self, task_id: str | None, message: Message) -> str:
        """Take a message, and work on it in the background."""
        continued = task_id is not None
        if task_id is None:
            task_id = f"task-{uuid.uuid4()}"
            await self.store.create_task(task_id)
            self.messages[task_id], self.artifacts[task_id] = [], []
        elif await self.store.get_task(task_id) is None:
            raise TaskNotFoundError(task_id)
        first = message.parts[0]
        wish = first.content if isinstance(first, TextPart) and not continued else ""
        if wish == "crash":
            raise AgentServerError("it crashed")
        self.messages[task_id].append(message)
        work = asyncio.create_task(self.work(task_id, message, wish))
        self.works.add(work)
        work.add_done_callback(self.works.discard)
        return task_id

    async def work(self, task_id: str, message: Message, wish: str) -> None:
        """Carry out one message."""
        await self.store.update_task_state(task_id, TaskState.WORKING)
        if wish == "slow":
            return
        if wish == "fail":
            self.say(task_id, [TextPart(content="This agent always fails.")])
            await self.store.update_task_state(task_id, TaskState.FAILED)
        elif wish == "tell":
            await self.heard[task_id].wait()
            for words in ("one", "two"):
                self.say(task_id, [TextPart(content=words)])
                await self.store.notify_message_event(task_id, self.messages[task_id][-1])
                await asyncio.sleep(0.2)  # it thinks
            await self.store.update_task_state(task_id, TaskState.COMPLETED)
        elif wish == "ask":
            self.say(task_id, [TextPart(content="What should I echo?")])
            await self.store.update_task_state(task_id, TaskState.INPUT_REQUIRED)
        else:
            self.say(task_id, message.parts)
            content = message.model_dump(mode="json", by_alias=True)
            self.artifacts[task_id].append(
                Artifact(id="a1", type="echo", content=content, mediaType="application/json")
            )
            await self.store.update_task_state(task_id, TaskState.COMPLETED)

    def say(self, task_id: str, parts: list) -> None:
        """Add a turn."""
        self.messages[task_id].append(Message(role="assistant", parts=parts))

    async def handle_subscribe_request(self, task_id: str) -> AsyncGenerator[A2AEvent, None]:
        """What happens from now on."""
        happening: asyncio.Queue[A2AEvent] = asyncio.Queue()
        await self.store.add_listener(task_id, happening)
        self.heard[task_id].set()
        try:
            while True:
                event = await happening.get()
                yield event
                if isinstance(event, TaskStatusUpdateEvent) and event.state in TERMINAL_STATES:
                    return
        finally:
            await self.store.remove_listener(task_id, happening)

    async def handle_task_get(self, task_id: str) -> Task:
        """The task as it is."""
        known = await self.store.get_task(task_id)
        if known is None:
            raise TaskNotFoundError(task_id)
        return Task(
            id=task_id,
            state=known.current_state,
            createdAt=known.created_at,
            updatedAt=known.updated_at,
            messages=self.messages[task_id],
            artifacts=self.artifacts[task_id],
        )

    async def handle_task_cancel(self, task_id: str) -> bool:
        """Stop it."""
        known = await self.store.get_task(task_id)
        if known is None:
            raise TaskNotFoundError(task_id)
        if known.current_state in TERMINAL_STATES:
            return False
        return await self.store.update_task_state(task_id, TaskState.CANCELED) is not None


class AnnouncedServer(uvicorn.Server):
    """Prints `ready` when the socket listens."""

    async def startup(self, sockets: list | None = None) -> None:
        """Start listening, then say so."""
        await super().startup(sockets)
        if self.started:
            print("ready", flush=True)


class Guard:
    """Who may call: everybody, or who shows the key or a token."""

    def __init__(self, protect: str, service: str) -> None:
        self.protect = protect
        self.service = service
        self.secret = os.environ.get("PEER_SECRET", "")
        self.tokens: list[str] = []
        self.refused = 0

    def schemes(self, port: int) -> list[dict]:
        """What the card says of it."""
        if self.protect == "none":
            return [{"scheme": "none", "description": "Nothing is needed."}]
        scheme = {"scheme": self.protect, "service_identifier": self.service}
        if self.protect == "oauth2":
            scheme |= {"tokenUrl": f"http://localhost:{port}/token", "scopes": ["echo"]}
        return [scheme]

    def __call__(self, request: Request) -> None:
        """Let a request pass, or answer 401."""
        key, bearer = request.headers.get("x-api-key"), request.headers.get("authorization", "")
        right = {"none": True, "apiKey": key == self.secret, "oauth2": bearer.removeprefix("Bearer ") in self.tokens}
        if not right[self.protect]:
            self.refused += 1
            raise HTTPException(status_code=401, detail="Not authenticated")

    def token(self, form: dict) -> dict:
        """A token for the one client."""
        if (form.get("client_id"), form.get("client_secret")) != (["peer"], [self.secret]):
            raise HTTPException(status_code=401, detail="invalid_client")
        self.tokens.append(str(uuid.uuid4()))
        return {"access_token": self.tokens[-1], "token_type": "bearer", "expires_in": 3600}


def card(port: int, guard: Guard) -> dict:
    """The card of an agent that has one skill, `echo`."""
    return {
        "schemaVersion": "1.0",
        "humanReadableId": "peers/echo",
        "agentVersion": "0.1.0",
        "name": "Echo",
        "description": "Gives back what it is told.",
        "url": f"http://localhost:{port}/a2a",
        "provider": {"name": "Peers"},
        "capabilities": {"a2aVersion": "1.0", "supportedMessageParts": ["text", "file", "data"]},
        "authSchemes": guard.schemes(port),
        "skills": [{"id": "echo", "name": "Echo", "description": "Gives back the parts of the message."}],
        "tags": ["echo", "test"],
    }


def application(port: int, guard: Guard) -> FastAPI:
    """Card and JSON-RPC endpoint as the SDK makes them."""
    app = FastAPI()
    store = InMemoryTaskStore()
    router = create_a2a_router(Echo(store), prefix="/a2a", task_store=store)
    app.include_router(router, dependencies=[Depends(guard)])
    app.add_exception_handler(TaskNotFoundError, task_not_found_handler)
    app.add_exception_handler(ValidationError, validation_exception_handler)
    app.add_exception_handler(AgentServerError, agent_server_error_handler)
    app.add_exception_handler(Exception, generic_exception_handler)

    @app.get("/agent-card.json")
    async def show_card() -> dict:
        return card(port, guard)

    @app.post("/token")
    async def give_token(request: Request) -> dict:
        return guard.token(parse_qs((await request.body()).decode()))

    @app.get("/seen")
    async def show_seen() -> dict:
        return {"tokens": len(guard.tokens), "refused": guard.refused}

    return app


def end_with_parent() -> None:
    """Leave when standard input closes: a killed test run leaves no agent behind."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Echo agent on the published AgentVault server SDK.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    parser.add_argument("--protect", choices=("none", "apiKey", "oauth2"), default="none")
    parser.add_argument("--service", default="peers-echo", help="the name under which its key is kept")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    app = application(asked.port, Guard(asked.protect, asked.service))
    AnnouncedServer(uvicorn.Config(app, host=HOST, port=asked.port, log_level="warning")).run()


if __name__ == "__main__":
    main()
