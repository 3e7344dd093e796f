"""The words of `/chat/completions`: a request put into them, and what an answer or its pieces say. Pure."""

from collections.abc import Iterable
from typing import Final, final

import msgspec

from dragoman.model.events import Usage
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.sdk.run.models import ModelFailed, ModelMessage, ModelReply, ModelRequest, ToolCall

MOST_CALLS: Final = 128
DONE: Final = b"[DONE]"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def body_of(request: ModelRequest, name: str, *, stream: bool) -> JsonObject:
    """The body of a request."""
    body: JsonObject = {"model": name, "messages": list(_messages(request))}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
            }
            for tool in request.tools
        ]
        if request.final:
            body["tool_choice"] = "none"
    if request.output_schema is not None:
        form = {"name": "output", "schema": request.output_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def reply_of(answer: Json) -> ModelReply:
    """What a whole answer says. Raises ModelFailed for what is none."""
    body: JsonObject = answer if is_object(answer) else {}
    _raise_told(body)
    message = _first(body).get("message")
    if not is_object(message):
        raise ModelFailed("The model's answer has no message.", reason="model_unreadable")
    calls = _Calls()
    calls.take(message.get("tool_calls"))
    return ModelReply(
        text=_text(message.get("content")) or _text(message.get("refusal")),
        tool_calls=calls.made(),
        usage=_usage(body.get("usage")),
        model=_named(body),
    )


@final
class Pieces:
    """A streamed answer, piece by piece."""

    def __init__(self) -> None:
        self.ended = False
        self._text: list[str] = []
        self._calls = _Calls()
        self._usage: Usage | None = None
        self._model: str | None = None

    def take(self, data: bytes) -> str:
        """The text that a piece adds. Raises ModelFailed."""
        if data == DONE:
            self.ended = True
            return ""
        try:
            piece: Json = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ModelFailed("A piece of the model's answer is not JSON.", reason="model_unreadable") from None
        body: JsonObject = piece if is_object(piece) else {}
        _raise_told(body)
        self._usage = _usage(body.get("usage")) or self._usage
        self._model = _named(body) or self._model
        choice = _first(body)
        self.ended = self.ended or isinstance(choice.get("finish_reason"), str)
        delta = choice.get("delta")
        if not is_object(delta):
            return ""
        self._calls.take(delta.get("tool_calls"))
        text = _text(delta.get("content")) or _text(delta.get("refusal"))
        self._text.append(text)
        return text

    def reply(self) -> ModelReply:
        """All of it together."""
        return ModelReply(text="".join(self._text), tool_calls=self._calls.made(), usage=self._usage, model=self._model)


@final
class _Calls:
    """Tool calls, whole or in pieces: a piece goes to the call of its index or id, else to the last one."""

    def __init__(self) -> None:
        self._calls: list[dict[str, str]] = []
        self._by_index: dict[int, dict[str, str]] = {}

    def take(self, given: Json) -> None:
        for each in given if is_array(given) else ():
            if is_object(each):
                self._add(each)

    def _add(self, piece: JsonObject) -> None:
        told: Json = piece.get("function")
        function: JsonObject = told if is_object(told) else {}
        call = self._call(piece, new=bool(function.get("name")))
        if call is None:
            return
        if isinstance(piece.get("id"), str) and piece["id"]:
            call["id"] = piece["id"]
        if isinstance(function.get("name"), str):
            call["name"] += function["name"]
        arguments: Json = function.get("arguments")
        if arguments is not None:
            call["arguments"] += arguments if isinstance(arguments, str) else _encode(arguments).decode()

    def _call(self, piece: JsonObject, *, new: bool) -> dict[str, str] | None:
        index, call_id = piece.get("index"), piece.get("id")
        # Some servers number every call 0 and tell them apart by their ids.
        if isinstance(index, int) and index in self._by_index:
            known = self._by_index[index]
            if not call_id or not known["id"] or call_id == known["id"]:
                return known
        elif self._calls and not isinstance(index, int) and not new and not call_id:
            return self._calls[-1]
        if len(self._calls) == MOST_CALLS:
            return None
        call = {"id": "", "name": "", "arguments": ""}
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def made(self) -> tuple[ToolCall, ...]:
        """Those that name a tool; what has no id gets its number."""
        return tuple(
            ToolCall(name=call["name"], arguments=_arguments(call["arguments"]), id=call["id"] or f"call_{number}")
            for number, call in enumerate(self._calls, 1)
            if call["name"]
        )


def told_error(answer: Json) -> str:
    """The words of an error, wherever a server puts them."""
    error: Json = answer.get("error", answer.get("detail")) if is_object(answer) else None
    said: Json = error.get("message") if is_object(error) else error
    return said if isinstance(said, str) else ""


def _messages(request: ModelRequest) -> Iterable[JsonObject]:
    if request.instructions:
        yield {"role": "system", "content": request.instructions}
    for message in request.messages:
        yield _message(message)


def _message(message: ModelMessage) -> JsonObject:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.text}
    if not message.tool_calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _written(call.arguments)}}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _written(arguments: Json) -> str:
    return arguments if isinstance(arguments, str) else _encode(arguments).decode()


def _arguments(text: str) -> Json:
    if not text.strip():
        return {}
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text


def _raise_told(body: JsonObject) -> None:
    """Some servers answer 200 and tell the error inside."""
    if body.get("error"):
        said = told_error(body)[:300]
        raise ModelFailed(f"The model failed: {said or 'it did not say why'}", reason="model_failed")


def _first(body: JsonObject) -> JsonObject:
    choices: Json = body.get("choices")
    first: Json = choices[0] if is_array(choices) and choices else None
    return first if is_object(first) else {}


def _text(content: Json) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if is_object(part)] if is_array(content) else []
    return "".join(part for part in parts if isinstance(part, str))


def _usage(usage: Json) -> Usage | None:
    if not is_object(usage):
        return None
    return Usage(
        tokens=_count(usage.get("total_tokens")),
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _count(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _named(body: JsonObject) -> str | None:
    name: Json = body.get("model")
    return name if isinstance(name, str) and name else None
