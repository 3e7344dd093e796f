"""How a dialect is spoken where both sides may write at any time: messages and acknowledgements, a frame each.

Deliberately not here: what carries the frames.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.model.http import Headers


class Glance(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one look at a frame tells, before anybody reads it as a request."""

    id: str | None = None  # its own
    answers: str | None = None  # the id of the message that it acknowledges
    about: str | None = None  # the task of which it tells
    trace: str | None = None  # the W3C traceparent that it brings
    speaks: bool = True  # it is a message by itself, whether or not it acknowledges another


UNREADABLE: Final = Glance()


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """The paths where a dialect is spoken so, and its pure functions."""

    paths: tuple[str, ...]
    opening: str  # the route as whose request the first words are read: they say whose messages are wanted
    messages: str  # the route as whose request each message is read
    headers: Headers  # what such a request would say of its body
    glance: Callable[[bytes], Glance]
    # The message that says what an acknowledgement (the second) of one of ours (the first) reports, if it does.
    report: Callable[[bytes, bytes], bytes | None]
