"""Skills as tools of pydantic-ai."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.sdk.client.skill_tool import SkillTool


def maker() -> Callable[[SkillTool], Any]:
    """Makes a Tool of a skill."""
    pydantic_ai: Any = import_module("pydantic_ai")

    def tool_of(skill: SkillTool) -> Any:
        async def call(**arguments: Any) -> str:
            return (await skill.outcome(arguments)).text

        return pydantic_ai.Tool.from_schema(call, skill.name, skill.description, skill.input_schema)

    return tool_of
