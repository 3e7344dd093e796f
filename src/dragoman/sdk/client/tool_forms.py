"""Tools that need no framework: functions to await or to call, what chat completions take, what MCP shows.

A plain one is a function with a name, docstring, signature and schema: an `Agent` takes it among its own tools.
"""

import inspect
import keyword
from collections.abc import Callable, Coroutine
from types import NoneType
from typing import Any, Final

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.agent.tools import Tool, tool
from dragoman.sdk.client.skill_tool import Outcome, SkillTool

PlainTool = Tool[..., Coroutine[Any, Any, Json]]
BlockingTool = Tool[..., Json]

_TYPES: Final[dict[str, object]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
    "null": NoneType,
}


def plain(skill: SkillTool) -> PlainTool:
    """A function to await; it gives the value itself."""

    async def called(**arguments: Any) -> Json:
        return (await skill.outcome(arguments)).value

    return _dressed(called, skill)


def blocking(skill: SkillTool) -> BlockingTool:
    """A function for code that cannot await."""

    def called(**arguments: Any) -> Json:
        return skill.blocking(arguments).value

    return _dressed(called, skill)


def openai(skill: SkillTool) -> JsonObject:
    """What chat completions take as a tool."""
    function = {"name": skill.name, "description": skill.description, "parameters": skill.input_schema}
    return {"type": "function", "function": function}


def openai_answer(outcome: Outcome) -> str:
    """The content of the message that answers a tool call."""
    return outcome.text


def mcp(skill: SkillTool) -> JsonObject:
    """What `tools/list` shows."""
    return {"name": skill.name, "description": skill.description, "inputSchema": skill.input_schema}


def mcp_answer(outcome: Outcome) -> JsonObject:
    """What `tools/call` answers."""
    answer: JsonObject = {"content": [{"type": "text", "text": outcome.text}], "isError": outcome.failed}
    return {**answer, "structuredContent": dict(outcome.value)} if is_object(outcome.value) else answer


def _dressed(called: Callable[..., Any], skill: SkillTool) -> Tool[..., Any]:
    """The function with all that looks like one that was written for this skill."""
    made = tool(name=skill.name, description=skill.description, input_schema=skill.input_schema)(called)
    parameters = parameters_of(skill.input_schema)
    called.__name__ = called.__qualname__ = skill.name
    called.__doc__ = skill.description
    called.__annotations__ = {**{each.name: each.annotation for each in parameters}, "return": Any}
    setattr(called, "__signature__", inspect.Signature(parameters, return_annotation=Any))  # noqa: B010 - not declared
    return made


def parameters_of(schema: JsonObject) -> list[inspect.Parameter]:
    """The parameters of a function that takes what a schema says; what cannot be one's name is left to `**others`."""
    properties: JsonObject = schema["properties"]
    named = {name: kind for name, kind in properties.items() if name.isidentifier() and not keyword.iskeyword(name)}
    made = [_parameter(name, kind, name in schema.get("required", ())) for name, kind in named.items()]
    if len(named) < len(properties) or schema.get("additionalProperties"):
        others = next(name for name in ("others", "_others", "__others") if name not in named)
        made.append(inspect.Parameter(others, inspect.Parameter.VAR_KEYWORD, annotation=Any))
    return made


def _parameter(name: str, kind: Json, required: bool) -> inspect.Parameter:
    shown: Json = kind if is_object(kind) else {}
    written: Json = shown.get("type")
    annotation: Any = _TYPES.get(written, Any) if isinstance(written, str) else Any
    if required:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    default: Json = shown.get("default")
    whole = annotation if default is not None or annotation is Any else annotation | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=whole)
