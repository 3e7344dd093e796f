"""An agent of CrewAI with skills as its tools. The model needs no network."""

import json
from typing import Any

from crewai import Agent, BaseLLM
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}
HEARD: list[str] = []


class Model(BaseLLM):
    """Calls one tool after the other."""

    def call(self, messages: Any, tools: Any = None, **_: Any) -> Any:
        for tool in tools or ():
            SHOWN[tool["function"]["name"].replace("archive_", "archive__")] = tool["function"]["parameters"]
        HEARD[:] = [message["content"] for message in messages if message.get("role") == "tool"]
        if len(HEARD) == len(CALLS):
            return DONE
        name, arguments = CALLS[len(HEARD)]
        return [
            {"id": str(len(HEARD)), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        ]

    async def acall(self, messages: Any, tools: Any = None, **_: Any) -> Any:
        return self.call(messages, tools)

    def supports_function_calling(self) -> bool:
        return True


def work(tools: list[Any]) -> Any:
    agent = Agent(role="Reader", goal="Read", backstory="Reads.", llm=Model(model="offline"), tools=tools)
    return SHOWN, HEARD, agent.kickoff("Go").raw


async def await_it(tools: list[Any]) -> Any:
    agent = Agent(role="Reader", goal="Read", backstory="Reads.", llm=Model(model="offline"), tools=tools)
    return SHOWN, HEARD, (await agent.kickoff_async("Go")).raw


play("crewai", work)
play("crewai", await_it)
