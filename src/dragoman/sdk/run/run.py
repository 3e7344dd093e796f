"""Letting an agent's model work on a task: rounds of asking it and calling the tools that it wants, until it answers.

    instructions, memory, task ─► model ─► tools? ─ yes ─► call them all ─► model …      ─ no ─► the answer

Usage is summed, and noted with the call that is being carried out, if one is. Inside a handler the conversation is
that of its caller alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

import msgspec

from dragoman.model.errors import AgentError
from dragoman.model.events import Usage
from dragoman.model.json import Json, JsonObject
from dragoman.sdk import scope
from dragoman.sdk.agent.tools import describe
from dragoman.sdk.errors import NoModel
from dragoman.sdk.run.calling import call_tools
from dragoman.sdk.run.memory import Memory, Name, newest
from dragoman.sdk.run.models import (
    Model,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    asked,
    model_named,
)
from dragoman.sdk.work.handling import current_context

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.work.context import Context

Number = TypeVar("Number", int, float)

_ANONYMOUS: Final = "anonymous"


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round: what the model said, which tools it wanted, and what came of each."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a model came to. `output` is the answer as a value, where JSON was asked for, else its text."""

    content: str
    output: Json = None
    steps: tuple[Round, ...] = ()
    usage: Usage = Usage()

    def __str__(self) -> str:
        return self.content


@final
class Running:
    """A model that is let work when this is awaited, or its `content` read; once, however often that is done."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, RunResult]]) -> None:
        """Do nothing yet."""
        self._work = work
        self._result: RunResult | None = None
        self._turn = asyncio.Lock()

    def __await__(self) -> Generator[Any, Any, RunResult]:
        return self._once().__await__()

    @property
    def content(self) -> str:
        """The answer, where no loop runs; after it was awaited, anywhere. Raises RuntimeError inside a loop."""
        if self._result is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run(self._once()).content
            raise RuntimeError("A loop is running here: use (await agent.run(task)).content")
        return self._result.content

    async def _once(self) -> RunResult:
        async with self._turn:
            if self._result is None:
                self._result = await self._work()
            return self._result


def run(agent: "Agent", task: str, conversation_id: str | None = None) -> Running:
    """Let the model work on a task. Raises NoModel."""
    _refuse_without_model(agent)
    return Running(lambda: arun(agent, task, conversation_id))


async def arun(
    agent: "Agent", task: str, conversation_id: str | None = None, output_schema: JsonObject | None = None
) -> RunResult:
    """The same as a plain coroutine; with a schema, the answer is JSON of that shape."""
    async with aclosing(_worked(agent, task, conversation_id, output_schema)) as pieces:
        async for piece in pieces:
            if isinstance(piece, RunResult):
                return piece
    raise AssertionError("work ends in a result")


async def stream(agent: "Agent", task: str, conversation_id: str | None = None) -> AsyncGenerator[str]:
    """The same as pieces of text, as the model says them."""
    async with aclosing(_worked(agent, task, conversation_id, None)) as pieces:
        async for piece in pieces:
            if isinstance(piece, str):
                yield piece


async def classify(agent: "Agent", task: str, labels: Iterable[str] | None = None) -> str | None:
    """Which label fits a task best: by the model, else by the words they share. None where none fits."""
    # Needs neither model nor tools where an agent has no model.
    from dragoman.sdk.run.classify import by_words, choice_request, chosen

    found: object = getattr(agent, "specialists", None)
    specialists = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    names = [str(label) for label in (specialists if labels is None else labels)]
    if not names:
        return None
    if agent.model is None:
        return by_words(task, names, specialists)
    request = choice_request(task, names, specialists, _deadline())
    async with aclosing(asked(_model_of(agent), request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelReply):
                _note_usage(piece)
                return chosen(piece.text, names)
    return None


async def handle(agent: "Agent", task: str, ctx: "Context") -> RunResult:
    """Work on a task for a caller, who hears the answer as the model says it."""
    held = ""
    async with aclosing(_worked(agent, task, None, None)) as pieces:
        async for piece in pieces:
            if isinstance(piece, RunResult):
                return piece
            # One piece behind: an answer in one piece is told once, at the end.
            await ctx.stream(held)
            held = piece
    raise AssertionError("work ends in a result")


async def _worked(
    agent: "Agent", task: str, conversation_id: str | None, output_schema: JsonObject | None
) -> AsyncGenerator[str | RunResult]:
    """Pieces of text as they come, and the result at the end."""
    _refuse_without_model(agent)
    model = _model_of(agent)
    tools = {tool.name: tool for tool in map(describe, agent.tools)}
    schemas = tuple(
        ToolSchema(name=tool.name, description=tool.description, input_schema=tool.input_schema)
        for tool in tools.values()
    )
    memory, name = _memory_of(agent), _conversation(conversation_id)
    question = ModelMessage(role="user", text=task)
    earlier = (memory.turns(name) if name is not None else ()) or _history(conversation_id)
    messages = [*earlier, question]
    steps: list[Round] = []
    usage = Usage()
    for number in range(1, agent.max_steps + 1):
        request = ModelRequest(
            instructions=agent.instructions,
            messages=tuple(messages),
            tools=schemas,
            output_schema=output_schema,
            final=number == agent.max_steps,
            deadline=_deadline(),
        )
        reply = ModelReply()
        async with aclosing(asked(model, request)) as said:
            async for piece in said:
                if isinstance(piece, ModelReply):
                    reply = piece
                else:
                    yield piece
        _note_usage(reply)
        usage = _sum(usage, reply.usage)
        if not reply.tool_calls:
            steps.append(Round(text=reply.text))
            if name is not None:
                memory.add(name, question, ModelMessage(role="assistant", text=reply.text))
            output = reply.text if output_schema is None else _value(reply.text)
            yield RunResult(content=reply.text, output=output, steps=tuple(steps), usage=usage)
            return
        if request.final:
            break
        calls = tuple(_numbered(call, number, index) for index, call in enumerate(reply.tool_calls, 1))
        results = await call_tools(tools, calls)
        steps.append(Round(text=reply.text, tool_calls=calls, results=tuple(results)))
        messages.append(ModelMessage(role="assistant", text=reply.text, tool_calls=calls))
        messages += [
            ModelMessage(role="tool", text=result, tool_call_id=call.id)
            for call, result in zip(calls, results, strict=True)
        ]
    raise AgentError(
        f'The model of agent "{agent.name}" came to no answer within {agent.max_steps} steps: max_steps=… allows more.',
        reason="max_steps",
    )


def _refuse_without_model(agent: "Agent") -> None:
    if agent.model is None:
        raise NoModel(f'agent "{agent.name}" has no model; pass model=… or define a skill', next="")


def _model_of(agent: "Agent") -> Model:
    model: object = agent.model
    if isinstance(model, str):
        return model_named(model)
    if not callable(model):
        raise TypeError(f"A model is a function or a name; that of {agent.name!r} is a {type(model).__name__}.")
    return cast("Model", model)


def _memory_of(agent: "Agent") -> Memory:
    from dragoman.sdk.agent.agent import hidden_of  # agents are made of skills, and run for agents

    hidden = hidden_of(agent)
    if not isinstance(hidden.memory, Memory):
        hidden.memory = Memory()
    return hidden.memory


def _conversation(given: str | None) -> Name | None:
    """Whose conversation it is: inside a handler that of its caller, and of nobody whom nobody knows."""
    context = current_context()
    if context is None:
        return None if given is None else ("", given)
    if context.caller.kind == _ANONYMOUS:
        return None
    return context.caller.id, given or context.conversation_id


def _history(given: str | None) -> tuple[ModelMessage, ...]:
    """The turns that the hub remembers, of the conversation that the running handler's call belongs to."""
    context = current_context()
    if context is None or given not in (None, context.conversation_id):
        return ()
    turns = [
        ModelMessage(role="user" if turn.role == "user" else "assistant", text=turn.text or _written(turn.data))
        for turn in context.history
    ]
    return newest(tuple(turns))


