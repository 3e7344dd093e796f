"""Agents of the OpenAI Agents SDK, wrapped. The model answers without a network."""

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent as OpenAIAgent
from agents import GuardrailFunctionOutput, Model, ModelResponse, function_tool, input_guardrail
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import BaseModel
from wrapping import connect, forever, reply, spoken

from dragoman import Agent

USED = ResponseUsage(
    input_tokens=7,
    output_tokens=5,
    total_tokens=12,
    input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
    output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
)


class City(BaseModel):
    name: str
    people: int


class Offline(Model):
    """Says what `does` names."""

    def __init__(self, does: str = "reply") -> None:
        self._does = does

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        raise NotImplementedError

    async def stream_response(self, _: Any, given: Any, *__: Any, **___: Any) -> AsyncIterator[Any]:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        text = reply([str(each["content"]) for each in items if each.get("role") == "user"])
        output: list[Any] = []
        match self._does:
            case "sleep":
                await forever()
            case "fail":
                raise ValueError("the password is 1234")
            case "fill":
                text = json.dumps({"name": "Oslo", "people": 709000})
            case "delete" if not any(each.get("type") == "function_call_output" for each in items):
                arguments = json.dumps({"name": "notes"})
                call = ResponseFunctionToolCall(
                    arguments=arguments, call_id="1", name="delete", type="function_call", id="f"
                )
                output = [call]
            case "delete":
                text = next(each["output"] for each in items if each.get("type") == "function_call_output")
            case "again":
                arguments = json.dumps({})
                output = [
                    ResponseFunctionToolCall(arguments=arguments, call_id="1", name="nothing", type="function_call")
                ]
            case _:
                pass
        if not output:
            number = 0
            async for word in spoken(text):
                yield ResponseTextDeltaEvent(
                    content_index=0,
                    delta=word,
                    item_id="m",
                    output_index=0,
                    sequence_number=number,
                    type="response.output_text.delta",
                    logprobs=[],
                )
                number += 1
            said = ResponseOutputText(text=text, type="output_text", annotations=[])
            output = [
                ResponseOutputMessage(id="m", content=[said], role="assistant", status="completed", type="message")
            ]
        response = Response(
            id="r",
            created_at=0,
            model="offline-1",
            object="response",
            output=output,
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
            usage=USED,
        )
        yield ResponseCompletedEvent(response=response, sequence_number=99, type="response.completed")


@function_tool(needs_approval=True)
def delete(name: str) -> str:
    return f"{name} deleted"


@function_tool
def nothing() -> str:
    return "nothing"


@input_guardrail
async def no_secrets(_: Any, __: Any, given: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="secret" in str(given))


def made(does: str = "reply", **more: Any) -> OpenAIAgent:
    return OpenAIAgent(name="Talker", instructions="Answer", model=Offline(does), **more)


def wrapped(kind: str, agent: OpenAIAgent) -> Agent:
    return Agent.wrap(agent, id=f"agt_openai_agents_{kind}", skill="echo")


connect(
    wrapped("talker", made()),
    wrapped("filler", made("fill", output_type=City)),
    wrapped("sleeper", made("sleep")),
    wrapped("failing", made("fail")),
    wrapped("deleter", made("delete", tools=[delete])),
    wrapped("guarded", made(input_guardrails=[no_secrets])),
    wrapped("again", made("again", tools=[nothing])),
)
