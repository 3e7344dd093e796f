"""The envelope's error codes: what each error of the hub is called, and what an agent's code means."""

from typing import Final

from dragoman.dialects.dialect import ErrorTable
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    BadFrame,
    BadRequest,
    Conflict,
    ContentRefused,
    DragomanError,
    InputRefused,
    NotAuthenticated,
    NotAuthorized,
    NotFound,
    NotJson,
    NotSupported,
    Overloaded,
    RateLimited,
    SkillNotFound,
    TooLarge,
    UnknownMethod,
    VersionNotSupported,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.json import Json, JsonObject, is_object

ERRORS: Final[ErrorTable] = {
    NotJson: ("INVALID_MESSAGE_FORMAT", 400),
    BadFrame: ("INVALID_MESSAGE_FORMAT", 400),
    WrongMediaType: ("INVALID_MESSAGE_FORMAT", 400),
    VersionNotSupported: ("INVALID_MESSAGE_FORMAT", 400),
    TooLarge: ("INVALID_MESSAGE_FORMAT", 413),
    WrongHost: ("INVALID_MESSAGE_FORMAT", 421),
    UnknownMethod: ("UNSUPPORTED_MESSAGE_TYPE", 400),
    NotSupported: ("UNSUPPORTED_MESSAGE_TYPE", 400),
    BadRequest: ("PAYLOAD_VALIDATION_FAILED", 400),
    Conflict: ("PAYLOAD_VALIDATION_FAILED", 400),
    ContentRefused: ("CAPABILITY_MISMATCH", 400),
    SkillNotFound: ("INVALID_TASK_TYPE", 400),
    NotAuthenticated: ("AUTHENTICATION_REQUIRED", 401),
    NotAuthorized: ("CAPABILITY_MISMATCH", 403),
    AgentNotFound: ("AGENT_NOT_FOUND", 404),
    NotFound: ("TASK_NOT_FOUND", 404),
    RateLimited: ("RATE_LIMITED", 429),
    AgentTimeout: ("TIMEOUT", 500),
    AgentUnavailable: ("INTERNAL_ERROR", 500),
    AgentError: ("INTERNAL_ERROR", 500),
    Overloaded: ("INTERNAL_ERROR", 503),
    DragomanError: ("INTERNAL_ERROR", 500),
}

# What an agent's code means for the one who called it; the others tell that the hub and the agent disagree.
_MEANINGS: Final[dict[str, type[DragomanError]]] = {
    "INVALID_TASK_TYPE": SkillNotFound,
    "PAYLOAD_VALIDATION_FAILED": InputRefused,
    "CAPABILITY_MISMATCH": ContentRefused,
    "TIMEOUT": AgentTimeout,
    "RATE_LIMITED": RateLimited,
}
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
_OWN_NAMES: Final = frozenset({"self", "message", "retry_after_s"})


def agent_error(code: Json, message: Json, details: Json) -> DragomanError:
    """An agent's error: what its caller got wrong keeps that meaning, all else is the agent's failure."""
    said = message if isinstance(message, str) and message else "The agent gave no reason."
    told: JsonObject = dict(details) if is_object(details) else {}
    for name in _OWN_NAMES:
        told.pop(name, None)
    meaning = _MEANINGS.get(code, AgentError) if isinstance(code, str) else AgentError
    if meaning is SkillNotFound and "supported_types" in told:
        told["supported"] = told.pop("supported_types")
    if told.get("reason") == meaning.code.lower():
        del told["reason"]  # says no more than the class does
    if meaning is AgentError and isinstance(code, str) and code != INTERNAL_ERROR:
        told["agent_code"] = code
    return meaning(said, **told)
