"""An agent that asks back, and a caller that answers. The question survives a restart of either side."""

import asyncio

from dragoman import A2AClient, Agent, Context
from dragoman.errors import InputRequired

agent = Agent("Tailor")


@agent.skill
async def suit(color: str, ctx: Context) -> str:
    """Make a suit"""
    size = await ctx.ask("Which size?", int)
    return f"A {color} suit of size {size}"


async def main() -> None:
    await agent.connect()
    async with A2AClient() as client:
        try:
            await client.call(agent.id, "suit", {"color": "blue"})
        except InputRequired as question:
            print(question.message)
            print((await question.handle.send("48")).text)
    await agent.stop()


asyncio.run(main())
