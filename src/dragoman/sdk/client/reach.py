"""Why a hub could not be reached, in words that a person can act on. Shared with the command line."""

from typing import Final

REASONS: Final = {
    "forbidden": "no usable address", "unresolved": "no such host", "refused": "connection refused",
    "tls": "TLS failed", "timeout": "no answer in time", "reset": "connection closed",
    "protocol": "what answers there is no hub", "too_large": "answer too large",
    "compressed": "answer is compressed", "closed": "closed",
}  # fmt: skip


def is_unanswered(kind: str, *, sent: bool) -> bool:
    """Whether the hub took a request and nobody knows what became of it."""
    return sent and kind in ("timeout", "reset")


def unreachable(url: str, kind: str, *, sent: bool) -> str:
    """What went wrong, without a full stop."""
    reason = REASONS.get(kind, kind)
    if is_unanswered(kind, sent=sent):
        return f"{url} took the request and gave no answer ({reason})"
    return f"no hub answers at {url} ({reason})"
