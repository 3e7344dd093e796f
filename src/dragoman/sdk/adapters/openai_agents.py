"""Agents of the OpenAI Agents SDK: run by its Runner, with the conversation as the list of its input.

Words are streamed, unless the agent has an `output_type`: that is the answer, as data. Tools that need approval are
questions to the caller. Hand-offs, guardrails and tools are the framework's own business.
"""

import asyncio
import importlib
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any, cast

from dragoman.model.errors import AgentError
from dragoman.model.json import Json, JsonObject
from dragoman.sdk.adapters.adapter import Answer, Chunk, Offer, Options, Piece, Turn, Usage, Wrapped
from dragoman.sdk.adapters.conversations import Histories
from dragoman.sdk.agent.schema import output_schema_of
from dragoman.sdk.content import File


def wrapped(obj: object, options: Options) -> Wrapped:
    """An agent as one skill. Raises TypeError for an object of the framework that is none."""
    agent = cast("Any", obj)
    if not isinstance(getattr(agent, "name", None), str):
        raise TypeError(f"Of the OpenAI Agents SDK an Agent can be wrapped; this is a {type(obj).__qualname__}.")
    kind = _output_type(agent)
    return Wrapped(
        name=agent.name,
        description=getattr(agent, "handoff_description", None),
        skills=(Offer(run=_Talker(agent, kind is None).run, output_schema=None if kind is None else _schema(kind)),),
    )


class _Talker:
    """An agent that is run."""

    def __init__(self, agent: Any, says_words: bool) -> None:
        self._agent = agent
        self._says_words = says_words
        self._histories = Histories()

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One turn: the runner's events, then what it came to."""
        agents: Any = importlib.import_module("agents")
        before = self._histories.of(turn, _message)
        given: object = [*before, {"role": "user", "content": _content(turn)}]
        while True:
            running = agents.Runner.run_streamed(self._agent, given)
            try:
                async for event in running.stream_events():
                    if self._says_words and (text := _text(event)):
                        yield Chunk(text)
            except agents.AgentsException as error:
                _tell(error, agents, turn)
                raise
            finally:
                if not running.is_complete:
                    await _stopped(running)
            if not running.interruptions:
                break
            given = await _approved(running, turn)
        self._histories.add(turn, before, running.to_input_list()[len(before) :])
        used = running.context_wrapper.usage
        yield Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        yield Answer(running.final_output)


async def _stopped(running: Any) -> None:
    """End the runner's own task, and see its end."""
    running.cancel()
    task: Json = getattr(running, "run_loop_task", None)
    if task is not None:
        await asyncio.wait([task])


async def _approved(running: Any, turn: Turn) -> object:
    """The run as it goes on after the caller was asked about each tool."""
    state = running.to_state()
    for item in running.interruptions:
        name, arguments = item.raw_item.name, item.raw_item.arguments
        if await turn.ctx.ask(f"May {name} be called with {arguments}?", bool):
            state.approve(item)
        else:
            state.reject(item)
    return state


def _tell(error: Exception, agents: Any, turn: Turn) -> None:
    """Say in words what the runner itself found. Refuses what a guardrail stopped; raises AgentError."""
    match error:
        case agents.InputGuardrailTripwireTriggered():
            turn.ctx.refuse("The agent's guardrail does not let this through.")
        case agents.OutputGuardrailTripwireTriggered():
            raise AgentError("The agent's guardrail held its answer back.") from error
        case agents.MaxTurnsExceeded():
            raise AgentError("The agent took more turns than it may without an answer.") from error
        case _:
            pass  # Its own words may hold secrets.


def _text(event: Any) -> str:
    if event.type != "raw_response_event" or event.data.type != "response.output_text.delta":
        return ""
    return event.data.delta


def _content(turn: Turn) -> str | list[JsonObject]:
    if not turn.files:
        return turn.text
    return [*([{"type": "input_text", "text": turn.text}] if turn.text else []), *(_part(file) for file in turn.files)]


def _part(file: File) -> JsonObject:
    """A file as the Responses API has it."""
    image = (file.mime_type or "").startswith("image/")
    kind = file.mime_type or "application/octet-stream"
    inline = None if file.bytes is None else f"data:{kind};base64,{b64encode(file.bytes).decode()}"
    if image:
        return {"type": "input_image", "image_url": inline or file.uri, "detail": "auto"}
    if inline is None:
        return {"type": "input_file", "file_url": file.uri}
    return {"type": "input_file", "file_data": inline, "filename": file.name or "file"}


def _message(is_user: bool, text: str) -> JsonObject:
    return {"role": "user" if is_user else "assistant", "content": text}


def _output_type(agent: Any) -> object:
    """What it gives, unless that is words."""
    kind: Json = getattr(agent, "output_type", None)
    plain: Json = getattr(kind, "is_plain_text", None)
    if callable(plain) and plain():
        return None
    return None if kind is str else kind


def _schema(kind: Any) -> JsonObject | None:
    """The schema of a type, or of the framework's own description of one."""
    return output_schema_of(getattr(kind, "output_type", kind))
