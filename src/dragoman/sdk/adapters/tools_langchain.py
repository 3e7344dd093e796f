"""Skills as tools of LangChain, which LangGraph and its agents take."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from dragoman.sdk.client.skill_tool import Outcome, SkillTool

# StructuredTool hands these to its function itself: an argument of that name would come twice.
TAKEN: Final = frozenset({"config", "run_manager", "callbacks"})


def maker() -> Callable[[SkillTool], Any]:
    """Makes a StructuredTool of a skill, to await or to call; a failure is a message with the status `error`."""
    tools: Any = import_module("langchain_core.tools")

    def text_of(outcome: Outcome) -> str:
        if outcome.failed:
            raise tools.ToolException(outcome.text)
        return outcome.text

    def tool_of(given: SkillTool) -> Any:
        skill = given.inside() if given.input_schema["properties"].keys() & TAKEN else given

        async def call(**arguments: Any) -> str:
            return text_of(await skill.outcome(arguments))

        def call_blocking(**arguments: Any) -> str:
            return text_of(skill.blocking(arguments))

        return tools.StructuredTool(
            name=skill.name,
            description=skill.description,
            args_schema=skill.input_schema,
            coroutine=call,
            func=call_blocking,
            handle_tool_error=True,
        )

    return tool_of
