"""The ways in which reaching a peer can fail.

The message is made for callers: it never says which address rule refused, nor what the peer answered. What the
operating system said is the exception's cause, for logs only.
"""

import enum
from collections.abc import Mapping
from typing import Final


class Reach(enum.StrEnum):
    """What went wrong, in the words that metrics and retries use."""

    FORBIDDEN = "forbidden"
    UNRESOLVED = "unresolved"
    REFUSED = "refused"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    TOO_LARGE = "too_large"
    COMPRESSED = "compressed"
    CLOSED = "closed"


# Unresolved, refused and TLS share one sentence: the difference would tell a stranger what is inside our network.
MESSAGES: Final[Mapping[Reach, str]] = {
    Reach.FORBIDDEN: "address not allowed",
    Reach.UNRESOLVED: "not reachable",
    Reach.REFUSED: "not reachable",
    Reach.TLS: "not reachable",
    Reach.TIMEOUT: "no answer in time",
    Reach.RESET: "connection closed before the answer was complete",
    Reach.PROTOCOL: "not valid HTTP",
    Reach.TOO_LARGE: "answer too large",
    Reach.COMPRESSED: "answer is compressed",
    Reach.CLOSED: "client is closed",
}


class NetError(Exception):
    """A request that got no complete answer; `sent` once any byte of it may have reached the peer."""

    def __init__(self, kind: Reach, *, sent: bool = False) -> None:
        """Take the message that belongs to the kind."""
        super().__init__(MESSAGES[kind])
        self.kind = kind
        self.sent = sent
