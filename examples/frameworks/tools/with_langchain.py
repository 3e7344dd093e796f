"""Skills as tools of an agent of LangChain."""

import asyncio

from langchain.agents import create_agent
from offline_langchain import model  # any chat model

from dragoman import A2AClient


async def main() -> None:
    async with A2AClient() as client:
        agent = create_agent(model, tools=await client.tools("langchain", skill="web_search"))
        done = await agent.ainvoke({"messages": [("user", "What of tides?")]})
        print(done["messages"][-1].content)


asyncio.run(main())
