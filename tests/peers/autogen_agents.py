"""Agents and teams of AutoGen, wrapped. The model answers without a network."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, ModelInfo, RequestUsage, UserMessage
from pydantic import BaseModel
from wrapping import connect, forever, reply, spoken

from dragoman import Agent

logging.getLogger("autogen_core").setLevel(logging.CRITICAL)  # it logs what tests cancel


class City(BaseModel):
    name: str
    people: int


class Offline(ChatCompletionClient):
    """Answers what was said, fills in a city, fails, or waits for ever when it is told to wait."""

    component_type = "model"

    def __init__(self, does: str = "reply") -> None:
        self._does = does

    async def create(
        self, messages: Sequence[LLMMessage], *, cancellation_token: CancellationToken, **_: Any
    ) -> CreateResult:
        told = [each for each in messages if isinstance(each, UserMessage) and each.source != "assistant"]
        said = [str(each.content) for each in told]
        if self._does == "fail":
            raise ValueError("the password is 1234")
        if said[-1] == "wait":
            waiting = asyncio.ensure_future(forever())
            cancellation_token.link_future(waiting)  # as clients of real models do
            await waiting
        answer = '{"name": "Oslo", "people": 709000}' if self._does == "fill" else reply(said)
        used = RequestUsage(prompt_tokens=7, completion_tokens=5)
        return CreateResult(finish_reason="stop", content=answer, usage=used, cached=False)

    async def create_stream(
        self, messages: Sequence[LLMMessage], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        whole = await self.create(messages, **options)
        async for word in spoken(str(whole.content)):
            yield word
        yield whole

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1000

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=True, structured_output=True, family="unknown"
        )

    capabilities = model_info


def agent(does: str = "reply", name: str = "Talker", **options: Any) -> AssistantAgent:
    return AssistantAgent(name, Offline(does), description="Knows cities", **options)


connect(
    Agent.wrap(agent(model_client_stream=True), id="agt_autogen_talker", skill="echo"),
    Agent.wrap(agent("fill", output_content_type=City), id="agt_autogen_filler", skill="echo"),
    Agent.wrap(agent(), id="agt_autogen_sleeper", skill="echo"),
    Agent.wrap(agent("fail"), id="agt_autogen_failing", skill="echo"),
    Agent.wrap(
        RoundRobinGroupChat(
            [agent(name="First"), agent(name="Second")], termination_condition=MaxMessageTermination(3), name="Pair"
        ),
        id="agt_autogen_pair",
        skill="echo",
    ),
)
