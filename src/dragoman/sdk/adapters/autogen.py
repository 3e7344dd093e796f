"""AutoGen: an agent or a team, one call at a time. Between conversations it is reset, and given back the state that it
had when the conversation it turns to was last heard of.
"""

import asyncio
import contextlib
import importlib
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, final

import msgspec

from dragoman.sdk.adapters.adapter import Answer, Chunk, ConversationKey, Offer, Options, Piece, Turn, Usage, Wrapped
from dragoman.sdk.adapters.conversations import Conversations
from dragoman.sdk.agent.schema import output_schema_of
from dragoman.sdk.content import File, Text


def wrapped(obj: object, options: Options) -> Wrapped:
    """Whatever runs tasks: an agent or a team."""
    if not callable(getattr(obj, "run_stream", None)):
        raise TypeError(f"A {type(obj).__qualname__} of AutoGen runs no tasks: wrap an agent or a team.")
    runner = _Runner(obj)
    return Wrapped(
        name=runner.name,
        description=runner.description,
        skills=(Offer(run=runner.run, output_schema=runner.output_schema),),
        concurrency=1,
    )


class _Kept(msgspec.Struct):
    """The state after the last turn of a conversation; None where there was none."""

    state: Mapping[str, Any] | None = None


@final
class _Runner:
    """One agent or team, and the states of its conversations."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._core: Any = importlib.import_module("autogen_core")
        self._messages: Any = importlib.import_module("autogen_agentchat.messages")
        self._is_team = not hasattr(runner, "on_messages")
        self._current: ConversationKey | None = None  # the one that the object is in, if it is in a known state
        self._unfinished = False  # the last run was stopped in the middle
        self._talks: Conversations[_Kept] = Conversations(_Kept)
        self.name: str = runner.name
        self.description: str | None = getattr(runner, "description", None) or None
        # What an agent was told to answer with is nowhere else to be seen.
        answers = getattr(runner, "_output_content_type", None)
        self.output_schema = None if answers is None else output_schema_of(answers)

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One task. A turn that does not end is not remembered."""
        kept = self._talks.of(turn.conversation)
        await self._turn_to(turn.conversation, kept)
        asked = [*(() if kept.state is not None else self._earlier(turn)), self._said(turn)]
        token = _token(self._core)
        messages: AsyncGenerator[Any] = self._runner.run_stream(task=asked, cancellation_token=token)
        answer: object = None
        async with contextlib.aclosing(messages) as stream:
            async for message in stream:
                if isinstance(message, self._messages.ModelClientStreamingChunkEvent):
                    yield Chunk(message.content)
                elif (used := getattr(message, "models_usage", None)) is not None:
                    yield Usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens)
                # The task itself comes back first.
                if isinstance(message, self._messages.BaseChatMessage) and message not in asked:
                    answer = _answer(message)
                    if self._is_team:
                        await turn.ctx.progress(message=message.source)
        kept.state = await self._runner.save_state()
        self._current, self._unfinished = turn.conversation, False
        yield Answer(answer)

    async def _turn_to(self, conversation: ConversationKey, kept: _Kept) -> None:
        known, self._current = self._current, None
        broken, self._unfinished = self._unfinished, True
        if known == conversation:
            return
        if self._is_team:
            if broken:
                _renew(self._runner, self._core)
            await self._runner.reset()
        else:
            await self._runner.on_reset(self._core.CancellationToken())
        if kept.state is not None:
            await self._runner.load_state(kept.state)

    def _earlier(self, turn: Turn) -> list[Any]:
        """What the hub knows of a conversation that is new here."""
        return [
            self._messages.TextMessage(content=said.text, source="user" if said.role == "user" else "assistant")
            for said in turn.ctx.history
            if said.text
        ]

    def _said(self, turn: Turn) -> Any:
        pictures = [self._picture(file.bytes) for file in turn.files if file.bytes and _is_picture(file)]
        if pictures:
            return self._messages.MultiModalMessage(content=[turn.text, *pictures], source="user")
        return self._messages.TextMessage(content=turn.text, source="user")

    def _picture(self, raw: bytes) -> Any:
        return self._core.Image.from_base64(b64encode(raw).decode())


def _token(core: Any) -> Any:
    """What stops all that a run has set going, as soon as the wait for its next message is cancelled."""
    token = core.CancellationToken()
    link = token.link_future

    def stop(waited: asyncio.Future[Any]) -> None:
        if waited.cancelled():
            token.cancel()

    def linked(future: asyncio.Future[Any]) -> asyncio.Future[Any]:
        future.add_done_callback(stop)
        return link(future)

    token.link_future = linked
    return token


def _renew(team: Any, core: Any) -> None:
    """Give a team that was stopped in the middle a runtime of its own again: the old one waits for what was stopped.

    Teams in it have theirs. One that a caller gave to the team is the caller's.
    """
    for member in getattr(team, "_participants", ()):
        _renew(member, core)
    if getattr(team, "_embedded_runtime", False):
        team._runtime = core.SingleThreadedAgentRuntime(ignore_unhandled_exceptions=False)
        team._initialized = False


def _is_picture(file: File) -> bool:
    return (file.mime_type or "").startswith("image/")


def _answer(message: Any) -> object:
    """What a message says: a value, words and pictures, or words."""
    content = message.content
    if hasattr(content, "model_dump"):
        return content
    if isinstance(content, list):
        return [_part(each) for each in content]  # pyright: ignore[reportUnknownVariableType] - of whatever
    return message.to_text()


def _part(value: Any) -> Text | File:
    if isinstance(value, str):
        return Text(value)
    return File(bytes=b64decode(value.to_base64()), name="image.png", mime_type="image/png")
