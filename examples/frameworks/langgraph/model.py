"""A chat model that needs no network: it looks a city up with the tool it is given, and says what it found."""

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


class Offline(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Any, **_: Any) -> "Offline":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        yield ChatGenerationChunk(message=AIMessageChunk(answer.content, tool_calls=answer.tool_calls))

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage(f"Oslo has {messages[-1].content} inhabitants.")
        call = {"name": "people_of", "args": {"city": "Oslo"}, "id": "1", "type": "tool_call"}
        return AIMessage("", tool_calls=[call])


model = Offline()
