"""Every error the hub can answer with, as one tree.

    DragomanError                     INTERNAL_ERROR 500
    ├─ BadRequest                     VALIDATION_ERROR 400
    │  ├─ NotJson                     PARSE_ERROR
    │  ├─ BadFrame                    INVALID_REQUEST
    │  ├─ BadParams, InputRefused     VALIDATION_ERROR
    │  ├─ UnknownMethod               METHOD_NOT_FOUND 404
    │  ├─ TooLarge                    TOO_LARGE 413
    │  ├─ WrongMediaType              WRONG_MEDIA_TYPE 415
    │  ├─ ContentRefused              CONTENT_NOT_SUPPORTED 415
    │  └─ WrongHost                   WRONG_HOST 421
    ├─ NotAuthenticated › BadSignature › SignatureRequired     AUTHORIZATION_ERROR 401
    ├─ NotAuthorized                  AUTHORIZATION_ERROR 403 › CapabilityMismatch
    ├─ NotFound                       404 › AgentNotFound SkillNotFound TaskNotFound CallbackNotFound SessionOver
    ├─ Conflict                       409 › TaskFinished TaskNotCancelable IdempotencyConflict CallLoop EventGap
    │                                 410 › StaleAttempt
    ├─ NotSupported                   400 › NoExtendedCard VersionNotSupported ExtensionRequired
    ├─ RateLimited                    429
    ├─ Overloaded                     503
    ├─ AgentUnavailable › CircuitOpen 503
    ├─ AgentTimeout                   504
    └─ AgentError › BadAgentReply, Interrupted   502

A class's docstring is its default message; facts are keyword details. `code` and `http_status` are the hub's own;
only a dialect's table turns a class into that dialect's words. Nothing here knows a wire.
"""

from typing import ClassVar

import msgspec

from dragoman.model.json import Json, JsonObject, is_array


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a task failed, as it is stored and shown."""

    code: str
    message: str
    details: JsonObject | None = None
    retryable: bool = False


class DragomanError(Exception):
    """The hub could not do this; the fault is its own."""

    code: ClassVar[str] = "INTERNAL_ERROR"
    http_status: ClassVar[int] = 500
    retry: ClassVar[bool] = True  # the same request may be sent again
    call_id: str | None = None  # which call it was about, where a caller is told
    trace_id: str | None = None

    def __init__(self, message: str | None = None, **details: Json) -> None:
        self.message = message or (type(self).__doc__ or "").split("\n", 1)[0]
        self.details: JsonObject = details
        super().__init__(self.message)

    @property
    def retryable(self) -> bool:
        """Whether the same request may be sent again."""
        return type(self).retry

    @property
    def retry_after_s(self) -> int | None:
        """Seconds to wait before the next try, where one is due."""
        return None

    def failure(self) -> Failure:
        """The same as data."""
        return Failure(
            code=self.code,
            message=self.message,
            details=self.details or None,
            retryable=self.retryable,
        )


class BadRequest(DragomanError):
    """The request makes no sense as it is."""

    code = "VALIDATION_ERROR"
    http_status = 400
    retry = False


class NotJson(BadRequest):
    """The body is not JSON."""

    code = "PARSE_ERROR"


class BadFrame(BadRequest):
    """The body is JSON, but not a request of this protocol."""

    code = "INVALID_REQUEST"


class BadParams(BadRequest):
    """A field of the request is missing or wrong."""


class InputRefused(BadRequest):
    """The input does not fit the skill's schema."""


class UnknownMethod(BadRequest):
    """There is no such method here."""

    code = "METHOD_NOT_FOUND"
    http_status = 404


class TooLarge(BadRequest):
    """The body is larger than this hub takes."""

    code = "TOO_LARGE"
    http_status = 413


class WrongMediaType(BadRequest):
    """Send application/json."""

    code = "WRONG_MEDIA_TYPE"
    http_status = 415


class WrongHost(BadRequest):
    """This hub does not answer under that Host name."""

    code = "WRONG_HOST"
    http_status = 421


class ContentRefused(BadRequest):
    """The target cannot take this content."""

    code = "CONTENT_NOT_SUPPORTED"
    http_status = 415


class NotAuthenticated(DragomanError):
    """Send a valid key: Authorization: Bearer ap_…"""

    code = "AUTHORIZATION_ERROR"
    http_status = 401
    retry = False


class BadSignature(NotAuthenticated):
    """The request's signature is wrong, too old or was seen before."""


class SignatureRequired(BadSignature):
    """This agent takes signed calls alone: send webhook-id, webhook-timestamp and webhook-signature."""


class NotAuthorized(DragomanError):
    """This key may not do that."""

    code = "AUTHORIZATION_ERROR"
    http_status = 403
    retry = False


