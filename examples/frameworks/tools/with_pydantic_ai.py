"""Skills as tools of an agent of pydantic-ai."""

import asyncio

from offline_pydantic_ai import model  # any model, or its name
from pydantic_ai import Agent

from dragoman import A2AClient


async def main() -> None:
    async with A2AClient() as client:
        agent = Agent(model, tools=await client.tools("pydantic-ai", skill="web_search"))
        print((await agent.run("What of tides?")).output)


asyncio.run(main())
