"""An agent that answers piece by piece, and a caller that reads along. Run it while `dragoman dev` runs."""

import asyncio

from dragoman import A2AClient, Agent, Context

agent = Agent("Storyteller")


@agent.skill
async def tell(about: str, ctx: Context):
    """Tell a story in pieces"""
    pieces = ["Once upon a time ", f"there was {about}, ", "and it lived happily."]
    for done, piece in enumerate(pieces, 1):
        yield piece
        await ctx.progress(done / len(pieces), f"{done} of {len(pieces)}")


async def main() -> None:
    await agent.connect()
    async with A2AClient() as client:
        async for event in client.stream(agent.id, "tell", {"about": "a tide"}):
            if event.type == "chunk":
                print(event.content, end="", flush=True)
        print()
    await agent.stop()


asyncio.run(main())
