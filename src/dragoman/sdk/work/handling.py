"""Which call is being carried out, for what is done on its behalf without being handed its Context: a model at work.

Set for each handler's own task (`sdk/work/work.py`), read by `sdk/run/run.py`.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.sdk.work.context import Context

_CURRENT: Final[ContextVar["Context | None"]] = ContextVar("dragoman_handling", default=None)


def current_context() -> "Context | None":
    """The Context of the handler that runs; None outside of handlers."""
    return _CURRENT.get()


@contextmanager
def handling(context: "Context") -> Generator[None]:
    """Let everything that starts inside be done for that call."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)
