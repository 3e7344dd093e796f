"""A model that needs no network."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM


class Offline(FunctionCallingLLM):
    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> AsyncIterator[ChatResponse]:
        async def said() -> AsyncIterator[ChatResponse]:
            answer = "Oslo has 709000 inhabitants."
            yield ChatResponse(message=ChatMessage(role="assistant", content=answer), delta=answer)

        return said()

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": chat_history or []}

    def get_tool_calls_from_response(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    achat = stream_chat = complete = acomplete = stream_complete = astream_complete = chat


model = Offline()
