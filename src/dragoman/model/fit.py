"""What a wire can carry, and content made to fit it.

A `Feature` exists only if code branches on it. Fitting is pure: it returns parts, or says what cannot be carried.
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.json import Json, is_object
from dragoman.model.objects import input_object


class Feature(StrEnum):
    """What a target offers: by its dialect, narrowed by its card."""

    ANSWERS = "answers"  # the reply to a send can hold the outcome
    REPORTS = "reports"  # the agent posts its progress to the hub
    STREAM = "stream"  # send and receive events in one request
    SUBSCRIBE = "subscribe"  # events of an existing task
    GET = "get"  # poll an existing task
    CANCEL = "cancel"
    CONTINUE = "continue"  # answer its question
    PARTS = "parts"  # several parts in one message
    INLINE = "inline"  # file bytes inside


Host = Callable[[int, Blob], str]  # the address under which the hub offers the file that is a message's n-th part


def fit_parts(
    parts: tuple[Part, ...], features: frozenset[Feature], *, text_only: bool, host: Host
) -> tuple[Part, ...]:
    """The parts as a target with these features takes them: one object, several parts, or text alone.

    Files inside become links to the hub where the target takes none.
    """
    if Feature.PARTS not in features:
        return (Data(value=input_object(parts, None)),)
    if text_only and len(parts) == 1 and isinstance(parts[0], Data):
        return (Text(text=_text_of(parts[0].value)),)
    return parts if Feature.INLINE in features else hosted(parts, host)


def hosted(parts: tuple[Part, ...], host: Host) -> tuple[Part, ...]:
    """The same parts, every file inside them as a link; the very same tuple where there is none."""
    if not any(isinstance(part, Blob) for part in parts):
        return parts
    return tuple(
        Link(url=host(index, part), media_type=part.media_type, filename=part.filename, metadata=part.metadata)
        if isinstance(part, Blob)
        else part
        for index, part in enumerate(parts)
    )


def _text_of(value: Json) -> str:
    """A JSON value as text: the value of a lone text property, else the JSON itself."""
    if is_object(value) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
