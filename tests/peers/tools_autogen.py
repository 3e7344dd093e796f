"""An assistant of AutoGen with skills as its tools. The model needs no network."""

import json
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}
NOTHING = RequestUsage(prompt_tokens=0, completion_tokens=0)


class Model(ChatCompletionClient):
    """Calls one tool after the other."""

    calls = 0

    async def create(self, messages: Any, *, tools: Any = (), **_: Any) -> CreateResult:
        for tool in tools:
            SHOWN[tool["name"]] = tool["parameters"]
        content: Any = DONE
        if self.calls < len(CALLS):
            name, arguments = CALLS[self.calls]
            self.calls += 1
            content = [FunctionCall(id=str(self.calls), name=name, arguments=json.dumps(arguments))]
        return CreateResult(finish_reason="stop", content=content, usage=NOTHING, cached=False)

    def create_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=False, family="offline", structured_output=False
        )

    capabilities = model_info

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return NOTHING

    def total_usage(self) -> RequestUsage:
        return NOTHING

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1000


async def work(tools: list[Any]) -> Any:
    agent = AssistantAgent("reader", model_client=Model(), tools=tools, max_tool_iterations=10)
    done = await agent.run(task="Go")
    events = [message for message in done.messages if isinstance(message, ToolCallExecutionEvent)]
    heard = [result.content for event in events for result in event.content]
    return SHOWN, heard, done.messages[-1].content


play("autogen", work)
