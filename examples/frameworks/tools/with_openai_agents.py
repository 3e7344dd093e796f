"""Skills as tools of an agent of the OpenAI Agents SDK."""

import asyncio

from agents import Agent, Runner
from offline_openai_agents import model  # any model, or its name

from dragoman import A2AClient


async def main() -> None:
    async with A2AClient() as client:
        agent = Agent("Reader", model=model, tools=await client.tools("openai-agents", skill="web_search"))
        print((await Runner.run(agent, "What of tides?")).final_output)


asyncio.run(main())
