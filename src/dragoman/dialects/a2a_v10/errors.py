"""The errors of A2A 1.0: code and HTTP status in JSON-RPC, status and its name over HTTP, and the details of both."""

from typing import Final

import msgspec

from dragoman.dialects.dialect import ErrorTable, wire_error
from dragoman.dialects.jsonrpc import RPC_ERRORS
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    BadFrame,
    BadParams,
    BadRequest,
    CallbackNotFound,
    Conflict,
    ContentRefused,
    DragomanError,
    ExtensionRequired,
    InputRefused,
    NoExtendedCard,
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
    TaskNotFound,
    TooLarge,
    UnknownMethod,
    VersionNotSupported,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.json import Json, JsonObject, is_object

RPC: Final[ErrorTable] = {
    **RPC_ERRORS,
    WrongMediaType: (-32005, 200),
    ContentRefused: (-32005, 200),
    BadAgentReply: (-32006, 200),
    NoExtendedCard: (-32007, 200),
    ExtensionRequired: (-32008, 200),
    VersionNotSupported: (-32009, 200),
}
# A caller that has not said it speaks 1.0 is told of a wrong media type as every JSON-RPC caller is.
RPC_UNSAID: Final[ErrorTable] = {**RPC, WrongMediaType: RPC_ERRORS[WrongMediaType]}
HTTP: Final[ErrorTable] = {
    BadRequest: ("INVALID_ARGUMENT", 400),
    TooLarge: ("INVALID_ARGUMENT", 413),
    WrongMediaType: ("INVALID_ARGUMENT", 415),
    WrongHost: ("INVALID_ARGUMENT", 421),
    UnknownMethod: ("UNIMPLEMENTED", 404),
    SkillNotFound: ("INVALID_ARGUMENT", 400),
    Conflict: ("INVALID_ARGUMENT", 400),
    NotAuthenticated: ("UNAUTHENTICATED", 401),
    NotAuthorized: ("PERMISSION_DENIED", 403),
    NotFound: ("NOT_FOUND", 404),
    TaskFinished: ("FAILED_PRECONDITION", 400),
    TaskNotCancelable: ("FAILED_PRECONDITION", 400),
    NotSupported: ("FAILED_PRECONDITION", 400),
    RateLimited: ("RESOURCE_EXHAUSTED", 429),
    Overloaded: ("UNAVAILABLE", 503),
    AgentUnavailable: ("UNAVAILABLE", 503),
    AgentTimeout: ("DEADLINE_EXCEEDED", 504),
    AgentError: ("INTERNAL", 500),
    DragomanError: ("INTERNAL", 500),
}
# The specification's own names; for all else the hub's own name is the reason.
REASONS: Final[dict[type[DragomanError], str]] = {
    TaskNotFound: "TASK_NOT_FOUND",
    CallbackNotFound: "TASK_NOT_FOUND",
    TaskNotCancelable: "TASK_NOT_CANCELABLE",
    NotSupported: "UNSUPPORTED_OPERATION",
    TaskFinished: "UNSUPPORTED_OPERATION",
    WrongMediaType: "CONTENT_TYPE_NOT_SUPPORTED",
    ContentRefused: "CONTENT_TYPE_NOT_SUPPORTED",
    BadAgentReply: "INVALID_AGENT_RESPONSE",
    NoExtendedCard: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ExtensionRequired: "EXTENSION_SUPPORT_REQUIRED",
    VersionNotSupported: "VERSION_NOT_SUPPORTED",
    NotJson: "PARSE_ERROR",
    BadFrame: "INVALID_REQUEST",
    UnknownMethod: "METHOD_NOT_FOUND",
    BadParams: "INVALID_PARAMS",
    InputRefused: "INVALID_PARAMS",
    SkillNotFound: "INVALID_PARAMS",
    Conflict: "INVALID_PARAMS",
    DragomanError: "",
}
DOMAIN: Final = "a2a-protocol.org"
ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"
_FIELDS: Final = "errors"  # the detail that lists wrong fields


def details(error: DragomanError) -> list[JsonObject]:
    """What an error's data or details hold: its name, its facts as texts, and the fields that were wrong."""
    found: list[JsonObject] = [
        {"@type": ERROR_INFO, "reason": reason_of(error), "domain": DOMAIN, "metadata": _facts(error)}
    ]
    violations = [
        {"field": str(each.get("path", "")), "description": str(each.get("message", ""))}
        for each in error.details.get(_FIELDS) or ()
        if is_object(each)
    ]
    if violations:
        found.append({"@type": BAD_REQUEST, "fieldViolations": violations})
    return found


def reason_of(error: DragomanError) -> str:
    """The name of an error: the specification's, where it has one."""
    for error_class in type(error).__mro__:
        if error_class in REASONS:
            return REASONS[error_class] or error.code
    return error.code


def http_error(error: DragomanError) -> tuple[int, JsonObject]:
    """The status and the body of an error over HTTP."""
    name, status = wire_error(HTTP, error)
    return status, {
        "error": {"code": status, "status": name, "message": error.message, "details": details(error)},
    }


def _facts(error: DragomanError) -> dict[str, str]:
    facts = {name: _text(value) for name, value in error.details.items() if name != _FIELDS and value is not None}
    if error.code != reason_of(error):
        facts.setdefault("reason", error.code.lower())
    return facts


def _text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
