"""LangGraph's compiled graphs, and LangChain's agents, which are such graphs.

A graph whose state has `messages` is talked to; any other takes its input by its schema and answers with its state.
The conversation is the graph's thread where it has a checkpointer; otherwise its messages are kept here. An interrupt
is a question to the caller. Nodes written as plain functions run in threads of LangGraph, which nothing stops.
"""

import importlib
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any, Final, cast

import msgspec

from dragoman.model.errors import AgentError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.adapters.adapter import Answer, Chunk, Offer, Options, Piece, Turn, Usage, Wrapped
from dragoman.sdk.adapters.conversations import Histories
from dragoman.sdk.agent.schema import schema_of
from dragoman.sdk.content import File

MESSAGES: Final = "messages"
INTERRUPTED: Final = "__interrupt__"
STRUCTURED: Final = "structured_response"  # where LangChain's agents put what `response_format` asks for

_MODES: Final = ["messages", "values"]
_UNNAMED: Final = "LangGraph"  # what a graph is called that was given no name
_QUESTION: Final = ("question", "prompt", "message", "query")


def wrapped(obj: object, options: Options) -> Wrapped:
    """A graph as one skill. Raises TypeError for a graph that is not compiled."""
    graph = cast("Any", obj)
    if not callable(getattr(graph, "astream", None)):
        raise TypeError(f"A {type(obj).__qualname__} does not run by itself. Compile it first: graph.compile()")
    name = getattr(graph, "name", None)
    run = _Graph(graph)
    return Wrapped(
        name=name if isinstance(name, str) and name not in ("", _UNNAMED) else "Graph",
        skills=(
            Offer(
                run=run.talk if run.talks else run.work,
                input_schema=None if run.talks else _schema(graph, "input"),
                # Whatever `response_format` a LangChain agent has, its graph does not say.
                output_schema=None if run.talks else _partial(_schema(graph, "output")),
            ),
        ),
    )


class _Graph:
    """A graph that runs."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.talks = MESSAGES in (getattr(graph, "channels", None) or {MESSAGES: None})
        self._keeps = getattr(graph, "checkpointer", None) not in (None, False)
        self._histories = Histories()

    async def talk(self, turn: Turn) -> AsyncIterator[Piece]:
        """Say what was said; the last message is the answer, or what the agent was to fill in."""
        # By its id a message that is delivered twice takes its own place in the thread.
        said: JsonObject = {"role": "user", "content": _content(turn), "id": turn.ctx.call_id}
        before = [] if self._keeps else self._histories.of(turn, _message)
        state: Json = None
        async with aclosing(self._run(turn, {MESSAGES: [*before, said]})) as pieces:
            async for piece in pieces:
                if isinstance(piece, Answer):
                    state = piece.value
                else:
                    yield piece
        messages: list[Any] = list(state[MESSAGES]) if is_object(state) and MESSAGES in state else []
        if not self._keeps:
            self._histories.add(turn, before, messages[len(before) :])
        structured: object = state.get(STRUCTURED) if is_object(state) else None
        if structured is not None:
            yield Answer(structured)
        elif messages:
            yield Answer(_text(messages[-1]))

    async def work(self, turn: Turn) -> AsyncIterator[Piece]:
        """Let it work on an input; its last state is the answer."""
        async with aclosing(self._run(turn, turn.input)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, Chunk):  # What a model says on the way is no part of a state.
                    yield piece

    async def _run(self, turn: Turn, given: object) -> AsyncGenerator[Piece]:
        """One run, with as many questions as it has; its last state is the answer."""
        config = {"configurable": {"thread_id": "/".join(turn.conversation)}}
        while True:
            state: Json = None
            try:
                async with aclosing(self._graph.astream(given, config, stream_mode=_MODES)) as events:
                    async for mode, told in events:
                        if mode == "values":
                            state = told
                        else:
                            for piece in _pieces(told[0]):
                                yield piece
            except _langgraph("errors").GraphRecursionError as error:
                raise AgentError("The graph took more steps than it may without an end.") from error
            interrupts: Iterable[Any] = state.get(INTERRUPTED, ()) if is_object(state) else ()
            if not interrupts:
                yield Answer(state)
                return
            if not self._keeps:
                raise AgentError("The graph has a question, and no checkpointer to go on after it with.")
            answers = {each.id: await _asked(turn, each) for each in interrupts}
            given = _langgraph("types").Command(resume=answers)


async def _asked(turn: Turn, interrupt: Any) -> object:
    """What the caller says to an interrupt: data where it sends some, else words."""
    wanted: Json = getattr(interrupt, "response_schema", None)
    return await turn.ctx.ask(_question(interrupt.value), wanted if isinstance(wanted, type) else cast("object", Any))


def _question(value: Json) -> str:
    if isinstance(value, str):
        return value
    if is_object(value):
        found = next((value[name] for name in _QUESTION if isinstance(value.get(name), str)), None)
        if found is not None:
            return found
    return msgspec.json.encode(value, enc_hook=str).decode()


def _pieces(message: Any) -> Iterable[Piece]:
    """What a message of a model, or a piece of one, says and cost."""
    if getattr(message, "type", None) not in ("ai", "AIMessageChunk"):
        return
    if text := _text(message):
        yield Chunk(text)
    used: Json = getattr(message, "usage_metadata", None)
    if used:
        about: Json = getattr(message, "response_metadata", None)
        model: Json = about.get("model_name") if is_object(about) else None
        yield Usage(
            input_tokens=used.get("input_tokens", 0),
            output_tokens=used.get("output_tokens", 0),
            model=model if isinstance(model, str) else None,
        )


def _text(message: Any) -> str:
    """Its words; what else is in its content (calls of tools, thoughts) is not said to callers."""
    content = message.content
    if isinstance(content, str):
        return content
    texts = [each if isinstance(each, str) else each.get("text", "") for each in content if _is_text(each)]
    return "".join(texts)


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or block.get("type") == "text"


def _content(turn: Turn) -> str | list[JsonObject]:
    if not turn.files:
        return turn.text
    return [*([{"type": "text", "text": turn.text}] if turn.text else []), *(_block(file) for file in turn.files)]


def _block(file: File) -> JsonObject:
    """A file as LangChain's content has it."""
    kind = (file.mime_type or "").partition("/")[0]
    shown: JsonObject = {"type": kind if kind in ("image", "audio", "video") else "file"}
    shown |= {"url": file.uri} if file.bytes is None else {"base64": b64encode(file.bytes).decode()}
    return shown | ({"mime_type": file.mime_type} if file.mime_type else {})


def _message(is_user: bool, text: str) -> JsonObject:
    return {"role": "user" if is_user else "assistant", "content": text}


def _langgraph(module: str) -> Any:
    return importlib.import_module(f"langgraph.{module}")


# -- what it takes and gives


def _schema(graph: Any, side: str) -> JsonObject:
    """The schema of its input or output. Pydantic has none for `typing.TypedDict` before Python 3.12; msgspec may."""
    try:
        return getattr(graph, f"get_{side}_jsonschema")()
    except Exception:  # noqa: BLE001 - pydantic's own errors, and those of the types that somebody wrote
        kind = getattr(getattr(graph, "builder", None), f"{side}_schema", None)
    try:
        return schema_of(kind) if isinstance(kind, type) else {"type": "object"}
    except TypeError:
        return {"type": "object"}


def _partial(schema: JsonObject) -> JsonObject:
    """A state may lack what no node has written."""
    return {name: value for name, value in schema.items() if name != "required"}
