"""Skills as tools of Google's Agent Development Kit."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dragoman.model.json import JsonObject, is_object
from dragoman.sdk.client.skill_tool import SkillTool


def maker() -> Callable[[SkillTool], Any]:
    """Makes a BaseTool of a skill."""
    base: Any = import_module("google.adk.tools.base_tool")
    types: Any = import_module("google.genai.types")

    class SkillAsTool(base.BaseTool):
        """One skill; it shows the skill's own schema."""

        def __init__(self, skill: SkillTool) -> None:
            super().__init__(name=skill.name, description=skill.description)  # pyright: ignore[reportUnknownMemberType] - the framework's
            self.skill = skill

        def _get_declaration(self) -> Any:
            return types.FunctionDeclaration(
                name=self.name, description=self.description, parameters_json_schema=self.skill.input_schema
            )

        async def run_async(self, *, args: JsonObject, tool_context: object) -> JsonObject:
            """Call the skill; ADK hands an object to the model."""
            outcome = await self.skill.outcome(args)
            if outcome.failed:
                return {"error": outcome.text}
            return dict(outcome.value) if is_object(outcome.value) else {"result": outcome.text}

    return SkillAsTool
