"""What an adapter gives: one object of another framework as the skills of an agent, and each turn as pieces.

    wrapped(obj, options) ─▶ Wrapped: name, skills ─▶ Offer.run(turn) ─▶ Chunk, Made, Usage, … and at last Answer

An adapter is a file of this folder with the function `wrapped`; `known.py` says which objects it is for. Everything
else is done once, for all of them, by `sdk/wrap.py`: the skill and its card, locks, one object per call or per
conversation, what pieces become. What else a run has to say or to ask goes through `turn.ctx`: `await ctx.ask(…)` for
the framework's questions, `ctx.progress`, `ctx.refuse`. Who cancels the call cancels the task that `run` is iterated
in: pass CancelledError on, and let `in_thread` wait for what cannot be stopped.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, ParamSpec, Protocol, TypeVar

import msgspec

from dragoman.model.json import JsonObject
from dragoman.sdk.content import Data, File, Message, Text
from dragoman.sdk.work.context import Context
from dragoman.sdk.work.questions import words_of

Per = Literal["shared", "call", "conversation"]
ConversationKey = tuple[str, str]  # whose conversation it is, and its id: two callers may use the same id

P = ParamSpec("P")
R = TypeVar("R")

# Apart from the loop's own, which looks up names: what blocks here keeps no connection waiting.
_THREADS: Final = ThreadPoolExecutor(32, thread_name_prefix="dragoman-wrapped")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `Agent.wrap` was told beside the object."""

    name: str | None = None
    id: str | None = None
    description: str | None = None
    skill: str = "chat"
    per: Per = "shared"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the wrapped object: what was said, and the call's Context."""

    message: Message
    input: JsonObject  # by the offer's input schema; of a message in words {"text": …}
    ctx: Context

    @property
    def text(self) -> str:
        """What was said in words: its text, and data beside it as JSON; of data alone its only text, else its JSON."""
        parts = self.message.parts
        if not self.message.text or not any(isinstance(part, Data) for part in parts):
            return words_of(self.message)
        said = (part for part in parts if not isinstance(part, File))
        return "\n".join(
            part.text if isinstance(part, Text) else msgspec.json.encode(part.value).decode() for part in said
        )

    @property
    def files(self) -> tuple[File, ...]:
        """The files that came with it."""
        return self.message.files

    @property
    def conversation(self) -> ConversationKey:
        """Which conversation it belongs to."""
        return self.ctx.caller.id, self.ctx.conversation_id


class Chunk(msgspec.Struct, frozen=True):
    """Some more words of the answer."""

    text: str


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """An output beside the answer; with `append`, a further piece of the one of that id."""

    content: object  # whatever a handler may return: text, data, File, a list of parts
    name: str | None = None
    id: str | None = None
    mime_type: str | None = None
    append: bool = False
    last: bool = True


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was used up since the last of these."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    model: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """The whole answer, the last piece: whatever a handler may return.

    Words that are the chunks together are not told twice; any other value takes their place. None: the chunks are it.
    """

    value: object


Piece = Chunk | Made | Usage | Answer
Run = Callable[[Turn], AsyncIterator[Piece]]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One skill of a wrapped object. Without an input schema it takes messages in words."""

    run: Run
    name: str | None = None  # None: what the option `skill` says
    description: str = ""
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None


class Wrapped(msgspec.Struct, frozen=True, kw_only=True):
    """An object of another framework, as the core of `Agent.wrap` takes it.

    `concurrency` 1 says that the object can do one call at a time: a shared one is locked, and its card says so.
    `conversational` ones do one call at a time in each conversation.
    """

    name: str
    skills: tuple[Offer, ...]
    description: str | None = None
    concurrency: int | None = None
    conversational: bool = True


class Adapter(Protocol):
    """A file of this folder."""

    def wrapped(self, obj: object, options: Options) -> Wrapped:
        """The object as skills. Raises TypeError for one that it can do nothing with."""
        ...


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a blocking function gives, run in a thread. A thread cannot be stopped: who cancels this waits for its end,
    so that an object is free again when its lock is.
    """
    context = contextvars.copy_context()

    def call() -> R:
        try:
            return context.run(function, *args, **kwargs)
        except StopIteration as error:  # It would be lost on the way out of the thread.
            raise RuntimeError("StopIteration") from error

    running = asyncio.get_running_loop().run_in_executor(_THREADS, call)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
