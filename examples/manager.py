"""A manager that hands each task to the specialist it fits, and does the rest itself."""

import asyncio
from typing import Any

from dragoman import Agent, call_agent


class Manager(Agent):
    """Knows who is good at what."""

    def __init__(self) -> None:
        super().__init__("Manager", "Give each task to the right specialist.")
        self.specialists = {"search": "agt_archive", "summary": "agt_editor"}

    async def handle_task(self, task: str) -> Any:
        """The answer of the specialist that the task's words point to."""
        match await self.classify_task(task):
            case "search":
                return await call_agent(self.specialists["search"], "web_search", {"query": task, "max_results": 1})
            case "summary":
                return await call_agent(self.specialists["summary"], "summarize", {"content": task})
            case _:
                return "Nobody here knows about that."


async def main() -> None:
    manager = Manager()
    print(await manager.handle_task("search: tides"))
    print(await manager.handle_task("a summary please: The moon pulls the sea. The sun helps a little."))


asyncio.run(main())
