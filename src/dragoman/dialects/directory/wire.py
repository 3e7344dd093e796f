"""The directory's params, named and shaped as its document has them. Nulls are taken as absent."""

from typing import Annotated, Final, Literal, TypeVar

import msgspec

from dragoman.dialects.jsonrpc import bad_field
from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject

Shape = TypeVar("Shape", bound=msgspec.Struct)

MAX_TIMEOUT_MS: Final = 3_600_000
MAX_CAPABILITIES: Final = 100

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Capability = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class RegisterParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An agent as it announces itself. `methods` is ours: what it knows beside a2a/task."""

    agent_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    capabilities: Annotated[list[Capability], msgspec.Meta(max_length=MAX_CAPABILITIES)]
    endpoint: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    methods: list[str] | None = None


class DiscoverParams(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for: agents with any of these."""

    capabilities: Annotated[list[Capability], msgspec.Meta(min_length=1, max_length=MAX_CAPABILITIES)]


class StepParams(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A step that follows a task; without an input it is given the output of the one before."""

    skill: Capability = msgspec.field(name="action")
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    agent: Id | None = None
    input: JsonObject | None = None


class TaskParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A task. `timeoutMs` and `steps` are ours."""

    task_id: Id
    action: Capability
    sender: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    input: JsonObject | None = None
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_MS)] | None = None
    steps: list[StepParams | list[StepParams]] | None = None


class EventsParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What somebody wants to hear of; `taskId`: of that task alone, by its sender's own name for it."""

    topics: Annotated[list[Literal["agents", "tasks"]], msgspec.Meta(min_length=1)] | None = None
    task_id: Id | None = None


class CancelParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task that is no longer wanted, by its sender's own name for it."""

    task_id: Id
    reason: str | None = None


def shaped(given: JsonObject, shape: type[Shape], above: str = "") -> Shape:
    """An object as one of these shapes; `above` is where it stands, for the error.

    Raises BadParams naming every field that is missing, or the first that is wrong.
    """
    fields = msgspec.structs.fields(shape)
    missing = [field.encode_name for field in fields if field.required and given.get(field.encode_name) is None]
    if missing:
        named = [above + name for name in missing]
        raise BadParams(
            f"Missing fields: {', '.join(named)}",
            missing=missing,
            errors=[{"path": name, "message": "required"} for name in named],
        )
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        (wrong,) = bad_field(error, "params").details["errors"]
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise wrong_field(above + wrong["path"], wrong["message"])


def wrong_field(path: str, message: str) -> BadParams:
    """The error for one field that is there and wrong."""
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
