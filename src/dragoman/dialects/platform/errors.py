"""The platform's error codes, and the HTTP status of each."""

from typing import Final

from dragoman.dialects.dialect import ErrorTable
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    BadRequest,
    CircuitOpen,
    Conflict,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    NotFound,
    NotSupported,
    Overloaded,
    RateLimited,
    SkillNotFound,
    TaskNotFound,
    TooLarge,
    UnknownMethod,
    WrongHost,
    WrongMediaType,
)

ERRORS: Final[ErrorTable] = {
    BadRequest: ("VALIDATION_ERROR", 400),
    TooLarge: ("VALIDATION_ERROR", 413),
    WrongMediaType: ("VALIDATION_ERROR", 415),
    WrongHost: ("VALIDATION_ERROR", 421),
    UnknownMethod: ("NOT_FOUND", 404),
    NotAuthenticated: ("AUTHORIZATION_ERROR", 401),
    NotAuthorized: ("AUTHORIZATION_ERROR", 403),
    NotFound: ("NOT_FOUND", 404),
    AgentNotFound: ("AGENT_NOT_FOUND", 404),
    SkillNotFound: ("SKILL_NOT_FOUND", 404),
    TaskNotFound: ("CALL_NOT_FOUND", 404),
    Conflict: ("VALIDATION_ERROR", 409),
    NotSupported: ("VALIDATION_ERROR", 400),
    RateLimited: ("RATE_LIMITED", 429),
    Overloaded: ("AGENT_UNAVAILABLE", 503),
    AgentUnavailable: ("AGENT_UNAVAILABLE", 503),
    CircuitOpen: ("CIRCUIT_OPEN", 503),
    AgentTimeout: ("AGENT_TIMEOUT", 504),
    AgentError: ("AGENT_ERROR", 502),
    DragomanError: ("AGENT_ERROR", 500),
}
