"""What a running handler passes on by itself to the calls that it makes: one context variable.

It reaches bare coroutines given to `asyncio.gather`, tasks and worker threads, since each of them copies the context
it was started in. Set for each handler's own task (`sdk/work/work.py`), read by the client.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from dragoman.sdk.client.client import A2AClient


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The call that is being carried out, as far as calls made on its behalf have to know it."""

    call_id: str
    conversation_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    traceparent: str | None = None
    deadline: float | None = None  # on the clock's monotonic time
    client: "A2AClient | None" = None


_CURRENT: Final[ContextVar[Scope | None]] = ContextVar("dragoman_scope", default=None)


def current() -> Scope | None:
    """The scope of the handler that runs; None outside of handlers."""
    return _CURRENT.get()


@contextmanager
def within(scope: Scope | None) -> Generator[None]:
    """Let everything that starts inside belong to that scope; None leaves whatever scope there is."""
    token = _CURRENT.set(scope)
    try:
        yield
    finally:
        _CURRENT.reset(token)
