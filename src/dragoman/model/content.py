"""What people and agents say to each other: parts, messages, artifacts.

A part is one of four kinds, told apart by its type, so no combination is invalid and `match` is exhaustive.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final, final

import msgspec

from dragoman.model.json import Json, JsonObject

REFERENCED: Final = "referencedTasks"  # the metadata in which the artifacts of tasks that a message names are handed on


class Role(StrEnum):
    """Who speaks. Dialects that know only two keep the other two in metadata."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"
    TOOL = "tool"


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    media_type: str | None = None
    filename: str | None = None
    metadata: JsonObject | None = None


@final
class Text(_Part, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Plain text."""

    text: str


@final
class Data(_Part, frozen=True, kw_only=True, omit_defaults=True, tag="data"):
    """Any JSON value."""

    value: Json


@final
class Blob(_Part, frozen=True, kw_only=True, omit_defaults=True, tag="blob"):
    """A file, its bytes inside."""

    raw: bytes


@final
class Link(_Part, frozen=True, kw_only=True, omit_defaults=True, tag="link"):
    """A file, by its address."""

    url: str


Part = Text | Data | Blob | Link


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a conversation."""

    id: str
    role: Role
    parts: tuple[Part, ...]
    at: datetime | None = None
    references: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    metadata: JsonObject | None = None


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something an agent made. `kind` is the word some dialects give it ("report", "code")."""

    id: str
    parts: tuple[Part, ...]
    name: str | None = None
    description: str | None = None
    kind: str | None = None
    extensions: tuple[str, ...] = ()
    metadata: JsonObject | None = None
