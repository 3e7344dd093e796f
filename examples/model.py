"""An agent whose work a model does, with a tool; here a scripted model, so that it needs no key."""

import asyncio

from dragoman import Agent, models, tool


@tool
async def population(city: str) -> int:
    """Inhabitants of a city"""
    return {"Oslo": 709_000}.get(city, 0)


# models.chat_completions("http://127.0.0.1:11434/v1", "llama3.1") would be a real one.
model = models.scripted(
    [models.ToolCall(name="population", arguments={"city": "Oslo"}), "Oslo has 709,000 inhabitants."]
)
guide = Agent("Guide", "Answer with figures.", tools=[population], model=model)


async def main() -> None:
    answer = await guide.run("How many people live in Oslo?")
    print(answer.content)


asyncio.run(main())
