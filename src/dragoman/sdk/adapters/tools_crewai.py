"""Skills as tools of CrewAI."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.sdk.client.skill_tool import SkillTool


def maker() -> Callable[[SkillTool], Any]:
    """Makes a BaseTool of a skill, to await or to call; CrewAI makes a model of the schema."""
    tools: Any = import_module("crewai.tools")
    # CrewAI stands on pydantic: it is there.
    pydantic: Any = import_module("pydantic")

    class SkillAsTool(tools.BaseTool):
        """One skill."""

        _skill: Any = pydantic.PrivateAttr()

        def __init__(self, skill: SkillTool) -> None:
            super().__init__(name=skill.name, description=skill.description, args_schema=skill.input_schema)  # pyright: ignore[reportUnknownMemberType] - the framework's
            self._skill = skill

        def _run(self, **arguments: Any) -> str:
            return self._skill.blocking(arguments).text

        async def _arun(self, **arguments: Any) -> str:
            return (await self._skill.outcome(arguments)).text

    return SkillAsTool
