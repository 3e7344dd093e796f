"""ProtoJSON, as the official protocol uses it: names of enums, bytes as base64, both spellings of every name.

What is emitted is strict: lowerCamelCase, enums by their names. What is read may spell names with underscores, give an
enum by its number, and leave out the padding of base64; unknown members are ignored, null means absent. A wrong type or
an unknown name of an enum is an error that names the field.
"""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec

from dragoman.model.content import Role
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.states import TaskState

Shape = TypeVar("Shape")

STATE_NAMES: Final[Mapping[TaskState, str]] = {state: f"TASK_STATE_{state.name}" for state in TaskState}
STATE_NUMBERS: Final[Mapping[int, TaskState]] = {
    1: TaskState.SUBMITTED,
    2: TaskState.WORKING,
    3: TaskState.COMPLETED,
    4: TaskState.FAILED,
    5: TaskState.CANCELED,
    6: TaskState.INPUT_REQUIRED,
    7: TaskState.REJECTED,
    8: TaskState.AUTH_REQUIRED,
}
# Only two roles have a name; who else speaks stands beside the message.
ROLE_NAMES: Final[Mapping[Role, str]] = {
    Role.USER: "ROLE_USER",
    Role.AGENT: "ROLE_AGENT",
    Role.SYSTEM: "ROLE_USER",
    Role.TOOL: "ROLE_USER",
}

_STATES: Final[Mapping[str | int, TaskState]] = {
    **{name: state for state, name in STATE_NAMES.items()},
    "TASK_STATE_CANCELLED": TaskState.CANCELED,  # as the proto of 0.3 has it
    **STATE_NUMBERS,
}
_ROLES: Final[Mapping[str | int, Role]] = {
    "ROLE_USER": Role.USER,
    "ROLE_AGENT": Role.AGENT,
    1: Role.USER,
    2: Role.AGENT,
}
# Members whose inside is the caller's own: a Struct or a Value, in which a name is never another spelling of one.
FREE: Final = frozenset({"metadata", "data", "header"})
# How the names of two words end that requests have, where they are spelled with underscores.
_TAILS: Final = re.compile(rb'_(?:ids?|type|length|immediately|modes|config|size|token|after|artifacts)"')

_decode = msgspec.json.Decoder().decode


class Reader(Generic[Shape]):
    """Decodes JSON into one shape, whichever way its names are spelled."""

    def __init__(self, shape: type[Shape]) -> None:
        self._shape = shape
        self._decode = msgspec.json.Decoder(shape).decode

    def read(self, body: bytes | msgspec.Raw) -> Shape:
        """The shape. Raises msgspec.ValidationError naming the field, msgspec.DecodeError for what is no JSON."""
        # A look is cheap beside a second decoding; a caller's own name that ends so costs time, never an answer.
        if _TAILS.search(body) is None:
            return self._decode(body)
        return msgspec.convert(camelled(_decode(body)), self._shape)

    def read_texts(self, texts: Mapping[str, str]) -> Shape:
        """The shape from query parameters, where everything is text. Raises msgspec.ValidationError."""
        return msgspec.convert(camelled(dict(texts)), self._shape, strict=False)


def camelled(value: Json) -> Json:
    """The same value with every name in lowerCamelCase, save in what is the caller's own."""
    if is_object(value):
        renamed: JsonObject = {}
        for name, item in value.items():
            spelled = camel(name)
            if spelled == name or spelled not in value:
                renamed[spelled] = item if spelled in FREE else camelled(item)
        return renamed
    return [camelled(item) for item in value] if is_array(value) else value


def camel(name: str) -> str:
    """`message_id` is `messageId`."""
    if "_" not in name:
        return name
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def read_state_name(value: str | int, path: str) -> TaskState:
    """A state by its name or number. Raises BadParams."""
    state = _STATES.get(value)
    if state is None:
        raise bad(path, f"expected one of {', '.join(STATE_NAMES.values())}, got {_shown(value)}")
    return state


def read_role_name(value: str | int, path: str) -> Role:
    """A role by its name or number. Raises BadParams."""
    role = _ROLES.get(value)
    if role is None:
        raise bad(path, f"expected ROLE_USER or ROLE_AGENT, got {_shown(value)}")
    return role


def wire_bytes(raw: bytes) -> str:
    """Bytes as base64."""
    return b64encode(raw).decode()


def read_bytes(text: str) -> bytes | None:
    """Bytes from base64, also url-safe and unpadded; None for what is no base64."""
    try:
        return b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def bad(path: str, message: str) -> BadParams:
    """A wrong field, by its path."""
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def _shown(value: str | int) -> str:
    return repr(value)[:80]
