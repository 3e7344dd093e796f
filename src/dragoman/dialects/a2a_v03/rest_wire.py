"""The two spellings of A2A 0.3: its own JSON, and that of its protobuf, which HTTP+JSON speaks. Each into the other.

    {kind: message, role: user, parts: [{kind: text, text}]}        its own
    {role: ROLE_USER, content: [{text}]}                            protobuf's: this member and no other

Only the spelling: what a message means is read and written elsewhere, once for both (`kinds`). The readers take what
they know (in camel case) and leave the rest as it is; whoever reads the outcome says what is wrong with it.
"""

import binascii
from base64 import b64encode
from typing import Final

from dragoman.dialects.hints import HINTS
from dragoman.dialects.protojson import FREE
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.states import TaskState

STATES: Final = {state.value: f"TASK_STATE_{state.name}" for state in TaskState} | {
    "canceled": "TASK_STATE_CANCELLED",  # two Ls, here alone
    "unknown": "TASK_STATE_UNSPECIFIED",
}
_ROLES: Final = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
_ROLE_NAMES: Final[dict[Json, str]] = {"ROLE_USER": "user", "ROLE_AGENT": "agent", 1: "user", 2: "agent"}
_REFERENCES: Final = "referenceTaskIds"  # the protobuf message has no such field
# What a message has in common with that of protobuf; there is nothing else in it.
_MESSAGE: Final = ("messageId", "contextId", "taskId", "extensions", "metadata")
_URL_SAFE: Final = str.maketrans("-_", "+/")


# -- into protobuf's spelling


def proto_params(params: JsonObject) -> JsonObject:
    """What a message is sent with."""
    shown: JsonObject = {"message": proto_message(params["message"])}
    configuration: JsonObject = params.get("configuration") or {}
    configuration = {name: value for name, value in configuration.items() if value}  # a false one is the default
    if configuration:
        shown["configuration"] = configuration
    if params.get("metadata"):
        shown["metadata"] = params["metadata"]
    return shown


def proto_task(task: JsonObject, *, twice: bool = False) -> JsonObject:
    """A task. `twice`: the base64 of files is encoded once more, for those who decode it twice."""
    shown: JsonObject = {
        "id": task["id"],
        "contextId": task["contextId"],
        "status": _proto_status(task["status"], twice),
    }
    if task.get("artifacts"):
        shown["artifacts"] = [_proto_artifact(artifact, twice) for artifact in task["artifacts"]]
    if task.get("history"):
        shown["history"] = [proto_message(message, twice=twice) for message in task["history"]]
    if task.get("metadata"):
        shown["metadata"] = task["metadata"]
    return shown


def proto_event(shown: JsonObject, *, twice: bool = False) -> JsonObject:
    """What a stream tells, under the name of what it is; `twice`: as in proto_task."""
    kind: str = shown["kind"]
    if kind == "task":
        return {"task": proto_task(shown, twice=twice)}
    event: JsonObject = {name: value for name, value in shown.items() if name != "kind"}
    if "status" in event:
        return {"statusUpdate": {**event, "status": _proto_status(event["status"], twice)}}
    return {"artifactUpdate": {**event, "artifact": _proto_artifact(event["artifact"], twice)}}


def proto_message(message: JsonObject, *, twice: bool = False) -> JsonObject:
    """A message; the tasks it refers to stand in its metadata."""
    shown: JsonObject = {name: message[name] for name in _MESSAGE if message.get(name)}
    shown["role"] = _ROLES[message["role"]]
    shown["content"] = [_proto_part(part, twice) for part in message["parts"]]
    if message.get(_REFERENCES):
        about: JsonObject = message.get("metadata") or {}
        shown["metadata"] = {**about, HINTS: {**about.get(HINTS, {}), _REFERENCES: message[_REFERENCES]}}
    return shown


def _proto_status(status: JsonObject, twice: bool) -> JsonObject:
    shown: JsonObject = {**status, "state": STATES[status["state"]]}
    if "message" in shown:
        shown["message"] = proto_message(shown["message"], twice=twice)
    return shown


def _proto_artifact(artifact: JsonObject, twice: bool) -> JsonObject:
    return {**artifact, "parts": [_proto_part(part, twice) for part in artifact["parts"]]}


def _proto_part(part: JsonObject, twice: bool) -> JsonObject:
    shown: JsonObject
    if part["kind"] == "text":
        shown = {"text": part["text"]}
    elif part["kind"] == "data":
        shown = {"data": {"data": part["data"]}}
    else:
        file: JsonObject = dict(part["file"])
        if "bytes" in file:
            encoded: str = file.pop("bytes")
            file["fileWithBytes"] = b64encode(encoded.encode()).decode() if twice else encoded
        else:
            file["fileWithUri"] = file.pop("uri")
        shown = {"file": file}
    if part.get("metadata"):
        shown["metadata"] = part["metadata"]
    return shown


# -- out of it


def own_params(params: JsonObject, *, twice: bool = False) -> JsonObject:
    """What a message comes with. `twice`: it is from one who encodes files twice."""
    configuration: Json = params.get("configuration")
    if not is_object(configuration):
        configuration = {}
    length: Json = configuration.get("historyLength")
    if isinstance(length, str) and length.isascii() and length.isdigit() and len(length) < 11:
        length = int(length)  # protobuf's JSON may write numbers as texts
    return {
        **params,
        "message": own_message(given_message(params), twice=twice),
        "configuration": {
            **configuration,
            "blocking": configuration.get("blocking") or False,  # unlike in JSON-RPC, unsaid means no
            "historyLength": length,
            "pushNotificationConfig": configuration.get("pushNotification") or None,
        },
    }


