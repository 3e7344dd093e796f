"""What streams are made of here: lines with a number and the time they were said, as events of the platform dialect.

A reader puts the pieces together again and looks at every line: several may come in one piece, none may be missing,
double or out of order.
"""

import time
from typing import Any, Final

STREAM_PATH: Final = "/v1/a2a/call/stream"
PADDING: Final = (
    "the pass is open, drive on"  # a line is as long as a model's usual piece of an answer, or a little more
)


def line(number: int) -> str:
    """One line, said now."""
    return f"{number} {time.monotonic_ns()} {PADDING}\n"


def event(name: str, data: bytes, seq: int | None = None) -> bytes:
    """One event of a stream."""
    numbered = b"" if seq is None else b"id: %d\n" % seq
    return numbered + b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def chunk(text: str, seq: int | None = None) -> bytes:
    """A piece of the answer; a line has nothing that JSON would escape but its end."""
    return event("chunk", b'{"content":"%b"}' % text.replace("\n", "\\n").encode(), seq)


def asked(lines: int, per_s: float, *, waits: bool = False) -> dict[str, Any]:
    """The input of a call: how many lines are wanted, how fast; `waits`: only when the agent is told to go on."""
    return {"lines": lines, "per_s": per_s, "waits": waits}


def call_body(agent_id: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The call as the hub is asked; the agent itself reads nothing but the input."""
    options = {"timeout_ms": 3_600_000}
    return {"target_agent_id": agent_id, "skill": "tell", "input": wanted, "options": options}


def telling_card(url: str) -> dict[str, Any]:
    """The card of the agent that tells."""
    return {
        "name": "Tell",
        "description": "Tells line after line.",
        "version": "1.0.0",
        "capabilities": {"streaming": True, "a2a": True, "memory": False},
        "skills": [{"name": "tell", "description": "Tells", "input_schema": {"type": "object"}}],
        "authentication": {"type": "bearer", "scopes_required": ["a2a:call"]},
        "rate_limits": {"requests_per_minute": 1_000_000, "concurrent_requests": 1000},
        "endpoint": f"{url}a2a",
    }
