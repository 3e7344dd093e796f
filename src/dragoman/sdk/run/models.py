"""What a model is to an agent: something that is asked with a `ModelRequest` and answers with a `ModelReply`.

Any async function will do, or one that yields pieces of the text before its reply. Two are at hand:
`chat_completions` speaks to any server of that widespread interface, `scripted` says what it was told to.
"""

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.model.errors import AgentError
from dragoman.model.events import Usage
from dragoman.model.json import Json, JsonObject
from dragoman.model.secret import Secret
from dragoman.sdk.errors import NoModel

__all__ = [
    "Model",
    "ModelFailed",
    "ModelMessage",
    "ModelReply",
    "ModelRequest",
    "ToolCall",
    "ToolSchema",
    "Usage",
    "chat_completions",
    "scripted",
]

URL_SETTING: Final = "DRAGOMAN_MODEL_URL"
KEY_SETTING: Final = "DRAGOMAN_MODEL_KEY"

_WORDS: Final = re.compile(r"\s*\S+\s*|\s+")


class ModelFailed(AgentError):
    """The model gave no usable answer."""


class _Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class ToolCall(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that the model wants called. `arguments` is an object, or what the model wrote where it wrote none."""

    name: str
    arguments: Json = {}
    id: str = ""


class ModelMessage(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """One turn: what the user said, what the model answered, or what came of a tool call (`tool_call_id`)."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class ToolSchema(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as the model sees it."""

    name: str
    description: str = ""
    input_schema: JsonObject = {}


class ModelRequest(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a model is asked.

    `output_schema`: the answer is to be JSON of this shape. `final`: it must answer now, without tools. `deadline` is
    on the monotonic clock.
    """

    messages: tuple[ModelMessage, ...]
    instructions: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    output_schema: JsonObject | None = None
    final: bool = False
    deadline: float | None = None


class ModelReply(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a model answers: text, tools that it wants called first, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str | None = None


Said: TypeAlias = AsyncIterator[str | ModelReply] | Awaitable[ModelReply | str]
Model: TypeAlias = Callable[[ModelRequest], Said]


def chat_completions(url: str, name: str, api_key: str | Secret | None = None) -> Model:
    """The model of that name at a server that has `/chat/completions`, such as `http://127.0.0.1:11434/v1`."""
    # Brings the HTTP client, which a scripted model does not need.
    from dragoman.sdk.run.chat import ChatCompletions

    return ChatCompletions(url, name, api_key)


def scripted(replies: "Iterable[Scripted]") -> "ScriptedModel":
    """A model that gives these replies one after the other, for tests and demonstrations.

    A reply is a text, a `ToolCall` or several, a whole `ModelReply`, an exception to raise, or a function of the
    request that returns one of these.
    """
    return ScriptedModel(replies)


Plain: TypeAlias = "str | ToolCall | Iterable[ToolCall] | ModelReply | Exception"
Scripted: TypeAlias = "Plain | Callable[[ModelRequest], Plain]"


@final
class ScriptedModel:
    """Says what it was told to; `requests` holds what it was asked."""

    def __init__(self, replies: "Iterable[Scripted]") -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply]:
        """The next reply, its text word by word first. Raises ModelFailed after the last."""
        if len(self.requests) == len(self._replies):
            raise ModelFailed(f"The script is over: it has {len(self._replies)} replies.", reason="script_over")
        scripted = self._replies[len(self.requests)]
        self.requests.append(request)
        reply = _reply(scripted(request) if callable(scripted) else scripted)
        for word in _WORDS.findall(reply.text):
            yield word
        yield reply


def model_named(name: str) -> Model:
    """The model of that name at the place which the environment names. Raises NoModel."""
    url = os.environ.get(URL_SETTING)
    if not url:
        raise NoModel(
            f'the model "{name}" has no place', next=f"Set {URL_SETTING}, or pass models.chat_completions(…)."
        )
    return chat_completions(url, name, os.environ.get(KEY_SETTING) or None)


async def asked(model: Model, request: ModelRequest) -> AsyncGenerator[str | ModelReply]:
    """Ask any kind of model: pieces of its text, if it gives any, then exactly one reply."""
    said = model(request)
    if not isinstance(said, AsyncIterator):
        reply = _reply(await said)
        if reply.text:
            yield reply.text
        yield reply
        return
    pieces: list[str] = []
    try:
        async for piece in said:
            if isinstance(piece, ModelReply):
                if piece.text and not pieces:
                    yield piece.text
                text = piece.text or "".join(pieces)
                yield msgspec.structs.replace(piece, text=text)
                return
            pieces.append(piece)
            yield piece
    finally:
        if isinstance(said, AsyncGenerator):
            await said.aclose()
    yield ModelReply(text="".join(pieces))


def _reply(said: "Plain") -> ModelReply:
    match said:
        case Exception():
            raise said
        case ModelReply():
            return said
        case str():
            return ModelReply(text=said)
        case ToolCall():
            return ModelReply(tool_calls=(said,))
        case _:
            return ModelReply(tool_calls=tuple(said))
