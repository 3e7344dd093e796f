"""JSON-RPC 2.0 framing, both ways.

In: `read_frame` never raises; what is wrong with a frame stands in it, beside the id that a refusal must echo.
Out: `read_reply` is liberal: a null sibling is absent, ids may be anything, members come in any order.
"""

from collections.abc import Callable
from typing import Final, Literal, TypeVar

import msgspec

from dragoman.dialects.dialect import NO_RPC_PARAMS, ErrorTable, Frame, Id, wire_error
from dragoman.dialects.refusals import JSON_HEADERS, details_of, error_headers
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    BadFrame,
    BadParams,
    BadRequest,
    Conflict,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    NotFound,
    NotJson,
    NotSupported,
    Overloaded,
    RateLimited,
    SkillNotFound,
    TaskFinished,
    TaskNotCancelable,
    TooLarge,
    UnknownMethod,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object

Shape = TypeVar("Shape")

# What the JSON-RPC dialects have in common; each adds its own words.
RPC_ERRORS: Final[ErrorTable] = {
    NotJson: (-32700, 200),
    BadFrame: (-32600, 200),
    TooLarge: (-32600, 413),
    WrongMediaType: (-32600, 415),
    WrongHost: (-32600, 421),
    UnknownMethod: (-32601, 200),
    BadRequest: (-32602, 200),
    SkillNotFound: (-32602, 200),
    Conflict: (-32602, 200),
    NotAuthenticated: (-32000, 401),
    NotAuthorized: (-32000, 403),
    AgentNotFound: (-32000, 404),
    RateLimited: (-32000, 429),
    NotFound: (-32001, 200),
    TaskNotCancelable: (-32002, 200),
    TaskFinished: (-32004, 200),
    NotSupported: (-32004, 200),
    Overloaded: (-32603, 503),
    AgentUnavailable: (-32603, 200),
    AgentTimeout: (-32603, 200),
    AgentError: (-32603, 200),
    DragomanError: (-32603, 200),
}

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_SHOWN: Final = 500


# -- coming in


class _Wire(msgspec.Struct, gc=False):
    method: str
    jsonrpc: Literal["2.0"]
    id: str | int | msgspec.UnsetType | None = msgspec.UNSET
    params: msgspec.Raw = NO_RPC_PARAMS


_decode_frame = msgspec.json.Decoder(_Wire).decode


