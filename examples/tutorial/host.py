from dragoman import Agent, Context
from dragoman.orchestrate import Step, fan_out

agent = Agent("Host")


@agent.skill
async def welcome(guests: list[str], ctx: Context) -> list[str]:
    """Greet many people at once"""
    await ctx.progress(0.0, f"{len(guests)} guests")
    greetings = await fan_out([Step(skill="greet", input={"name": guest}) for guest in guests])
    return [greeting.text for greeting in greetings]
