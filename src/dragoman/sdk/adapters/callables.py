"""Any callable as an agent: `def`, `async def`, either with `yield`, or an object with `__call__`.

One parameter in words (a `str`, or without a type) is given what the message says; otherwise the parameters are the
skill's input, by their types. Parameters annotated `Context` and `Message` are handed in.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing
from typing import Any, Final, cast

from dragoman.sdk.adapters.adapter import Answer, Chunk, Made, Offer, Options, Piece, Turn, Wrapped, in_thread
from dragoman.sdk.agent.signature import Bound, Function, Handed, Signature, description_of, is_async, name_of
from dragoman.sdk.work.returned import PARTS_ARTIFACT

_NOTHING: Final = object()


def wrapped(obj: object, options: Options) -> Wrapped:
    """A callable as one skill. Raises TypeError naming the parameter whose type has no JSON form."""
    function = cast("Function", obj)
    name = name_of(function)
    described = description_of(function)
    callee = _Callee(function, Signature(function, name=options.skill))
    return Wrapped(
        name=name,
        description=described or None,
        skills=(
            Offer(
                run=callee.run,
                description=described,
                input_schema=None if callee.in_words else callee.signature.input_schema,
                output_schema=callee.signature.output_schema,
            ),
        ),
        conversational=False,
    )


class _Callee:
    """A function, and how it is called."""

    def __init__(self, function: Function, signature: Signature) -> None:
        self.signature = signature
        self._function = function
        own = [each for each in signature.parameters if each.handed is None]
        takes_rest = signature.input_schema.get("additionalProperties") is not None
        words = len(own) == 1 and (own[0].kind is str or own[0].kind is Any)
        self._word = own[0].name if words else None
        self.in_words = not takes_rest and (words or not own)

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        bound = self._bound(turn)
        if is_async(self._function):
            value = self._function(*bound.args, **bound.kwargs)
        else:
            value = await in_thread(self._function, *bound.args, **bound.kwargs)
        if inspect.isawaitable(value):
            value = await value
        if isinstance(value, Iterator):
            value = _drawn(cast("Iterator[object]", value))
        if isinstance(value, AsyncIterator):
            async with aclosing(_streamed(cast("AsyncIterator[object]", value))) as pieces:
                async for piece in pieces:
                    yield piece
        else:
            yield Answer(value)

    def _bound(self, turn: Turn) -> Bound:
        handed: dict[Handed, object] = {Handed.CONTEXT: turn.ctx, Handed.MESSAGE: turn.message}
        given = {self._word: turn.text} if self.in_words and self._word else turn.input
        return self.signature.bind(given, handed)


async def _drawn(values: Iterator[object]) -> AsyncIterator[object]:
    """What a plain generator yields, each value drawn in a thread."""
    while (value := await in_thread(next, values, _NOTHING)) is not _NOTHING:
        yield value


async def _streamed(values: AsyncIterator[object]) -> AsyncGenerator[Piece]:
    """Words as they come; a last value that is something else is the answer, those before it are parts beside it."""
    held: object = None
    parts = 0
    async with AsyncExitStack() as stack:
        if isinstance(values, AsyncGenerator):
            stack.push_async_callback(values.aclose)
        async for value in values:
            if held is not None:
                yield Made(content=held, id=PARTS_ARTIFACT, append=parts > 0, last=False)
                held, parts = None, parts + 1
            if isinstance(value, str):
                yield Chunk(value)
            else:
                held = value
    yield Answer(held)