def _written(data: Json) -> str:
    return "" if data is None else msgspec.json.encode(data).decode()


def _deadline() -> float | None:
    running = scope.current()
    return None if running is None else running.deadline


def _note_usage(reply: ModelReply) -> None:
    context, used = current_context(), reply.usage
    if context is not None and used is not None:
        context.usage(
            input_tokens=used.input_tokens or 0,
            output_tokens=used.output_tokens or 0,
            cost_usd=used.cost_usd or 0.0,
            model=reply.model,
        )


def _sum(before: Usage, more: Usage | None) -> Usage:
    if more is None:
        return before
    return Usage(
        tokens=_added(before.tokens, more.tokens),
        input_tokens=_added(before.input_tokens, more.input_tokens),
        output_tokens=_added(before.output_tokens, more.output_tokens),
        cost_usd=_added(before.cost_usd, more.cost_usd),
    )


def _added(one: Number | None, two: Number | None) -> Number | None:
    return two if one is None else one if two is None else one + two


def _numbered(call: ToolCall, number: int, index: int) -> ToolCall:
    return call if call.id else msgspec.structs.replace(call, id=f"call_{number}_{index}")


def _value(text: str) -> Json:
    """The JSON of an answer; models like to fence it. Raises AgentError."""
    plain = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return msgspec.json.decode(plain)
    except (msgspec.DecodeError, RecursionError):
        raise AgentError("The model's answer is not the JSON that was asked for.", reason="model_unreadable") from None
