"""An agent of CrewAI: its own card and its own way to carry out a task, in the application of the A2A SDK: it has none.

Its model, on CrewAI's own base, says what it heard.
"""

import os
import re
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from crewai import Agent, BaseLLM
from crewai.a2a import A2AServerConfig
from crewai.a2a.utils.task import cancel, execute
from serving import HOST, serve
from starlette.applications import Starlette

TASK = re.compile(r"Current Task: (.*?)\n\n", re.DOTALL)


class Repeater(BaseLLM):
    """Says which task it was given."""

    def call(self, messages: str | list[dict[str, Any]], *_: Any, **__: Any) -> str:
        """One turn."""
        heard = messages if isinstance(messages, str) else str(messages[-1]["content"])
        task = TASK.search(heard)
        return f"You said: {task[1] if task else heard}"

    async def acall(self, messages: str | list[dict[str, Any]], *_: Any, **__: Any) -> str:
        """The same, awaited."""
        return self.call(messages)


class Carrying(AgentExecutor):
    """Hands each message to CrewAI."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out one message."""
        await execute(self.agent, context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task."""
        await cancel(context, event_queue)


def application(port: int, _: str) -> Starlette:
    """The agent as an application."""
    agent = Agent(
        role="repeater",
        goal="Say what you heard.",
        backstory="You say what you hear.",
        llm=Repeater(model="repeater"),
        a2a=A2AServerConfig(),
    )
    handler = DefaultRequestHandler(agent_executor=Carrying(agent), task_store=InMemoryTaskStore())
    card = agent.to_agent_card(f"http://{HOST}:{port}")
    return A2AStarletteApplication(agent_card=card, http_handler=handler).build()


if __name__ == "__main__":
    serve("An agent of CrewAI.", ("JSONRPC",), application)
