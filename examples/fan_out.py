"""Many calls at once, and one that works on all their answers. One that fails does not take the others with it."""

import asyncio

from dragoman.errors import DragomanError
from dragoman.orchestrate import Step, fan_out

TOPICS = ("tides", "rivers", "moon")


async def main() -> None:
    found = await fan_out(
        [Step(skill="web_search", input={"query": topic, "max_results": 1}) for topic in TOPICS],
        limit=8,
        on_error="collect",
    )
    for topic, answer in zip(TOPICS, found, strict=True):
        if isinstance(answer, DragomanError):
            print(f"{topic}: {answer}")
        else:
            print(f"{topic}: {answer['results'][0]['title']}")


asyncio.run(main())
