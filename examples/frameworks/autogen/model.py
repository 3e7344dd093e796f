"""A model that needs no network."""

from collections.abc import AsyncGenerator
from typing import Any

from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage


class Offline(ChatCompletionClient):
    component_type = "model"

    async def create(self, *_: Any, **__: Any) -> CreateResult:
        used = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(finish_reason="stop", content="Oslo has 709000 inhabitants.", usage=used, cached=False)

    async def create_stream(self, *_: Any, **__: Any) -> AsyncGenerator[str | CreateResult, None]:
        answer = await self.create()
        yield str(answer.content)
        yield answer

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    def total_usage(self) -> RequestUsage:
        return self.actual_usage()

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1000

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=True, structured_output=True, family="unknown"
        )

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info


model = Offline()
