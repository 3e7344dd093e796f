"""LlamaIndex: agents and workflows, each conversation in a Context of its own; chat engines; query engines.

What a workflow writes to its stream is told as it comes: `delta` is a chunk of the answer, `msg` is progress, and an
InputRequiredEvent is a question to the caller.
"""

import contextlib
import importlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any, Final, final

import msgspec

from dragoman.sdk.adapters.adapter import Answer, Chunk, Offer, Options, Piece, Turn, Usage, Wrapped, in_thread
from dragoman.sdk.adapters.conversations import Conversations, Histories
from dragoman.sdk.agent.schema import output_schema_of, schema_of
from dragoman.sdk.content import File

_TYPES: Final = "llama_index.core.base.llms.types"
_AGENT_START: Final = "AgentWorkflowStartEvent"
_INPUT_TOKENS: Final = ("prompt_tokens", "input_tokens", "prompt_eval_count", "prompt_token_count")
_OUTPUT_TOKENS: Final = ("completion_tokens", "output_tokens", "eval_count", "candidates_token_count")


def wrapped(obj: object, options: Options) -> Wrapped:
    """An agent, a workflow, a chat engine or a query engine, by what it can do."""
    match obj:
        case _ if _can(obj, "aquery"):
            engine = _QueryEngine(obj)
            return Wrapped(name=_name(obj), skills=(Offer(run=engine.run),), conversational=False)
        case _ if _can(obj, "astream_chat"):
            return Wrapped(name=_name(obj), skills=(Offer(run=_ChatEngine(obj).run),), concurrency=1)
        case _ if _can(obj, "run") and hasattr(obj, "start_event_class"):
            workflow = _Workflow(obj)
            return Wrapped(
                name=_name(obj),
                description=workflow.description,
                skills=(
                    Offer(run=workflow.run, input_schema=workflow.input_schema, output_schema=workflow.output_schema),
                ),
            )
        case _:
            raise TypeError(
                f"A {type(obj).__qualname__} of LlamaIndex answers nothing by itself: "
                "wrap an agent, a workflow, a chat engine or a query engine (index.as_query_engine())."
            )


class _Talk(msgspec.Struct):
    """A conversation with a workflow: its Context, and an agent's memory, which a Context may lose on its way."""

    context: Any
    memory: Any = None
    begun: bool = False


@final
class _Workflow:
    """A workflow or an agent, which is one that takes `user_msg`."""

    def __init__(self, workflow: Any) -> None:
        self._workflow = workflow
        self._events: Any = importlib.import_module("workflows.events")
        contexts: Any = importlib.import_module("workflows.context")
        self._context = lambda: contexts.Context(workflow)
        self._talks: Conversations[_Talk] = Conversations(lambda: _Talk(self._context()))
        start, stop = workflow.start_event_class, workflow.stop_event_class
        self._is_agent = any(each.__name__ == _AGENT_START for each in start.__mro__)
        self.description: str | None = getattr(workflow, "description", None) or None
        # A workflow's own events say what it takes and gives; the plain ones take and give anything.
        self.input_schema = schema_of(start) if start.model_fields and not self._is_agent else None
        given = getattr(workflow, "output_cls", None) or (stop if stop.model_fields else None)
        self.output_schema = None if given is None else output_schema_of(given)

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One run, in the Context of the turn's conversation."""
        talk = self._talks.of(turn.conversation)
        handler = self._workflow.run(ctx=talk.context, **self._given(turn, talk))
        talk.begun = True
        try:
            async for event in handler.stream_events():
                async with contextlib.aclosing(self._told(event, handler, turn)) as pieces:
                    async for piece in pieces:
                        yield piece
            result = await handler
            talk.memory = await handler.ctx.store.get("memory", default=None)
            yield Answer(self._result(result))
        except BaseException:
            # A run that did not end leaves its Context in the middle of a step.
            talk.context = self._context()
            raise
        finally:
            if not handler.is_done():
                await handler.cancel_run()

    async def _told(self, event: Any, handler: Any, turn: Turn) -> AsyncGenerator[Piece]:
        if isinstance(event, self._events.InputRequiredEvent):
            asked = _fields(event)
            said = await turn.ctx.ask(str(asked.pop("prefix", None) or "The workflow needs an answer."))
            # What the question was marked with marks its answer: a step waits for that one.
            handler.ctx.send_event(self._events.HumanResponseEvent(**(asked | {"response": said})))
        elif isinstance(delta := getattr(event, "delta", None), str) and delta:
            yield Chunk(delta)
        elif isinstance(message := getattr(event, "msg", None), str):
            await turn.ctx.progress(message=message)
        elif hasattr(event, "response") and (used := _usage(getattr(event, "raw", None))) is not None:
            yield used

    def _given(self, turn: Turn, talk: _Talk) -> dict[str, Any]:
        if not self._is_agent:
            return dict(turn.input) if self.input_schema is not None else {"user_msg": turn.text, **turn.input}
        types: Any = importlib.import_module(_TYPES)
        given: dict[str, Any] = {"user_msg": _message(turn, types) if turn.files else turn.text, "memory": talk.memory}
        if not talk.begun and (earlier := [said for said in turn.ctx.history if said.text]):
            given["chat_history"] = [types.ChatMessage(role=_role(said.role), content=said.text) for said in earlier]
        return given

    def _result(self, result: Any) -> object:
        """What a run ended with: of an agent its structured answer, else its words; of any other the value."""
        if hasattr(result, "structured_response"):
            return str(result) if result.structured_response is None else result.structured_response
        return _fields(result) if isinstance(result, self._events.StopEvent) else result


