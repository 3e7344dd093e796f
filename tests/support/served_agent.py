"""An agent for tests of agent servers, and the program that serves it: `-m tests.support.served_agent`.

What it does with a message is the message's own wish, as with the stubs in `speaking.py`. What `patient` was told it
writes into a folder, so that one life of the process can be compared with the next.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from dragoman.model.errors import AgentError
from dragoman.model.json import Json, is_object
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import Message
from dragoman.sdk.work.context import Context
from tests.support.speaking import FAILURE, QUESTION, wish_of

AGENT_ID = "terminal_bench_agent"
STREAMED = ("one ", "two ", "three")
DIARY = "TEST_AGENT_DIARY"


def _text_of(data: Json) -> str:
    """The words of an input object; callers of some dialects have no other way to say them."""
    return str(data.get("text", "")) if is_object(data) else ""


def make_agent() -> Agent:
    """The agent, anew."""
    agent = Agent(AGENT_ID, id=AGENT_ID, description="Does as it is told", version="2.1.0", tags=["test"])

    @agent.on_message
    async def chat(message: Message, ctx: Context) -> AsyncIterator[object]:
        """Says it again, or does what the words ask for"""
        text = message.text or _text_of(message.data)
        match wish_of(text):
            case "fail":
                raise AgentError(FAILURE)
            case "slow":
                await asyncio.Event().wait()
            case "ask":
                yield await ctx.ask(QUESTION, str)
            case "reject":
                ctx.refuse("not that")
            case _ if text == "stream":
                for word in STREAMED:
                    yield word
            case _ if text:
                yield text
            case _:
                yield list(message.parts)

    @agent.skill(idempotent=True, examples=[{"a": 1, "b": 2}])
    async def add(a: int, b: int = 0) -> dict[str, int]:
        """Adds two numbers"""
        return {"sum": a + b}

    @agent.skill(idempotent=True)
    async def patient(name: str, ctx: Context) -> dict[str, int]:
        """Writes down that it began, and ends once there is a file of that name"""
        diary = Path(os.environ[DIARY])
        with (diary / "begun").open("a") as book:
            book.write(f"{name} {ctx.call_id} {ctx.attempt}\n")
        while not (diary / name).exists():  # noqa: ASYNC110 - another process makes the file
            await asyncio.sleep(0.01)
        return {"attempt": ctx.attempt}

    return agent


served = make_agent()

if __name__ == "__main__":
    port, data, auth, register = [*sys.argv[1:], "", ""][:4]
    served.serve(port=int(port), data=data, auth=auth or None, register=register or None)
