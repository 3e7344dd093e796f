"""Whether an agent is called, as its breaker has it."""

from enum import StrEnum


class Circuit(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"  # calls pass
    HALF_OPEN = "half_open"  # one call at a time, to see whether the agent is back
    OPEN = "open"  # calls are refused, the agent is left alone
