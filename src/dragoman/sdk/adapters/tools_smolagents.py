"""Skills as tools of smolagents. Its agents write programs: every name is one of a function or an argument."""

import keyword
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.client.skill_tool import SkillTool

TYPES: Final = frozenset({"string", "boolean", "integer", "number", "array", "object"})


def maker() -> Callable[[SkillTool], Any]:
    """Makes a Tool of a skill, to call."""
    smolagents: Any = import_module("smolagents")

    class SkillAsTool(smolagents.Tool):
        """One skill; its arguments are those of the schema, not of `forward`."""

        skip_forward_signature_validation = True
        output_type = "string"

        def __init__(self, skill: SkillTool) -> None:
            self.name, self.description, self.inputs = skill.name, skill.description, _inputs(skill.input_schema)
            self.skill = skill
            super().__init__()  # pyright: ignore[reportUnknownMemberType] - the framework's

        def forward(self, *given: Json, **named: Json) -> str:
            """Call the skill; what is given without a name has the names in their order."""
            return self.skill.blocking({**dict(zip(self.inputs, given, strict=False)), **named}).text

    def tool_of(skill: SkillTool) -> Any:
        names = skill.input_schema["properties"]
        usable = all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
        return SkillAsTool(skill if usable else skill.inside())

    return tool_of


def _inputs(schema: JsonObject) -> JsonObject:
    """The arguments as smolagents describes them: each has a type and a description."""
    shown: JsonObject = {}
    for name, kind in schema["properties"].items():
        known: JsonObject = dict(kind) if is_object(kind) else {}
        kept = known if known.get("type") in TYPES else {**known, "type": "any"}
        shown[name] = {"description": "", **kept}
        if name not in schema.get("required", ()):
            shown[name]["nullable"] = True
    return shown
