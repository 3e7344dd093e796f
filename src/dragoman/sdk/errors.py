"""The SDK's own errors, and the hub's refusals as errors of the one tree.

    DragomanError
    ├─ HubUnreachable    no answer from the hub; `.sent` tells whether the request may have arrived
    ├─ InputRequired     the agent asked something; `.question`, and `.handle.send(answer)` goes on
    ├─ CallCancelled     the call was cancelled
    ├─ NoModel           the agent has no model to let work
    └─ MissingExtra      a package of an extra is not installed

`str(error)` of all of them, and of what a hub refused, is a sentence and the next step.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from dragoman.dialects.platform.errors import ERRORS
from dragoman.dialects.times import LONGEST_WAIT_S
from dragoman.model.errors import (
    BY_CODE,
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    CallLoop,
    CircuitOpen,
    Conflict,
    DragomanError,
    IdempotencyConflict,
    InputRefused,
    Interrupted,
    NotAuthenticated,
    NotAuthorized,
    NotFound,
    Overloaded,
    RateLimited,
    SkillNotFound,
    TaskNotFound,
    TooLarge,
    WrongMediaType,
)
from dragoman.model.extras import MissingExtra as MissingExtra
from dragoman.model.json import Json, JsonObject, is_array, is_object

if TYPE_CHECKING:
    from dragoman.sdk.client.handles import CallHandle


class _Own(DragomanError):
    """An error that only the SDK raises."""

    next_step: ClassVar[str] = ""
    retry = False

    def __init__(self, message: str | None = None, *, next: str | None = None, **details: Json) -> None:
        super().__init__(message, **details)
        put_into_words(self, next if next is not None else self.next_step)


class HubUnreachable(_Own):
    """No hub answers."""

    code = "HUB_UNREACHABLE"
    http_status = 503
    retry = True
    next_step = "Start one with `dragoman dev`, or set DRAGOMAN_URL."

    def __init__(
        self, message: str | None = None, *, sent: bool = False, reason: str = "", next: str | None = None
    ) -> None:
        super().__init__(message, next=next)
        self.sent = sent
        self.reason = reason  # a word of `net.Reach`, or http_ and the status of what answered in the hub's place


class InputRequired(_Own):
    """The agent needs an answer before it can go on."""

    code = "INPUT_REQUIRED"
    http_status = 409
    next_step = "Go on with `await error.handle.send(answer)`."

    def __init__(self, message: str | None = None, *, next: str | None = None, **details: Json) -> None:
        super().__init__(message, next=next, **details)
        self._handle: CallHandle | None = None

    @property
    def question(self) -> str:
        """What the agent asked."""
        return self.message

    @property
    def handle(self) -> "CallHandle":
        """The call that waits for the answer."""
        if self._handle is None:
            raise AttributeError("only what a call raised has a handle")
        return self._handle

    @handle.setter
    def handle(self, handle: "CallHandle") -> None:
        self._handle = handle


class CallCancelled(_Own):
    """The call was cancelled."""

    code = "CALL_CANCELLED"
    http_status = 409
    next_step = "Call again if the answer is still wanted."


class NoModel(_Own):
    """The agent has no model."""

    code = "NO_MODEL"
    next_step = "Pass model=… or define a skill."


# What the platform's words mean; where its code says less than ours, `details.reason` has ours.
_CLASSES: Final[Mapping[str, type[DragomanError]]] = {
    "VALIDATION_ERROR": InputRefused,
    "AUTHORIZATION_ERROR": NotAuthorized,
    "AGENT_NOT_FOUND": AgentNotFound,
    "SKILL_NOT_FOUND": SkillNotFound,
    "CALL_NOT_FOUND": TaskNotFound,
    "NOT_FOUND": NotFound,
    "AGENT_UNAVAILABLE": AgentUnavailable,
    "CIRCUIT_OPEN": CircuitOpen,
    "RATE_LIMITED": RateLimited,
    "AGENT_TIMEOUT": AgentTimeout,
    "AGENT_ERROR": AgentError,
}
_BY_STATUS: Final[Mapping[int, type[DragomanError]]] = {
    401: NotAuthenticated,
    409: Conflict,
    413: TooLarge,
    415: WrongMediaType,
    500: DragomanError,
}
_ASKS: Final = frozenset({"input_required", "auth_required"})
_WAITING: Final = (RateLimited, Overloaded, AgentUnavailable)


def error_of_reply(status: int, headers: Mapping[str, str], body: Json) -> DragomanError:
    """The error that a refusal of the hub is, or of whatever answered in its place."""
    said: JsonObject = body if is_object(body) else {}
    error = said.get("error")
    if not is_object(error):
        return _of_status(status, headers)
    made = error_of_body(error, status=status, waited=headers.get("retry-after"))
    call_id, trace = said.get("call_id") or said.get("id"), said.get("trace")
    made.call_id = str(call_id) if call_id else None
    if is_object(trace) and trace.get("trace_id"):
        made.trace_id = str(trace["trace_id"])
    return made


def error_of_body(error: JsonObject, *, status: int = 0, waited: str | None = None) -> DragomanError:
    """The error that a platform error object says: `{code, message, details, retryable}`."""
    given = error.get("details")
    details: JsonObject = dict(given) if is_object(given) else {}
    message = str(error.get("message") or "") or None
    code = str(error.get("code") or "")
    reason = str(details.get("reason") or "")
    if code == AgentError.code and reason in _ASKS:
        return InputRequired(message, **_facts(details))
    made = _class_of(code, reason, status)
    wait_s = _seconds(details.get("retry_after")) or _seconds(waited)
    if issubclass(made, _WAITING):
        shown = made(message, retry_after_s=wait_s or 1, **_facts(details))
    else:
        shown = made(message, **_facts(details))
    if issubclass(made, AgentError) and error.get("retryable"):
        shown.details["retryable"] = True
    return put_into_words(shown, next_step_of(shown))


def put_into_words(error: DragomanError, next_step: str) -> DragomanError:
    """Let `str(error)` be its sentence and the next step."""
    sentence = error.message.strip()
    if sentence and next_step and sentence[-1] not in ".!?":
        sentence += "."
    error.args = (f"{sentence} {next_step}".strip(),)
    return error


def next_step_of(error: DragomanError) -> str:
    """What may be done about an error that the hub told."""
    for error_class in type(error).__mro__:
        if error_class in _NEXT:
            return _NEXT[error_class](error)
    return ""


def _class_of(code: str, reason: str, status: int) -> type[DragomanError]:
    # An agent may give a reason, too: ours is one whose class is told with exactly this code.
    ours = BY_CODE.get(reason.upper())
    if ours is not None and _wire_code(ours) == code:
        return ours
    if reason == "interrupted" and code == AgentError.code:
        return Interrupted
    if status in _BY_STATUS and (_wire_code(_BY_STATUS[status]) == code or code not in _CLASSES):
        return _BY_STATUS[status]
    return _CLASSES.get(code) or BY_CODE.get(code) or (DragomanError if status >= 500 else AgentError)


def _wire_code(error_class: type[DragomanError]) -> str:
    return next(str(ERRORS[each][0]) for each in error_class.__mro__ if each in ERRORS)


def _of_status(status: int, headers: Mapping[str, str]) -> DragomanError:
    """What has no error in it came from something in between, or from no hub at all."""
    message = f"The hub's address answered with HTTP {status} and no error of a hub"
    if status == 401:
        return put_into_words(NotAuthenticated(message), "Give a token: DRAGOMAN_TOKEN, or api_key=…")
    if status == 429:
        wait_s = _seconds(headers.get("retry-after")) or 1
        return put_into_words(RateLimited(message, retry_after_s=wait_s), f"Try again in {wait_s} s.")
    return HubUnreachable(
        message, sent=True, reason=f"http_{status}", next="Check that DRAGOMAN_URL leads to a hub, and what is between."
    )


def _facts(details: JsonObject) -> JsonObject:
    """Details as keyword arguments: those that would be taken for something else stay out."""
    return {name: value for name, value in details.items() if name not in ("self", "message", "next", "retry_after_s")}


def _seconds(value: Json) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        value = int(value)
    return value if type(value) is int and 0 < value <= LONGEST_WAIT_S else None


def _listed(value: Json) -> str:
    return ", ".join(map(str, value)) if is_array(value) else ""


def _scopes(error: DragomanError) -> str:
    missing = next((shown for name in ("missing", "required") if (shown := _listed(error.details.get(name)))), "")
    return f"The key needs: {missing}." if missing else "Ask the hub's operator for a key that may do this."


def _later(error: DragomanError) -> str:
    return f"Try again in {error.retry_after_s} s." if error.retry_after_s else "Try again later."


def _agent_failed(error: DragomanError) -> str:
    return "Trying again may help." if error.retryable else "Its log says more."


_NEXT: Final[Mapping[type[DragomanError], Callable[[DragomanError], str]]] = {
    AgentNotFound: lambda error: "`client.discover()` lists the agents.",
    SkillNotFound: lambda error: "Its card lists the skills: `await client.card(agent_id)`.",
    TaskNotFound: lambda error: "Check the id; calls of other keys look unknown.",
    InputRefused: lambda error: "`error.details` has each failing path; the card has the schema.",
    NotAuthenticated: lambda error: "Give a token: DRAGOMAN_TOKEN, or api_key=…",
    NotAuthorized: _scopes,
    RateLimited: _later,
    Overloaded: _later,
    AgentUnavailable: _later,
    AgentTimeout: lambda error: "timeout_ms=… allows more, `submit` does not wait at all.",
    AgentError: _agent_failed,
    IdempotencyConflict: lambda error: "Use another idempotency_key, or send the same input again.",
    CallLoop: lambda error: "Call an agent that is not already waiting.",
    DragomanError: lambda error: "The hub's log says more." if type(error) is DragomanError else "",
}