class CapabilityMismatch(NotAuthorized):
    """This caller may not use that skill."""

    code = "CAPABILITY_MISMATCH"


class NotFound(DragomanError):
    """There is no such thing."""

    code = "NOT_FOUND"
    http_status = 404
    retry = False


class AgentNotFound(NotFound):
    """There is no such agent."""

    code = "AGENT_NOT_FOUND"


class SkillNotFound(NotFound):
    """The agent has no such skill."""

    code = "SKILL_NOT_FOUND"


class TaskNotFound(NotFound):
    """There is no such call."""

    code = "TASK_NOT_FOUND"


class CallbackNotFound(NotFound):
    """There is no such callback."""

    code = "CALLBACK_NOT_FOUND"


class SessionOver(NotFound):
    """The hub does not know this session, or no longer: open a new one."""

    code = "SESSION_OVER"


class Conflict(DragomanError):
    """That contradicts what is there."""

    code = "CONFLICT"
    http_status = 409
    retry = False


class TaskFinished(Conflict):
    """The task is finished and takes no more messages."""

    code = "TASK_FINISHED"


class TaskNotCancelable(Conflict):
    """The task is finished and can no longer be cancelled."""

    code = "TASK_NOT_CANCELABLE"


class IdempotencyConflict(Conflict):
    """This Idempotency-Key was used with another body."""

    code = "IDEMPOTENCY_CONFLICT"


class CallLoop(Conflict):
    """The call would come back to an agent that waits for it."""

    code = "CALL_LOOP"

    @property
    def chain(self) -> list[str]:
        """The agents that wait for each other, first caller first."""
        chain: Json = self.details.get("chain")
        return [str(one) for one in chain] if is_array(chain) else []


class EventGap(Conflict):
    """Events are missing before these."""

    code = "EVENT_GAP"


class StaleAttempt(Conflict):
    """The call is over, or goes on under a later attempt."""

    code = "STALE_ATTEMPT"
    http_status = 410


class NotSupported(DragomanError):
    """The target does not offer this operation."""

    code = "UNSUPPORTED_OPERATION"
    http_status = 400
    retry = False


class NoExtendedCard(NotSupported):
    """The agent has no extended card."""

    code = "NO_EXTENDED_CARD"


class VersionNotSupported(NotSupported):
    """This protocol version is not spoken here."""

    code = "VERSION_NOT_SUPPORTED"


class ExtensionRequired(NotSupported):
    """The agent requires an extension that the request does not name."""

    code = "EXTENSION_REQUIRED"


class _Waits(DragomanError):
    """Try again later; where no time is named it is of no use."""

    def __init__(self, message: str | None = None, *, retry_after_s: int | None = 1, **details: Json) -> None:
        super().__init__(message, **details)
        self._retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether a later try may succeed."""
        return self._retry_after_s is not None

    @property
    def retry_after_s(self) -> int | None:
        """Seconds to wait before the next try."""
        return self._retry_after_s


class RateLimited(_Waits):
    """Too many requests."""

    code = "RATE_LIMITED"
    http_status = 429


class Overloaded(_Waits):
    """The hub takes no new calls at the moment; nothing accepted is lost."""

    code = "OVERLOADED"
    http_status = 503


class AgentUnavailable(_Waits):
    """The agent cannot be reached."""

    code = "AGENT_UNAVAILABLE"
    http_status = 503


class CircuitOpen(AgentUnavailable):
    """The agent failed repeatedly and is left alone for a while."""

    code = "CIRCUIT_OPEN"


class AgentTimeout(DragomanError):
    """Target agent did not respond within timeout"""

    code = "AGENT_TIMEOUT"
    http_status = 504


class AgentError(DragomanError):
    """The agent failed."""

    code = "AGENT_ERROR"
    http_status = 502

    @property
    def retryable(self) -> bool:
        """Only when the agent says so."""
        return bool(self.details.get("retryable", False))


class BadAgentReply(AgentError):
    """The agent's answer cannot be understood."""


class Interrupted(AgentError):
    """The hub stopped while this call was on its way; it was not sent again."""


def _classes(root: type[DragomanError]) -> dict[str, type[DragomanError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        for code, error_class in _classes(child).items():
            found.setdefault(code, error_class)
    return found


# Whoever has a task was known when it was opened: what it failed for later is that its caller may not do this.
BY_CODE: dict[str, type[DragomanError]] = {**_classes(DragomanError), NotAuthorized.code: NotAuthorized}


def error_of(failure: Failure) -> DragomanError:
    """The error a stored failure was, so that a dialect's table can put it into words again."""
    error = BY_CODE.get(failure.code, AgentError)(failure.message, **(failure.details or {}))
    if failure.retryable and isinstance(error, AgentError):
        error.details.setdefault("retryable", True)
    return error
