"""A chat model that needs no network: it calls the tool it is given, and says what it heard."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Offline(BaseChatModel):
    tool: str = ""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Any, **_: Any) -> "Offline":
        return self.model_copy(update={"tool": tools[0].name})

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        call = {"name": self.tool, "args": {"query": "tides"}, "id": "1", "type": "tool_call"}
        answer = AIMessage("", tool_calls=[call])
        if messages[-1].type == "tool":
            answer = AIMessage(f"I found {messages[-1].content}")
        return ChatResult(generations=[ChatGeneration(message=answer)])


model = Offline()
