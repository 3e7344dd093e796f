"""What a command says when it cannot do what was asked: what happened, what to do next, and the exit code.

Holds no table of the hub's errors; `refusals.py` does.
"""

import enum
from collections.abc import Sequence

from dragoman.model.json import JsonObject


class Exit(enum.IntEnum):
    """The exit codes that scripts rely on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND = 4
    UNREACHABLE = 5
    INTERRUPTED = 130


class Fault(Exception):
    """A failure that the user can understand and act on; shown without a traceback."""

    def __init__(
        self,
        message: str,
        *,
        next: str,
        exit_code: Exit = Exit.FAILED,
        code: str = "FAILED",
        details: JsonObject | None = None,
        retryable: bool = False,
        lines: Sequence[str] = (),
        label: str = "error: ",
    ) -> None:
        """Take the sentence, the way out, and facts for scripts; `lines` stand between the two."""
        super().__init__(message)
        self.message = message
        self.next = next
        self.exit_code = exit_code
        self.code = code
        self.details = details
        self.retryable = retryable
        self.lines = tuple(lines)
        self.label = label

    def document(self) -> JsonObject:
        """The same for scripts."""
        error: JsonObject = {"code": self.code, "message": self.message, "next": self.next, "retryable": self.retryable}
        if self.details:
            error["details"] = self.details
        return {"error": error}


def wrong_usage(message: str, *, next: str, lines: Sequence[str] = (), details: JsonObject | None = None) -> Fault:
    """What was typed, or set, makes no sense."""
    return Fault(message, next=next, exit_code=Exit.USAGE, code="USAGE_ERROR", lines=lines, details=details)


def not_found(code: str, message: str, *, next: str) -> Fault:
    """There is no such thing."""
    return Fault(message, next=next, exit_code=Exit.NOT_FOUND, code=code)
