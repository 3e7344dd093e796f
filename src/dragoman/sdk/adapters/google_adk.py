"""Google ADK: an agent, an app or a runner. Each conversation is a session; partial events are chunks of the answer.

An agent or an app gets a runner of its own, whose sessions are in memory and go with their conversation. A runner that
is handed in keeps its sessions where it keeps them.
"""

import contextlib
import importlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any, Final, final

import msgspec

from dragoman.model.errors import AgentError
from dragoman.model.json import JsonObject
from dragoman.sdk.adapters.adapter import (
    Answer,
    Chunk,
    ConversationKey,
    Made,
    Offer,
    Options,
    Piece,
    Turn,
    Usage,
    Wrapped,
)
from dragoman.sdk.adapters.conversations import CONVERSATIONS, TURNS
from dragoman.sdk.agent.schema import is_model, output_schema_of, schema_of
from dragoman.sdk.content import File, Text

_ANY_FILE: Final = "application/octet-stream"


def wrapped(obj: object, options: Options) -> Wrapped:
    """Anything that a runner runs, or a runner."""
    adk = _Adk(obj)
    return Wrapped(
        name=adk.root.name,
        description=getattr(adk.root, "description", None) or None,
        skills=(Offer(run=adk.run, input_schema=adk.input_schema, output_schema=adk.output_schema),),
    )


@final
class _Adk:
    """One runner and the sessions of its conversations."""

    def __init__(self, obj: Any) -> None:
        self.runner, own = _runner_of(obj)
        self.root: Any = self.runner.agent
        self.input_schema, self.output_schema = _schemas(self.root)
        self._sessions = _Sessions(self.runner, in_memory=own)
        self._types: Any = importlib.import_module("google.genai.types")
        config: Any = importlib.import_module("google.adk.agents.run_config")
        self._streaming: Any = config.RunConfig(streaming_mode=config.StreamingMode.SSE)

    async def run(self, turn: Turn) -> AsyncIterator[Piece]:
        """One invocation, in the session of the turn's conversation."""
        user_id, session_id = await self._sessions.of(turn)
        events: AsyncGenerator[Any] = self.runner.run_async(
            user_id=user_id, session_id=session_id, new_message=self._said(turn), run_config=self._streaming
        )
        answer: object = None
        failed: str | None = None
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                if event.partial:
                    if text := _text(event):
                        yield Chunk(text)
                    continue
                if event.usage_metadata is not None:
                    yield _usage(event)
                for name, version in event.actions.artifact_delta.items():
                    if (file := await self._artifact(user_id, session_id, name, version)) is not None:
                        yield Made(content=file, name=name)
                failed = event.error_code or failed
                if (said := _answer(event)) is not None:
                    answer, failed = said, None
        if failed is not None:
            raise AgentError(f"The model of {self.root.name} gave no answer: {failed}.", error=failed)
        yield Answer(answer if self.output_schema is None else _decoded(answer))

    def _said(self, turn: Turn) -> Any:
        words = turn.text if self.input_schema is None else msgspec.json.encode(turn.input).decode()
        parts = [self._types.Part(text=words)] if words else []
        return self._types.Content(role="user", parts=[*parts, *(self._file(file) for file in turn.files)])

    def _file(self, file: File) -> Any:
        kind = file.mime_type or _ANY_FILE
        if file.bytes is None:
            return self._types.Part.from_uri(file_uri=file.uri, mime_type=kind)
        return self._types.Part.from_bytes(data=file.bytes, mime_type=kind)

    async def _artifact(self, user_id: str, session_id: str, name: str, version: int) -> File | None:
        part = await self.runner.artifact_service.load_artifact(
            app_name=self.runner.app_name, user_id=user_id, session_id=session_id, filename=name, version=version
        )
        return None if part is None or part.inline_data is None else _inline(part, name)


