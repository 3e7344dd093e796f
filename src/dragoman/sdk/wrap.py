"""`Agent.wrap`: an object of another framework as an agent.

    obj ─ known.py: whose is it? ─▶ adapters/FILE.py: wrapped ─▶ its offers as skills; a call is one `run` of an offer

Here is what all adapters share: which object a call is for (the one there is, one per call, one per conversation), who
waits for whom, and what becomes of the pieces of a run. Nothing of a framework is imported before an object of it came.
"""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final, TypeVar, assert_never, cast, get_args

from dragoman.model.json import is_object
from dragoman.sdk.adapters.adapter import Adapter, Answer, Chunk, Made, Offer, Options, Per, Piece, Turn, Usage, Wrapped
from dragoman.sdk.adapters.conversations import Conversations
from dragoman.sdk.adapters.known import KNOWN
from dragoman.sdk.agent.agent import DEFAULT_CONCURRENCY, Agent, hidden_of
from dragoman.sdk.agent.signature import Function, Signature
from dragoman.sdk.agent.skills import CHAT, CHAT_INPUT, Skill, Takes
from dragoman.sdk.content import Message
from dragoman.sdk.work.context import Context

AgentT = TypeVar("AgentT", bound=Agent)

_ADAPTERS: Final = "dragoman.sdk.adapters"


def wrap(cls: type[AgentT], obj: object, options: Options) -> AgentT:
    """The agent. Raises TypeError for an object that nothing here knows, ValueError for an option that is none."""
    objects = _Objects(obj, options)
    wrapped = objects.first
    shared_limit = wrapped.concurrency if options.per == "shared" else None
    agent = cls(
        options.name or wrapped.name,
        id=options.id,
        description=options.description or wrapped.description,
        concurrency=shared_limit or DEFAULT_CONCURRENCY,
        rate_limits={"concurrent_requests": shared_limit} if shared_limit else None,
    )
    for place, offer in enumerate(wrapped.skills):
        skill = _skill(offer, agent, options, objects, place)
        if skill.name == CHAT and skill.takes is Takes.MESSAGE:
            hidden_of(agent).chat = skill
        else:
            hidden_of(agent).skills[skill.name] = skill
    return agent


def adapted(obj: object, options: Options) -> Wrapped:
    """An object as its adapter gives it. Raises TypeError that lists what there is, for one that has none."""
    for known in KNOWN:
        if known.recognises(obj):
            adapter = cast("Adapter", importlib.import_module(f"{_ADAPTERS}.{known.file}"))
            return adapter.wrapped(obj, options)
    listed = ", ".join(known.name for known in KNOWN)
    kind = type(obj)
    raise TypeError(
        f"Agent.wrap cannot tell what to do with a {kind.__module__}.{kind.__qualname__}. It knows: {listed}."
    )


class _Objects:
    """The objects that calls are for, and who waits: one call at a time for an object that can do no more, and in each
    conversation of one that remembers.
    """

    def __init__(self, obj: object, options: Options) -> None:
        per = _checked(options.per)
        if per == "shared":
            if isinstance(obj, type):
                raise TypeError(
                    f"{obj.__qualname__} is a class: wrap one of its objects, "
                    f'or pass per="call" or per="conversation" to have one made for each.'
                )
            make: Callable[[], Wrapped] = lambda: adapted(obj, options)  # noqa: E731 - one of two
        else:
            make = lambda: adapted(_made(obj, per), options)  # noqa: E731 - the other
        self.first = make()  # also made for a factory: its name and skills are the agent's
        self._per = per
        self._make = make
        most = self.first.concurrency if per == "shared" else None
        self._turns: contextlib.AbstractAsyncContextManager[Any] = (
            contextlib.nullcontext() if most is None else asyncio.Semaphore(most)
        )
        self._talks: Conversations[asyncio.Lock] = Conversations(asyncio.Lock)
        self._by_talk: Conversations[Wrapped] = Conversations(make)

    @contextlib.asynccontextmanager
    async def taken(self, turn: Turn) -> AsyncGenerator[Wrapped]:
        """The object for a call, when it is that call's turn."""
        if self._per == "call":
            yield self._make()
            return
        remembers = self._per == "conversation" or self.first.conversational
        talk = self._talks.of(turn.conversation) if remembers else contextlib.nullcontext()
        async with talk, self._turns:
            yield self._by_talk.of(turn.conversation) if self._per == "conversation" else self.first


def _skill(offer: Offer, agent: Agent, options: Options, objects: _Objects, place: int) -> Skill:
    """An offer as a skill, whose function lets the right object do it."""

    async def carried_out(message: Message, ctx: Context, given: dict[str, Any] | None) -> object:
        said = message.data
        turn = Turn(
            message=message,
            input=given if given is not None else said if is_object(said) else {"text": message.text},
            ctx=ctx,
        )
        async with objects.taken(turn) as wrapped:
            return await _told(wrapped.skills[place].run(turn), ctx)

    async def with_message(message: Message, ctx: Context) -> object:
        return await carried_out(message, ctx, None)

    async def with_input(message: Message, ctx: Context, /, **given: Any) -> object:
        return await carried_out(message, ctx, given)

    words = offer.input_schema is None
    function: Function = with_message if words else with_input
    name = offer.name or options.skill
    return Skill(
        name=name,
        function=function,
        description=offer.description or agent.description or "Answers messages",
        takes=Takes.MESSAGE if words else Takes.INPUT,
        signature=Signature(function, name=name),
        input_schema=CHAT_INPUT if words else offer.input_schema,
        output_schema=offer.output_schema,
    )


async def _told(pieces: AsyncIterator[Piece], ctx: Context) -> object:
    """Tell the caller each piece as it comes; returns the answer."""
    answer: object = None
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(pieces, AsyncGenerator):
            stack.push_async_callback(pieces.aclose)
        async for piece in pieces:
            match piece:
                case Chunk(text):
                    await ctx.stream(text)
                case Made():
                    await ctx.artifact(
                        piece.content,
                        name=piece.name,
                        id=piece.id,
                        mime_type=piece.mime_type,
                        append=piece.append,
                        last=piece.last,
                    )
                case Usage():
                    ctx.usage(
                        input_tokens=piece.input_tokens,
                        output_tokens=piece.output_tokens,
                        cost_usd=piece.cost_usd,
                        model=piece.model,
                    )
                case Answer(value):
                    answer = value
                case _ as never:
                    assert_never(never)
    return answer


def _checked(per: str) -> Per:
    if per not in get_args(Per):
        raise ValueError(f'per is "shared", "call" or "conversation"; this is {per!r}.')
    return cast("Per", per)


def _made(factory: object, per: Per) -> object:
    """One more object. Raises TypeError where the factory is none."""
    if not callable(factory):
        raise TypeError(
            f'per="{per}" needs something that makes the object, a class or a function without parameters; '
            f"this is a {type(factory).__qualname__}."
        )
    made: object = factory()
    if asyncio.iscoroutine(made):
        made.close()
        raise TypeError(f'per="{per}" needs a plain function that makes the object, not an async one.')
    return made