def given_message(params: JsonObject) -> Json:
    """The message of a request; in the protocol's file the field is called `request`."""
    return params["message"] if "message" in params else params.get("request")


def own_message(message: Json, *, twice: bool = False) -> Json:
    """A message in 0.3's own spelling; one that has that already stays as it is."""
    if not is_object(message):
        return message
    shown = _without_null(message)
    role: Json = shown.get("role")
    shown["role"] = _ROLE_NAMES.get(role, role) if type(role) in (str, int) else role
    content: Json = shown.pop("content", shown.get("parts"))
    shown["parts"] = [_own_part(part, twice) for part in content] if is_array(content) else content
    about: Json = shown.get("metadata")
    hints: Json = about.get(HINTS) if is_object(about) else None
    if is_object(hints) and is_array(references := hints.get(_REFERENCES)):
        shown.setdefault(_REFERENCES, references)
    return shown


def own_answer(value: JsonObject, *, twice: bool = False) -> JsonObject:
    """What an agent says in 0.3's own spelling: a task, a message or an event, wrapped or bare.

    `twice`: as in own_params.
    """
    shown = _without_null(value)
    for name in ("task", "statusUpdate"):
        if is_object(held := shown.get(name)):
            return {name: _own_task(held, twice)}
    if is_object(event := shown.get("artifactUpdate")):
        return {"artifactUpdate": {**event, "artifact": _own_artifact(event.get("artifact"), twice)}}
    if "status" in shown:
        return _own_task(shown, twice)
    message: Json = shown.get("message", shown.get("msg"))
    return {"message": own_message(message, twice=twice)} if is_object(message) else shown


def files_in(message: Json) -> list[str]:
    """The bytes of every file inside a message, as they came."""
    content: Json = message.get("content") if is_object(message) else None
    files = [part.get("file") for part in content if is_object(part)] if is_array(content) else []
    found: list[Json] = [file.get("fileWithBytes") for file in files if is_object(file)]
    return [each for each in found if isinstance(each, str)]


def is_encoded_twice(encoded: str) -> bool:
    """Whether the bytes of a file are themselves base64, exactly as an encoder writes it."""
    return _inner(encoded) is not None


def may_be_encoded_twice(value: Json) -> bool:
    """Whether bytes of a file inside an object (in camel case) can be read either way."""
    if is_array(value):
        return any(may_be_encoded_twice(each) for each in value)
    if not is_object(value):
        return False
    encoded: Json = value.get("fileWithBytes")
    if isinstance(encoded, str) and is_encoded_twice(encoded):
        return True
    return any(may_be_encoded_twice(each) for name, each in value.items() if name not in FREE)


def _own_task(task: JsonObject, twice: bool) -> JsonObject:
    shown = _without_null(task)
    status: Json = shown.get("status")
    if is_object(status):
        said: Json = status.get("message", status.get("update"))
        shown["status"] = {**status, "message": own_message(said, twice=twice)} if is_object(said) else status
    if is_array(artifacts := shown.get("artifacts")):
        shown["artifacts"] = [_own_artifact(artifact, twice) for artifact in artifacts]
    if is_array(history := shown.get("history")):
        shown["history"] = [own_message(message, twice=twice) for message in history]
    return shown


def _own_artifact(artifact: Json, twice: bool) -> Json:
    parts: Json = artifact.get("parts") if is_object(artifact) else None
    return {**artifact, "parts": [_own_part(part, twice) for part in parts]} if is_array(parts) else artifact


def _own_part(part: Json, twice: bool) -> Json:
    if not is_object(part) or "kind" in part:
        return part
    shown = _without_null(part)
    data: Json = shown.get("data")
    if is_object(data) and data.keys() == {"data"}:
        shown["data"] = data["data"]
    file: Json = shown.get("file")
    if is_object(file):
        shown["file"] = _own_file(file, twice)
    return shown


def _own_file(file: JsonObject, twice: bool) -> JsonObject:
    shown = _without_null(file)
    if "fileWithUri" in shown:
        shown["uri"] = shown.pop("fileWithUri")
    encoded: Json = shown.pop("fileWithBytes", None)
    if isinstance(encoded, str):
        shown["bytes"] = (_inner(encoded) if twice else None) or _padded(encoded)
    elif encoded is not None:
        shown["bytes"] = encoded
    return shown


def _inner(encoded: str) -> str | None:
    """The base64 inside base64, where there is exactly that."""
    try:
        once = binascii.a2b_base64(_padded(encoded), strict_mode=True)
        canonical = b64encode(binascii.a2b_base64(once, strict_mode=True)) == once
    except ValueError:
        return None
    return once.decode("ascii") if once and canonical else None


def _padded(encoded: str) -> str:
    """Base64 in its one usual form: protobuf's readers also take the form for URLs, and without its end."""
    return encoded.translate(_URL_SAFE) + "=" * (-len(encoded) % 4)


def _without_null(value: JsonObject) -> JsonObject:
    return {name: item for name, item in value.items() if item is not None}
