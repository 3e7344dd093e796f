"""CrewAI's crews and agents, one call at a time: both change while they run.

A crew takes the inputs that its tasks name and remembers nothing; an agent is talked to. What a crew that streams says
is streamed if it is part of its last task, whose output is the answer. CrewAI asks models and calls tools in threads:
who cancels a call ends the run at its next step, not what a thread is doing.
"""

import importlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.adapters.adapter import Answer, Chunk, Offer, Options, Piece, Turn, Usage, Wrapped
from dragoman.sdk.adapters.conversations import Histories
from dragoman.sdk.agent.schema import output_schema_of


def wrapped(obj: object, options: Options) -> Wrapped:
    """A crew or an agent as one skill. Raises TypeError for anything else of the framework."""
    made = cast("Any", obj)
    crewai: Any = importlib.import_module("crewai")
    if isinstance(obj, crewai.Crew):
        return Wrapped(
            name=made.name if made.name not in (None, "", "crew") else "Crew",
            skills=(
                Offer(
                    run=_Crew(made).run,
                    input_schema=_inputs(sorted(made.fetch_inputs())),
                    output_schema=_output_schema(made.tasks[-1]),
                ),
            ),
            concurrency=1,
            conversational=False,
        )
    if isinstance(obj, crewai.Agent):
        return Wrapped(name=made.role, description=made.goal, skills=(Offer(run=_Agent(made).run),), concurrency=1)
    raise TypeError(
        f"Of CrewAI a Crew or an Agent can be wrapped; this is a {type(obj).__qualname__}. "
        "Wrap a function that runs it."
    )


class _Crew:
    """A crew that is kicked off."""

    def __init__(self, crew: Any) -> None:
        self._crew = crew

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One run of all its tasks."""
        before = self._crew.calculate_usage_metrics()
        result = await self._crew.akickoff(inputs=turn.input)
        if hasattr(result, "__aiter__"):
            async with aclosing(result) as chunks:
                async for chunk in chunks:
                    if self._is_answer(chunk):
                        yield Chunk(chunk.content)
            result = result.result
        yield _used(result.token_usage, before)
        yield Answer(result.pydantic or result.json_dict or result.raw)

    def _is_answer(self, chunk: Any) -> bool:
        tasks = self._crew.tasks
        last = len(tasks) == 1 or chunk.task_id == str(tasks[-1].id)
        return last and chunk.chunk_type.value == "text" and _output_type(tasks[-1]) is None


class _Agent:
    """An agent without a crew."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._histories = Histories()

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One answer to all that was said."""
        before = self._histories.of(turn, _message)
        said = _message(True, turn.text)
        result = await self._agent.akickoff([*before, said])
        self._histories.add(turn, before, [said, _message(False, result.raw)])
        used: Json = result.usage_metrics
        if is_object(used):
            yield Usage(input_tokens=used.get("prompt_tokens", 0), output_tokens=used.get("completion_tokens", 0))
        yield Answer(result.pydantic or result.raw)


def _used(after: Any, before: Any) -> Usage:
    return Usage(
        input_tokens=max(0, after.prompt_tokens - before.prompt_tokens),
        output_tokens=max(0, after.completion_tokens - before.completion_tokens),
    )


def _message(is_user: bool, text: str) -> JsonObject:
    return {"role": "user" if is_user else "assistant", "content": text}


def _inputs(names: list[str]) -> JsonObject | None:
    """What a crew is told, by the names in its tasks' texts; a lone one is what a message says."""
    if not names:
        return None
    kind: JsonObject = {"type": "string"} if len(names) == 1 else {}
    return {"type": "object", "properties": {name: dict(kind) for name in names}, "required": names}


def _output_type(task: Any) -> object:
    return task.output_pydantic or task.output_json


def _output_schema(task: Any) -> JsonObject | None:
    kind = _output_type(task)
    return None if kind is None else output_schema_of(kind)
