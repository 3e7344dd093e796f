"""Errors of A2A 0.3 over HTTP+JSON: one body that every client of it can map, whatever it looks at.

Some look for a numeric `code`, some for a `type`, some for 1.0's `error` object with a reason in its details, and some
at the HTTP status alone.
"""

from typing import Final

import msgspec

from dragoman.dialects.a2a_v03.errors import ERRORS
from dragoman.dialects.dialect import ErrorTable, wire_error
from dragoman.dialects.kinds import error_data
from dragoman.dialects.refusals import error_headers
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentUnavailable,
    BadRequest,
    Conflict,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    NotFound,
    NotSupported,
    Overloaded,
    RateLimited,
    SkillNotFound,
    TooLarge,
    UnknownMethod,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.http import HttpReply
from dragoman.model.json import Json, JsonObject, is_array, is_object

# The official names of the codes: the type that Python's clients know, the reason that 1.0 gives.
NAMES: Final[dict[int, tuple[str, str]]] = {
    -32001: ("TaskNotFoundError", "TASK_NOT_FOUND"),
    -32002: ("TaskNotCancelableError", "TASK_NOT_CANCELABLE"),
    -32003: ("PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    -32004: ("UnsupportedOperationError", "UNSUPPORTED_OPERATION"),
    -32005: ("ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED"),
    -32006: ("InvalidAgentResponseError", "INVALID_AGENT_RESPONSE"),
    -32007: ("AuthenticatedExtendedCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    -32008: ("ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED"),
    -32009: ("VersionNotSupportedError", "VERSION_NOT_SUPPORTED"),
    -32600: ("InvalidRequestError", "INVALID_REQUEST"),
    -32601: ("MethodNotFoundError", "METHOD_NOT_FOUND"),
    -32602: ("InvalidParamsError", "INVALID_PARAMS"),
    -32603: ("InternalError", "INTERNAL_ERROR"),
    -32700: ("JSONParseError", "PARSE_ERROR"),
}
# The codes are those of JSON-RPC; where their HTTP status was 200 there, it is this one here.
HTTP: Final[ErrorTable] = {
    BadRequest: ("INVALID_ARGUMENT", 400),
    TooLarge: ("INVALID_ARGUMENT", 413),
    WrongMediaType: ("INVALID_ARGUMENT", 415),
    WrongHost: ("INVALID_ARGUMENT", 421),
    UnknownMethod: ("UNIMPLEMENTED", 404),
    SkillNotFound: ("INVALID_ARGUMENT", 400),
    Conflict: ("FAILED_PRECONDITION", 400),
    NotAuthenticated: ("UNAUTHENTICATED", 401),
    NotAuthorized: ("PERMISSION_DENIED", 403),
    AgentNotFound: ("NOT_FOUND", 404),
    NotFound: ("NOT_FOUND", 404),
    NotSupported: ("FAILED_PRECONDITION", 400),
    RateLimited: ("RESOURCE_EXHAUSTED", 429),
    Overloaded: ("UNAVAILABLE", 503),
    AgentUnavailable: ("UNAVAILABLE", 503),
    AgentError: ("INTERNAL", 500),
    DragomanError: ("INTERNAL", 500),
}
CODES: Final[ErrorTable] = {**ERRORS, WrongMediaType: (-32005, 415)}

_encode = msgspec.json.Encoder().encode
_TYPE: Final = "type.googleapis.com/google.rpc."


def error_reply(error: DragomanError) -> HttpReply:
    """The refusal of a request."""
    code, _ = wire_error(CODES, error)
    name, status = wire_error(HTTP, error)
    kind, reason = NAMES.get(int(code), (None, error.code))
    body: JsonObject = {"code": code, "message": error.message}
    if kind is not None:
        body["type"] = kind
    body["error"] = {
        "code": status,
        "status": name,
        "message": error.message,
        "details": _details(reason, error_data(error)),
    }
    return HttpReply(status=status, headers=error_headers(error), body=_encode(body))


def _details(reason: str, data: JsonObject) -> list[JsonObject]:
    """The error's name and facts, and the fields that were wrong, as 1.0 writes them."""
    wrong: Json = data.pop("errors", None)
    facts = {name: value if isinstance(value, str) else _encode(value).decode() for name, value in data.items()}
    shown: list[JsonObject] = [
        {"@type": f"{_TYPE}ErrorInfo", "reason": reason, "domain": "a2a-protocol.org", "metadata": facts}
    ]
    fields = [
        {"field": each.get("path", ""), "description": each.get("message", "")}
        for each in (wrong if is_array(wrong) else ())
        if is_object(each)
    ]
    if fields:
        shown.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": fields})
    return shown
