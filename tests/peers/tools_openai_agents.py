"""An agent of the OpenAI Agents SDK with skills as its tools. The model needs no network."""

import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}


class Offline(Model):
    """Calls one tool after the other."""

    async def get_response(self, *, input: Any, tools: list[Any], **_: Any) -> ModelResponse:
        SHOWN.update({tool.name: tool.params_json_schema for tool in tools})
        number = sum(isinstance(item, dict) and item.get("type") == "function_call_output" for item in input)
        if number < len(CALLS):
            name, arguments = CALLS[number]
            output: Any = ResponseFunctionToolCall(
                type="function_call", call_id=str(number), name=name, arguments=json.dumps(arguments)
            )
        else:
            text = ResponseOutputText(type="output_text", text=DONE, annotations=[])
            output = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def work(tools: list[Any]) -> Any:
    found = await Runner.run(Agent("Reader", model=Offline(), tools=tools), "Go")
    heard = [item.output for item in found.new_items if item.type == "tool_call_output_item"]
    return SHOWN, heard, found.final_output


play("openai-agents", work)
