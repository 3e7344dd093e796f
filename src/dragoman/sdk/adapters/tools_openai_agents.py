"""Skills as tools of the OpenAI Agents SDK."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.sdk.client.skill_tool import SkillTool


def maker() -> Callable[[SkillTool], Any]:
    """Makes a FunctionTool of a skill."""
    agents: Any = import_module("agents")

    def tool_of(skill: SkillTool) -> Any:
        async def call(_context: object, arguments: str) -> str:
            return (await skill.outcome(arguments)).text

        return agents.FunctionTool(
            name=skill.name,
            description=skill.description,
            params_json_schema=skill.input_schema,
            on_invoke_tool=call,
            # Strict schemas allow neither optional nor further fields: skills have both.
            strict_json_schema=False,
        )

    return tool_of
