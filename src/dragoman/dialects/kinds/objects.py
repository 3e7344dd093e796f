"""Messages, parts and artifacts that say what they are in a member `kind`: the shapes of A2A 0.3 and of dotted.

Written strictly, and read strictly from callers. What these shapes have no member for stands in a part's metadata and
is taken out again on the way back. What agents answer is read by its shape (`shapes.py`), never here.
"""

import binascii
from base64 import b64encode
from datetime import datetime
from typing import Annotated, Final, Literal, assert_never

import msgspec

from dragoman.dialects.hints import HINTS, without_hints
from dragoman.dialects.times import read_time
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject, is_object
from dragoman.model.task import Task
from dragoman.model.usage import told_usage

COMPAT: Final = "data_part_compat"  # the reference SDK's own word for data that is no object
_MEDIA_TYPE: Final = "mediaType"
_FILENAME: Final = "filename"
_ROLES: Final = {"user": Role.USER, "agent": Role.AGENT}
_OTHER_ROLES: Final = frozenset({Role.SYSTEM, Role.TOOL})

Id = Annotated[str, msgspec.Meta(max_length=256)]


class FileShape(msgspec.Struct, frozen=True, gc=False):
    """A file: its bytes in base64, or where it is."""

    bytes: str | None = None
    uri: str | None = None
    name: str | None = None
    mimeType: str | None = None  # noqa: N815 - the wire's own name


class PartShape(msgspec.Struct, frozen=True, gc=False):
    """One part; clients between the versions leave `kind` out and name files as 1.0 does."""

    kind: Literal["text", "file", "data"] | None = None
    text: str | None = None
    file: FileShape | None = None
    data: JsonObject | None = None
    metadata: JsonObject | None = None
    raw: str | None = None
    url: str | None = None
    filename: str | None = None
    mediaType: str | None = None  # noqa: N815 - the wire's own name


class MessageShape(msgspec.Struct, frozen=True, gc=False):
    """One message of a caller's."""

    role: Literal["user", "agent"]
    parts: Annotated[list[PartShape], msgspec.Meta(min_length=1)]
    kind: Literal["message"] | None = None
    messageId: Id | None = None  # noqa: N815 - the wire's own name
    contextId: Id | None = None  # noqa: N815 - the wire's own name
    taskId: Id | None = None  # noqa: N815 - the wire's own name
    referenceTaskIds: list[Id] | None = None  # noqa: N815 - the wire's own name
    extensions: list[str] | None = None
    timestamp: str | None = None
    metadata: JsonObject | None = None

    @property
    def is_hybrid(self) -> bool:
        """Whether neither the message nor any part says its kind: such a client wants its answers wrapped."""
        return self.kind is None and all(part.kind is None for part in self.parts)


def read_message(message: MessageShape, missing_id: str, at: datetime) -> Message:
    """The message without the block that was for the hub; `at` stands for a time that cannot be read.

    Raises BadParams naming the part that makes no sense.
    """
    return Message(
        id=message.messageId or missing_id,
        role=_role(message),
        parts=tuple([_read_part(part, f"message.parts[{index}]") for index, part in enumerate(message.parts)]),
        at=None if message.timestamp is None else read_time(message.timestamp, at),
        references=tuple(message.referenceTaskIds or ()),
        extensions=tuple(message.extensions or ()),
        metadata=without_hints(message.metadata),
    )


def wire_message(message: Message, *, context_id: str, task_id: str | None) -> JsonObject:
    """A message of the given context and task."""
    shown: JsonObject = {
        "kind": "message",
        "messageId": message.id,
        "role": "agent" if message.role is Role.AGENT else "user",
        "parts": [wire_part(part) for part in message.parts],
        "contextId": context_id,
    }
    if task_id is not None:
        shown["taskId"] = task_id
    if message.references:
        shown["referenceTaskIds"] = message.references
    if message.extensions:
        shown["extensions"] = message.extensions
    metadata = message.metadata
    if message.role in _OTHER_ROLES:
        # There are only two roles here; who else spoke stands beside it.
        metadata = {**(metadata or {}), HINTS: {"role": message.role.value}}
    if metadata:
        shown["metadata"] = metadata
    return shown


def wire_artifact(artifact: Artifact) -> JsonObject:
    """An artifact."""
    shown: JsonObject = {"artifactId": artifact.id}
    if artifact.name is not None:
        shown["name"] = artifact.name
    if artifact.description is not None:
        shown["description"] = artifact.description
    shown["parts"] = [wire_part(part) for part in artifact.parts]
    if artifact.extensions:
        shown["extensions"] = artifact.extensions
    metadata = artifact.metadata
    if artifact.kind is not None:
        metadata = {**(metadata or {}), HINTS: {"kind": artifact.kind}}
    if metadata:
        shown["metadata"] = metadata
    return shown


