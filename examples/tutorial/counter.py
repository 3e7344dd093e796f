import asyncio

from dragoman import Agent, Context

agent = Agent("Counter")


@agent.skill(idempotent=True)
async def count(to: int, ctx: Context) -> str:
    """Count to a number, one a second"""
    for number in range(1, to + 1):
        await ctx.stream(f"{number} ")
        await ctx.progress(number / to, f"{number} of {to}")
        await asyncio.sleep(1)
    return f"counted to {to}"
