"""What a wire can carry, and content made to fit it.

A `Feature` exists only if code branches on it. Fitting is pure: it returns parts, or says what cannot be carried.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.json import Json, is_object
from dragoman.model.objects import input_object, parts_of_object

BLOB: Final = "part:blob"  # a facet that is lost, as the tables of the dialects name them


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


_PARTS: Final = Feature.PARTS
_INLINE: Final = Feature.INLINE

Host = Callable[[int, Blob], str]  # the address under which the hub offers the file that is a message's n-th part


def fit_parts(
    parts: tuple[Part, ...], features: frozenset[Feature], *, text_only: bool, host: Host
) -> tuple[Part, ...]:
    """The parts as a target with these features takes them: one object, several parts, or text alone.

    Files inside become links to the hub where the target takes none.
    """
    if _PARTS not in features:
        return (Data(value=input_object(parts, None)),)
    if text_only and len(parts) == 1 and isinstance(parts[0], Data):
        return (Text(text=_text_of(parts[0].value)),)
    return parts if _INLINE in features else hosted(parts, host)


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


def changed(given: tuple[Part, ...], fitted: tuple[Part, ...]) -> tuple[str, ...]:
    """What of the given parts is another thing in the fitted ones, by facets; a file that an object lists is none."""
    if given is fitted:
        return ()
    if len(given) == 1 and len(fitted) == 1:
        return _changed(given[0], fitted[0])
    if len(fitted) == 1 and isinstance(fitted[0], Data):
        listed = parts_of_object(fitted[0].value) == given
        return () if listed else ("parts:several" if given else "parts:none",)
    return (BLOB,) if any(isinstance(part, Blob) for part in given) else ()


def _changed(was: Part, now: Part) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if isinstance(was, Data):
        if not is_object(was.value):
            return ("part:data",)  # Listed in an object, with all that is known of it, or put into text.
        if isinstance(now, Text):
            found = ("part:data",)
    elif isinstance(was, Text):
        if isinstance(now, Data):
            found = ("part:text",)
    else:
        return (BLOB,) if isinstance(now, Link) else ()
    return (*found, "part:metadata") if was.metadata and not now.metadata else found


def _text_of(value: Json) -> str:
    """A JSON value as text: the value of a lone text property, else the JSON itself."""
    if is_object(value) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