def wire_part(part: Part) -> JsonObject:
    """One part: a text, a file or an object."""
    about: JsonObject = dict(part.metadata) if part.metadata else {}
    shown: JsonObject
    match part:
        case Text():
            shown = {"kind": "text", "text": part.text}
            _note(about, part)
        case Data(value=value):
            if is_object(value):
                shown = {"kind": "data", "data": value}
            else:
                shown = {"kind": "data", "data": {"value": value}}
                about[COMPAT] = True
            _note(about, part)
        case Blob():
            shown = {"kind": "file", "file": _file({"bytes": b64encode(part.raw).decode()}, part)}
        case Link():
            shown = {"kind": "file", "file": _file({"uri": part.url}, part)}
        case _ as never:
            assert_never(never)
    if about:
        shown["metadata"] = about
    return shown


def beside_task(task: Task) -> JsonObject:
    """What a task has no member for, to stand in its metadata."""
    beside: JsonObject = {}
    if task.progress is not None:
        beside["progress"] = task.progress
    if task.usage is not None:
        beside["usage"] = told_usage(task.usage)
    if task.failure is not None:
        beside["failure"] = {"code": task.failure.code, "retryable": task.failure.retryable}
    return beside


def restored(part: Part) -> Part:
    """The part with what stood in its metadata for want of a member back in its place."""
    about = part.metadata
    if about is None or isinstance(part, Blob | Link):
        return part
    rest = dict(about)
    changes: JsonObject = {}
    for name, field in ((_MEDIA_TYPE, "media_type"), (_FILENAME, "filename")):
        if isinstance(rest.get(name), str) and rest[name] and getattr(part, field) is None:
            changes[field] = rest.pop(name)
    if isinstance(part, Data) and rest.get(COMPAT) is True and is_object(part.value) and part.value.keys() == {"value"}:
        del rest[COMPAT]
        changes["value"] = part.value["value"]
    return msgspec.structs.replace(part, metadata=rest or None, **changes) if changes else part


def bad_param(path: str, message: str) -> BadParams:
    """A field that is wrong, and why."""
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def _role(message: MessageShape) -> Role:
    """Who speaks; a role that the wire has no word for stands in the hints."""
    told = (message.metadata or {}).get(HINTS)
    named = told.get("role") if is_object(told) else None
    return Role(named) if isinstance(named, str) and named in _OTHER_ROLES else _ROLES[message.role]


def _read_part(part: PartShape, path: str) -> Part:
    kind = part.kind or _kind_of(part, path)
    metadata = part.metadata or None
    if kind == "text":
        if part.text is None:
            raise bad_param(f"{path}.text", "required")
        text = Text(text=part.text, media_type=part.mediaType, filename=part.filename, metadata=metadata)
        return text if metadata is None else restored(text)
    if kind == "data":
        if part.data is None:
            raise bad_param(f"{path}.data", "required, an object")
        data = Data(value=part.data, media_type=part.mediaType, filename=part.filename, metadata=metadata)
        return data if metadata is None else restored(data)
    file = part.file
    if file is None:
        if part.raw is None and part.url is None:
            raise bad_param(f"{path}.file", "required")
        file = FileShape(bytes=part.raw, uri=part.url, name=part.filename, mimeType=part.mediaType)
    return _read_file(file, metadata, f"{path}.file")


def _kind_of(part: PartShape, path: str) -> str:
    """What a part is that does not say so: whatever it alone brings."""
    brought = [
        kind
        for kind, value in (
            ("text", part.text),
            ("data", part.data),
            ("file", part.file),
            ("file", part.raw),
            ("file", part.url),
        )
        if value is not None
    ]
    if len(brought) != 1:
        raise bad_param(f"{path}.kind", "expected text, file or data")
    return brought[0]


def _read_file(file: FileShape, metadata: JsonObject | None, path: str) -> Part:
    name, media_type = file.name or None, file.mimeType or None
    if (file.bytes is None) == (file.uri is None):
        raise bad_param(path, "expected either bytes or uri")
    if file.bytes is None:
        if not file.uri:
            raise bad_param(f"{path}.uri", "expected an address")
        return Link(url=file.uri, media_type=media_type, filename=name, metadata=metadata)
    raw = _bytes(file.bytes)
    if raw is None:
        raise bad_param(f"{path}.bytes", "expected base64")
    return Blob(raw=raw, media_type=media_type, filename=name, metadata=metadata)


def _bytes(text: str) -> bytes | None:
    if text.endswith("==="):
        return None  # Padding that pads nothing, which the decoder lets pass.
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # its own error, or a character outside ASCII
        return None


def _file(shown: JsonObject, part: Blob | Link) -> JsonObject:
    if part.filename:
        shown["name"] = part.filename
    if part.media_type:
        shown["mimeType"] = part.media_type
    return shown


def _note(about: JsonObject, part: Text | Data) -> None:
    """What is known of a text or an object, which have no member for it."""
    if part.media_type is not None:
        about[_MEDIA_TYPE] = part.media_type
    if part.filename is not None:
        about[_FILENAME] = part.filename
