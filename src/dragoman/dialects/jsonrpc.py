"""JSON-RPC 2.0 framing, read liberally: a null sibling is absent, ids may be anything, members come in any order."""

import msgspec

from dragoman.model.errors import BadAgentReply
from dragoman.model.http import HttpReply
from dragoman.model.json import Json, JsonObject, is_object

_decode = msgspec.json.Decoder().decode
_SHOWN = 500


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    """The error member of an answer."""

    code: int
    message: str
    data: Json = None


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


def request_body(method: str, request_id: str, params: JsonObject) -> bytes:
    """One JSON-RPC request; published servers refuse ids that are not strings."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


_encode = msgspec.json.Encoder().encode