@final
class _ChatEngine:
    """An engine that keeps one conversation: it is given each caller's before it answers."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._histories = Histories()
        self._types: Any = importlib.import_module(_TYPES)

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One turn of a chat."""
        before = self._histories.of(turn, self._said)
        response = await self._engine.astream_chat(turn.text, chat_history=list(before))
        words: AsyncGenerator[str] = response.async_response_gen()
        async with contextlib.aclosing(words) as chunks:
            async for chunk in chunks:
                yield Chunk(chunk)
        self._histories.add(turn, before, [self._said(True, turn.text), self._said(False, response.response)])
        yield Answer(None)

    def _said(self, by_user: bool, words: str) -> Any:
        return self._types.ChatMessage(role="user" if by_user else "assistant", content=words)


@final
class _QueryEngine:
    """An engine that answers each question for itself."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One question."""
        response = await self._engine.aquery(turn.text)
        if _can(response, "async_response_gen"):
            words: AsyncGenerator[str] = response.async_response_gen()
            async with contextlib.aclosing(words) as chunks:
                async for chunk in chunks:
                    yield Chunk(chunk)
            yield Answer(None)
        elif hasattr(response, "response_gen"):
            yield Answer(await in_thread(str, response))
        else:
            yield Answer(response.response)


def _can(obj: Any, name: str) -> bool:
    return callable(getattr(obj, name, None))


def _name(obj: Any) -> str:
    """What an agent is called; any other by its class."""
    name = getattr(obj, "name", None)
    return name if isinstance(name, str) and name != "Agent" else type(obj).__name__


def _fields(event: Any) -> dict[str, Any]:
    """What an event holds: the fields of its class and those that it was given beside them."""
    declared: Iterable[str] = event.__class__.model_fields
    return {name: getattr(event, name) for name in declared} | dict(event.items())


def _usage(raw: Any) -> Usage | None:
    """What a model's own answer says that it used. Each provider has its own words for it."""
    for place in ("usage", "usage_metadata", None):
        told = raw if place is None else _member(raw, place)
        taken, given = _count(told, _INPUT_TOKENS), _count(told, _OUTPUT_TOKENS)
        if taken or given:
            model = _member(raw, "model")
            return Usage(input_tokens=taken, output_tokens=given, model=model if isinstance(model, str) else None)
    return None


def _count(told: Any, names: tuple[str, ...]) -> int:
    return next((count for name in names if isinstance(count := _member(told, name), int)), 0)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - a provider's own


def _role(role: str) -> str:
    return "user" if role == "user" else "assistant"


def _message(turn: Turn, types: Any) -> Any:
    """What was said, with its files."""
    blocks = [types.TextBlock(text=turn.text)] if turn.text else []
    return types.ChatMessage(role="user", blocks=[*blocks, *(_block(file, types) for file in turn.files)])


def _block(file: File, types: Any) -> Any:
    kind = file.mime_type or ""
    if kind.startswith("image/"):
        return types.ImageBlock(image=file.bytes, url=file.uri, image_mimetype=kind)
    return types.DocumentBlock(data=file.bytes, url=file.uri, title=file.name, document_mimetype=kind or None)
