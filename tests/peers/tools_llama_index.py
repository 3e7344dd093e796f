"""A function agent of LlamaIndex with skills as its tools. The model needs no network."""

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}


class Model(FunctionCallingLLM):
    """Calls one tool after the other."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        for tool in tools:
            function = tool.metadata.to_openai_tool()["function"]
            SHOWN[function["name"]] = function["parameters"]
        return {"messages": chat_history or []}

    async def achat(self, messages: Any, **_: Any) -> ChatResponse:
        number = sum(message.role == "tool" for message in messages)
        words = "" if number < len(CALLS) else DONE
        return ChatResponse(message=ChatMessage(role="assistant", content=words), raw=number)

    def get_tool_calls_from_response(self, response: ChatResponse, **_: Any) -> list[ToolSelection]:
        if response.raw >= len(CALLS):
            return []
        name, arguments = CALLS[response.raw]
        return [ToolSelection(tool_id=str(response.raw), tool_name=name, tool_kwargs=arguments)]

    async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> Any:
        response = await self.achat(**self._prepare_chat_with_tools(tools, chat_history))

        async def only() -> Any:
            yield response

        return only()

    chat = complete = stream_chat = stream_complete = acomplete = astream_chat = astream_complete = CustomLLM.chat


async def work(tools: list[Any]) -> Any:
    running = FunctionAgent(tools=tools, llm=Model()).run(user_msg="Go")
    heard = [event.tool_output.content async for event in running.stream_events() if isinstance(event, ToolCallResult)]
    return SHOWN, heard, str((await running).response.content)


play("llama-index", work)
