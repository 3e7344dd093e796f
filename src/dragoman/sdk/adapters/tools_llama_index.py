"""Skills as tools of LlamaIndex."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.model.json import JsonObject
from dragoman.sdk.client.skill_tool import SkillTool


def maker() -> Callable[[SkillTool], Any]:
    """Makes a FunctionTool of a skill, to await or to call."""
    tools: Any = import_module("llama_index.core.tools")
    # LlamaIndex stands on pydantic: it is there.
    pydantic: Any = import_module("pydantic")

    def shown(schema: JsonObject) -> Any:
        """A model that takes everything and shows the skill's own schema: the hub is the one that checks."""

        class Arguments(pydantic.BaseModel):
            model_config = pydantic.ConfigDict(extra="allow")

            @classmethod
            def model_json_schema(cls, *_given: Any, **_named: Any) -> JsonObject:
                return schema

        return Arguments

    def tool_of(skill: SkillTool) -> Any:
        async def call(**arguments: Any) -> str:
            return (await skill.outcome(arguments)).text

        def call_blocking(**arguments: Any) -> str:
            return skill.blocking(arguments).text

        metadata = tools.ToolMetadata(
            name=skill.name, description=skill.description, fn_schema=shown(skill.input_schema)
        )
        return tools.FunctionTool(fn=call_blocking, async_fn=call, metadata=metadata)

    return tool_of