@final
class _Sessions:
    """The sessions of conversations. Those that are kept in memory are bounded: the one unused for longest goes first,
    and of one that is kept the newest turns remain.
    """

    def __init__(self, runner: Any, *, in_memory: bool) -> None:
        self._runner = runner
        self._service: Any = runner.session_service
        self._in_memory = in_memory
        self._turns: OrderedDict[ConversationKey, int] = OrderedDict()  # since it was known, or shortened

    async def of(self, turn: Turn) -> ConversationKey:
        """The user and the session of a turn; a new session begins with what the hub knows of the conversation."""
        key = turn.conversation
        if key not in self._turns:
            if await self._service.get_session(**self._named(key)) is None:
                await self._begun(await self._service.create_session(**self._named(key)), turn)
            self._turns[key] = 0
        self._turns[key] += 1
        self._turns.move_to_end(key)
        if self._in_memory and self._turns[key] > 2 * TURNS:
            await self._shorten(key)
        if len(self._turns) > CONVERSATIONS:
            oldest, _ = self._turns.popitem(last=False)
            if self._in_memory:
                await self._service.delete_session(**self._named(oldest))
        return key

    async def _shorten(self, key: ConversationKey) -> None:
        session = await self._service.get_session(**self._named(key))
        begins = [place for place, event in enumerate(session.events) if event.author == "user"]
        await self._service.delete_session(**self._named(key))
        fresh = await self._service.create_session(**self._named(key), state=session.state)
        for event in session.events[begins[-TURNS] :]:
            await self._service.append_event(fresh, event)
        self._turns[key] = TURNS

    async def _begun(self, session: Any, turn: Turn) -> None:
        types: Any = importlib.import_module("google.genai.types")
        events: Any = importlib.import_module("google.adk.events.event")
        for earlier in turn.ctx.history:
            if earlier.text:
                author, role = ("user", "user") if earlier.role == "user" else (self._runner.agent.name, "model")
                content = types.Content(role=role, parts=[types.Part(text=earlier.text)])
                await self._service.append_event(session, events.Event(author=author, content=content))

    def _named(self, key: ConversationKey) -> dict[str, str]:
        return {"app_name": self._runner.app_name, "user_id": key[0], "session_id": key[1]}


def _runner_of(obj: Any) -> tuple[Any, bool]:
    """The runner of an object, and whether it was made here."""
    runners: Any = importlib.import_module("google.adk.runners")
    if isinstance(obj, runners.Runner):
        return obj, False
    if isinstance(obj, runners.BaseAgent):
        return runners.InMemoryRunner(agent=obj, app_name=obj.name), True
    if hasattr(obj, "root_agent"):
        return runners.InMemoryRunner(app=obj), True
    if hasattr(obj, "rerun_on_resume"):
        return runners.InMemoryRunner(node=obj, app_name=obj.name), True
    raise TypeError(f"A {type(obj).__qualname__} of Google ADK does not run by itself: wrap an agent, App or Runner.")


def _schemas(root: Any) -> tuple[JsonObject | None, JsonObject | None]:
    """What an agent takes and gives, where it says so."""
    taken, given = getattr(root, "input_schema", None), getattr(root, "output_schema", None)
    return schema_of(taken) if is_model(taken) else None, None if given is None else output_schema_of(given)


def _usage(event: Any) -> Usage:
    used = event.usage_metadata
    return Usage(
        input_tokens=used.prompt_token_count or 0,
        output_tokens=(used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
        model=event.model_version,
    )


def _answer(event: Any) -> object:
    """What an event answers with: the output of a node, else its words and files. None: it is on the way to it."""
    output = getattr(event, "output", None)  # there are none before version 2
    if output is not None:
        return output
    if not event.is_final_response():
        return None
    files = [_inline(part, part.inline_data.display_name) for part in _parts(event) if part.inline_data is not None]
    text = _text(event)
    if files:
        return [*([Text(text)] if text else []), *files]
    return text or None


def _text(event: Any) -> str:
    return "".join(part.text for part in _parts(event) if part.text and not part.thought)


def _parts(event: Any) -> Iterable[Any]:
    return (event.content.parts or ()) if event.content is not None else ()


def _inline(part: Any, name: str | None) -> File:
    return File(bytes=part.inline_data.data or b"", name=name, mime_type=part.inline_data.mime_type)


def _decoded(answer: object) -> object:
    """An answer that is to be JSON; as it is where it is none."""
    try:
        return msgspec.json.decode(answer) if isinstance(answer, str) else answer
    except msgspec.DecodeError:
        return answer