def read_frame(body: bytes) -> Frame:
    """The frame of one request; never raises."""
    try:
        wire = _decode_frame(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _broken(body)
    return Frame(method=wire.method, params=wire.params, id=wire.id)


def read_params(frame: Frame, decode: Callable[[bytes | msgspec.Raw], Shape]) -> Shape:
    """The params as one of our types. Raises BadParams naming the field, UnknownMethod for no method at all."""
    try:
        return decode(frame.params)
    except msgspec.ValidationError as error:
        problem = bad_field(error, "params")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = BadParams("params: unreadable", errors=[{"path": "params", "message": "unreadable"}])
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise problem


def bad_field(error: msgspec.ValidationError, root: str) -> BadParams:
    """A wrong field, named by its path below `root`."""
    message, _, path = str(error).partition(" - at `")
    path = path.rstrip("`").removeprefix("$.").removeprefix("$") or root
    if message.startswith("Object missing required field `"):
        path = f"{path}.{message[31:-1]}" if path != root else message[31:-1]
        message = "required"
    message = message.replace("`", "")
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def require_json(request: HttpRequest) -> None:
    """Take nothing but JSON. Raises WrongMediaType."""
    kind = request.headers.get(b"content-type")
    if kind != b"application/json" and (kind is None or kind.partition(b";")[0].strip().lower() != b"application/json"):
        raise WrongMediaType("Send Content-Type: application/json.")


def given_ids(request: HttpRequest) -> tuple[str | None, str | None]:
    """The caller's own ids, of 1 to 256 ASCII characters: the idempotency key, the request id. Raises BadParams."""
    headers = request.headers
    key, request_id = headers.get(b"idempotency-key"), headers.get(b"x-request-id")
    return (
        None if key is None else _given("Idempotency-Key", key),
        None if request_id is None else _given("X-Request-ID", request_id),
    )


def _given(name: str, value: bytes) -> str:
    if not 0 < len(value) <= 256 or not value.isascii():
        rule = "1 to 256 ASCII characters"
        raise BadParams(f"{name}: {rule}", errors=[{"path": name, "message": rule}])
    return value.decode("ascii")


def result_reply(request_id: Id, result: object, headers: Headers = JSON_HEADERS) -> HttpReply:
    """The answer to a request; to a notification there is none."""
    if request_id is msgspec.UNSET:
        return HttpReply(status=204)
    body = _encode({"jsonrpc": "2.0", "id": request_id, "result": result})
    return HttpReply(status=200, headers=headers, body=body)


def error_reply(
    request_id: Id, error: DragomanError, table: ErrorTable, data: Callable[[DragomanError], Json] = details_of
) -> HttpReply:
    """The refusal of a request, in a dialect's own codes; to a notification only what HTTP itself has to say."""
    code, status = wire_error(table, error)
    if request_id is msgspec.UNSET:
        if status < 400:
            return HttpReply(status=204)
        request_id = None
    shown: JsonObject = {"code": code, "message": error.message}
    said = data(error)
    if said:
        shown["data"] = said
    body = _encode({"jsonrpc": "2.0", "id": request_id, "error": shown})
    return HttpReply(status=status, headers=error_headers(error), body=body)


def _broken(body: bytes) -> Frame:
    """A frame that is none, with the id it has nevertheless."""
    try:
        value: Json = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Frame(error=NotJson("The body is not JSON."))
    if not is_object(value):
        return Frame(error=BadFrame("A JSON-RPC request is one object."))
    given: Json = value.get("id")
    known = given if isinstance(given, str | int) and type(given) is not bool else None
    if value.get("jsonrpc") != "2.0":
        return Frame(id=known, error=BadFrame('jsonrpc: expected "2.0".'))
    if not isinstance(value.get("method"), str):
        return Frame(id=known, error=BadFrame("method: required, a string."))
    return Frame(id=known, error=BadFrame("id: expected a string, an integer or null."))


# -- going out


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    """The error member of an answer."""

    code: int
    message: str
    data: Json = None


def request_body(method: str, request_id: str, params: JsonObject) -> bytes:
    """One JSON-RPC request; published servers refuse ids that are not strings."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def read_reply(reply: HttpReply) -> Json | RpcError:
    """The result of a JSON-RPC answer, or its error.

    Raises BadAgentReply for what is neither.
    """
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise unreadable(reply) from None
    if not is_object(body):
        raise unreadable(reply)
    error = body.get("error")
    if error is not None:
        return _error_of(error, reply)
    if "result" in body:
        return body["result"]
    raise unreadable(reply)


def shows(reply: HttpReply, spoken: Callable[[Json | RpcError], bool]) -> bool:
    """Whether the reply to a harmless question shows that its method is spoken.

    Whoever wants a credential first is there; what is no JSON-RPC shows nothing.
    """
    if reply.status in (401, 403):
        return True
    try:
        return spoken(read_reply(reply))
    except BadAgentReply:
        return False


def unreadable(reply: HttpReply, expected: str = "a JSON-RPC answer") -> BadAgentReply:
    """The error for a body that is no answer at all; it shows the first characters to the one who can mend it."""
    shown = reply.body[:_SHOWN].decode("utf-8", "replace")
    return BadAgentReply(
        f"The agent answered HTTP {reply.status} with something that is not {expected}.",
        reason="invalid_response",
        agent_status=reply.status,
        agent_body=shown,
    )


def _error_of(error: Json, reply: HttpReply) -> RpcError:
    if not is_object(error):
        raise unreadable(reply)
    code: Json = error.get("code")
    message: Json = error.get("message")
    return RpcError(
        code=code if isinstance(code, int) else -32603,
        message=message if isinstance(message, str) else "The agent gave no message.",
        data=error.get("data"),
    )
