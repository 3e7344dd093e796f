"""Agents of pydantic-ai: run with the conversation as their message history.

Words are streamed as the model says them; an agent with an output type of its own answers with data, whose schema its
card shows. Agents that need `deps` are wrapped as a function that passes them.
"""

import importlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, cast

from dragoman.model.errors import AgentError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.adapters.adapter import Answer, Offer, Options, Piece, Turn, Usage, Wrapped
from dragoman.sdk.adapters.conversations import Histories
from dragoman.sdk.agent.schema import output_schema_of
from dragoman.sdk.content import File


def wrapped(obj: object, options: Options) -> Wrapped:
    """An agent as one skill. Raises TypeError for an object of the framework that is none."""
    agent = cast("Any", obj)
    if not callable(getattr(agent, "run", None)) or not hasattr(agent, "output_type"):
        raise TypeError(f"Of pydantic-ai an Agent can be wrapped; this is a {type(obj).__qualname__}.")
    description = getattr(agent, "description", None)
    return Wrapped(
        name=agent.name or "Assistant",
        description=description if isinstance(description, str) else None,
        skills=(Offer(run=_Talker(agent).run, output_schema=_schema(agent)),),
    )


class _Talker:
    """An agent that is run."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        # Its own handler of events, where it has one, goes first.
        self._streams = agent.output_type is str and getattr(agent, "event_stream_handler", None) is None
        self._histories = Histories()

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One turn: its words as they come, then what it came to."""
        exceptions: Any = importlib.import_module("pydantic_ai.exceptions")
        before = self._histories.of(turn, _message)
        try:
            result = await self._result(turn, before)
        except (exceptions.UsageLimitExceeded, exceptions.UnexpectedModelBehavior) as error:
            raise AgentError(f"The agent came to no answer: {type(error).__name__}") from error
        self._histories.add(turn, before, result.new_messages())
        used = result.usage
        yield Usage(
            input_tokens=used.input_tokens or 0,
            output_tokens=used.output_tokens or 0,
            model=getattr(result.response, "model_name", None),
        )
        yield Answer(result.output)

    async def _result(self, turn: Turn, before: list[Any]) -> Any:
        options: JsonObject = {"message_history": before} if before else {}
        if not self._streams:
            return await self._agent.run(_prompt(turn), **options)

        async def tell(_: object, events: AsyncIterable[Any]) -> None:
            async for event in events:
                await turn.ctx.stream(_text(event))

        try:
            return await self._agent.run(_prompt(turn), event_stream_handler=tell, **options)
        except NotImplementedError:
            self._streams = False  # The model has no streams, and says so before it says anything else.
            return await self._agent.run(_prompt(turn), **options)


def _text(event: Any) -> str:
    """The words that an event brings."""
    match event.event_kind:
        case "part_start" if event.part.part_kind == "text":
            return event.part.content
        case "part_delta" if event.delta.part_delta_kind == "text":
            return event.delta.content_delta
        case _:
            return ""


def _prompt(turn: Turn) -> str | list[Any]:
    if not turn.files:
        return turn.text
    return [*([turn.text] if turn.text else []), *(_content(file) for file in turn.files)]


def _content(file: File) -> Any:
    """A file as pydantic-ai has it."""
    messages: Any = importlib.import_module("pydantic_ai.messages")
    if file.bytes is not None:
        return messages.BinaryContent(data=file.bytes, media_type=file.mime_type or "application/octet-stream")
    kind = (file.mime_type or "").partition("/")[0]
    made = {"image": messages.ImageUrl, "audio": messages.AudioUrl, "video": messages.VideoUrl}
    return made.get(kind, messages.DocumentUrl)(url=file.uri)


def _message(is_user: bool, text: str) -> Any:
    messages: Any = importlib.import_module("pydantic_ai.messages")
    if is_user:
        return messages.ModelRequest(parts=[messages.UserPromptPart(content=text)])
    return messages.ModelResponse(parts=[messages.TextPart(content=text)])


def _schema(agent: Any) -> JsonObject | None:
    """What it answers, where that is an object."""
    kind = agent.output_type
    if kind is str:
        return None
    if isinstance(kind, type):
        return output_schema_of(kind)
    schema: Json = agent.output_json_schema() if hasattr(agent, "output_json_schema") else None
    return schema if is_object(schema) and schema.get("type") == "object" else None
