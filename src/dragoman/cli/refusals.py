"""The hub's refusals in the command line's words: message, next step, exit code.

The code decides, then the HTTP status. What the hub said is the message wherever it said something; the table adds
the way out.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from dragoman.cli.fault import Exit, Fault
from dragoman.model.json import JsonObject, is_array, is_object


class Refusal(NamedTuple):
    """A refusal as it came: the HTTP status and the error of the body."""

    status: int
    code: str
    message: str
    details: JsonObject
    retryable: bool


def read(status: int, body: object) -> Refusal:
    """The refusal in a reply of the hub, or of whatever answered in its place."""
    error = body.get("error") if is_object(body) else None
    if not is_object(error):
        return Refusal(status, f"HTTP_{status}", f"the hub answered with HTTP {status}", {}, status in (429, 503))
    details = error.get("details")
    return Refusal(
        status,
        str(error.get("code") or f"HTTP_{status}"),
        _sentence(str(error.get("message") or f"the hub answered with HTTP {status}")),
        details if is_object(details) else {},
        bool(error.get("retryable")),
    )


def fault_of(refusal: Refusal, *, invalid: Exit = Exit.USAGE, agent: str | None = None) -> Fault:
    """The fault to show; `invalid` is the exit code of a VALIDATION_ERROR, which is not always the user's input.

    `agent` is whom the request was about, where the hub does not say so.
    """
    known: JsonObject = {**({"agent_id": agent} if agent else {}), **refusal.details}
    next_step = _NEXT.get(refusal.code)
    message = _loop(refusal.details) or refusal.message if refusal.code == "CALL_LOOP" else refusal.message
    return Fault(
        message,
        next=next_step(known) if next_step else _next_by_status(refusal.status),
        exit_code=_exit_code(refusal, invalid),
        code=refusal.code,
        details=refusal.details or None,
        retryable=refusal.retryable,
    )


def refused_token(refusal: Refusal, token: str | None) -> Fault:
    """The hub does not know who is asking, or that one may not do this."""
    scopes = _scopes(refusal.details)
    if refusal.status == 403:
        ask = f"dragoman keys create --name NAME --scope {scopes[0]}" if scopes else "ask its operator for another key"
        message, next_step = refusal.message, ask
    elif token is None:
        message = "the hub wants a token and none was given"
        next_step = "set DRAGOMAN_TOKEN, or ask its operator: dragoman keys create"
    else:
        # The end tells keys apart and gives nothing away: it is the checksum.
        message = f"the hub refused the token (it ends in …{token[-3:]})"
        next_step = "set DRAGOMAN_TOKEN, or ask its operator: dragoman keys create"
    return Fault(
        message, next=next_step, exit_code=Exit.REFUSED, code="AUTHORIZATION_ERROR", details=refusal.details or None
    )


def _sentence(text: str) -> str:
    """The hub's sentence in the form of ours: no full stop, and no capital where it begins with a common word."""
    text = text.strip().rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() and text[:1].isupper() else text


def _exit_code(refusal: Refusal, invalid: Exit) -> Exit:
    if refusal.code == "VALIDATION_ERROR":
        return invalid
    if refusal.status in (401, 403):
        return Exit.REFUSED
    return Exit.NOT_FOUND if refusal.status == 404 else Exit.FAILED


def _agent(details: JsonObject) -> str:
    agent = details.get("agent_id") or details.get("agent")
    return f"dragoman agents show {agent}" if agent else "dragoman discover"


def _later(details: JsonObject) -> str:
    seconds = details.get("retry_after")
    return f"try again in {seconds} s" if seconds else "try again later"


def _scopes(details: JsonObject) -> list[str]:
    for name in ("missing", "missing_scopes", "scopes_required", "required"):
        value = details.get(name)
        if is_array(value) and value:
            return [str(one) for one in value]
        if isinstance(value, str):
            return [value]
    return []


def _loop(details: JsonObject) -> str | None:
    chain = details.get("chain")
    if not is_array(chain) or not chain or "max_depth" in details:
        return None  # Too long is no loop: the hub's own words say so.
    return " → ".join(map(str, chain)) + " is a loop; a call may not come back to an agent that waits for it"


def _next_by_status(status: int) -> str:
    return "see the hub's log" if status >= 500 else "dragoman version shows whether hub and command fit together"


_NEXT: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "AGENT_NOT_FOUND": lambda details: "dragoman discover",
    "SKILL_NOT_FOUND": _agent,
    "VALIDATION_ERROR": _agent,
    "AGENT_UNAVAILABLE": _agent,
    "CIRCUIT_OPEN": _agent,
    "AGENT_TIMEOUT": lambda details: f"--timeout 2m allows more; {_agent(details)}",
    "AGENT_ERROR": _agent,
    "RATE_LIMITED": _later,
    "OVERLOADED": _later,
    "CALL_LOOP": lambda details: "call an agent that is not already waiting: dragoman discover",
    "IDEMPOTENCY_CONFLICT": lambda details: "use another --idempotency-key, or send the same input again",
    "TASK_NOT_FOUND": lambda details: "check the id; calls of other keys look unknown",
    "CALL_NOT_FOUND": lambda details: "check the id; calls of other keys look unknown",
    "NOT_FOUND": lambda details: "check the id",
    "INTERNAL_ERROR": lambda details: "see the hub's log",
}
