"""Tools that a model wants called: all calls of one round at once, each result or mishap as text for the model."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import msgspec

from dragoman.model.json import is_object
from dragoman.sdk.agent.schema import to_json
from dragoman.sdk.agent.signature import Handed, is_async
from dragoman.sdk.agent.tools import Described
from dragoman.sdk.run.models import ToolCall
from dragoman.sdk.work.handling import current_context

if TYPE_CHECKING:
    from dragoman.sdk.work.context import Context

AT_ONCE: Final = 16
MOST_CALLS: Final = 128  # in one round
MOST_CHARACTERS: Final = 256 * 1024  # of one result


async def call_tools(tools: Mapping[str, Described], calls: Sequence[ToolCall]) -> list[str]:
    """What came of each call, in their order. Raises TypeError for a tool that asks for a Context outside a handler."""
    context = current_context()
    for call in calls:
        if call.name in tools and context is None:
            _refuse_without_context(tools[call.name])
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(call: ToolCall) -> str:
        async with turns:
            return _shortened(await _called(tools, call, context))

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(in_turn(call)) for call in calls[:MOST_CALLS]]
    left_out = [f"Not called: a round has at most {MOST_CALLS} calls."] * len(calls[MOST_CALLS:])
    return [each.result() for each in running] + left_out


async def _called(tools: Mapping[str, Described], call: ToolCall, context: "Context | None") -> str:
    tool = tools.get(call.name)
    if tool is None:
        return f"There is no tool {call.name!r}. There are: {', '.join(tools) or 'none'}."
    if not is_object(call.arguments):
        return f"The arguments of {call.name} are no JSON object."
    handed: dict[Handed, object] = {}
    if context is not None:
        handed = {Handed.CONTEXT: context, Handed.MESSAGE: context.message}
    try:
        bound = tool.signature.bind(call.arguments, handed)
        if is_async(tool.function):
            value = tool.function(*bound.args, **bound.kwargs)
        else:
            value = await asyncio.to_thread(tool.function, *bound.args, **bound.kwargs)
        return await _text_of(value)
    except Exception as error:  # noqa: BLE001 - a tool raises what it likes: the model is told, and may do better
        return f"{type(error).__name__}: {error}"


async def _text_of(value: object) -> str:
    if inspect.isawaitable(value):
        value = await value
    if isinstance(value, AsyncIterator):
        value = await _gathered(cast("AsyncIterator[object]", value))
    return value if isinstance(value, str) else msgspec.json.encode(to_json(value)).decode()


async def _gathered(values: AsyncIterator[object]) -> object:
    """What a generator yields: words as one text, anything else as a list."""
    pieces = [piece async for piece in values]
    words = [piece for piece in pieces if isinstance(piece, str)]
    return "".join(words) if len(words) == len(pieces) else pieces


def _refuse_without_context(tool: Described) -> None:
    for each in tool.signature.parameters:
        if each.handed is not None and each.default is inspect.Parameter.empty:
            raise TypeError(f"The tool {tool.name} asks for a Context ({each.name}): only a handler has one.")


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… (cut)"
