"""Skills as tools of AutoGen."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from dragoman.model.json import Json, JsonObject
from dragoman.sdk.client.skill_tool import SkillTool


def maker() -> Callable[[SkillTool], Any]:
    """Makes a BaseTool of a skill."""
    tools: Any = import_module("autogen_core.tools")
    # AutoGen stands on pydantic: it is there.
    pydantic: Any = import_module("pydantic")

    class Arguments(pydantic.BaseModel):
        """Whatever is given: the hub is the one that checks."""

        model_config = pydantic.ConfigDict(extra="allow")

    class SkillAsTool(tools.BaseTool[Any, Any]):
        """One skill; it shows the skill's own schema."""

        def __init__(self, skill: SkillTool) -> None:
            super().__init__(Arguments, str, skill.name, skill.description)  # pyright: ignore[reportUnknownMemberType] - the framework's
            self.skill = skill

        @property
        def schema(self) -> JsonObject:
            """What a model is shown."""
            skill = self.skill
            return {"name": skill.name, "description": skill.description, "parameters": skill.input_schema}

        async def run(self, args: Any, cancellation_token: object) -> str:
            """Call the skill. Whoever cancels the token cancels the task that this runs in."""
            return (await self.skill.outcome(args.model_extra or {})).text

        async def run_json(self, args: Mapping[str, Json], cancellation_token: object, call_id: object = None) -> str:
            """Call the skill with an object."""
            return (await self.skill.outcome(args)).text

    return SkillAsTool
