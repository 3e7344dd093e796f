"""Every member that the messages of the two protobufs have, so that one too many is seen.

The published Python client of 0.3 refuses a whole answer for one member outside them.
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.support.quirks.words import is_array, is_object

Members = Mapping[str, Mapping[str, str]]

FREE: Final = "free"  # any JSON object
ANY: Final = "any"  # any JSON value
WORD: Final = "word"  # a text, a number, a flag

_TASK: Final = {
    "id": WORD,
    "contextId": WORD,
    "status": "TaskStatus",
    "artifacts": "Artifact",
    "history": "Message",
    "metadata": FREE,
}
_ARTIFACT: Final = {
    "artifactId": WORD,
    "name": WORD,
    "description": WORD,
    "parts": "Part",
    "metadata": FREE,
    "extensions": WORD,
}
_MESSAGE: Final = {"messageId": WORD, "contextId": WORD, "taskId": WORD, "role": WORD} | {
    "metadata": FREE,
    "extensions": WORD,
}
_COMMON: Final = {
    "SendMessageResponse": {"task": "Task", "message": "Message"},
    "Task": _TASK,
    "TaskStatus": {"state": WORD, "message": "Message", "timestamp": WORD},
    "Artifact": _ARTIFACT,
}
V03: Final[Members] = {
    **_COMMON,
    "Message": {**_MESSAGE, "content": "Part"},
    "Part": {"text": WORD, "file": "FilePart", "data": "DataPart", "metadata": FREE},
    "FilePart": {"fileWithUri": WORD, "fileWithBytes": WORD, "mimeType": WORD, "name": WORD},
    "DataPart": {"data": FREE},
}
V10: Final[Members] = {
    **_COMMON,
    "Message": {**_MESSAGE, "parts": "Part", "referenceTaskIds": WORD},
    "Part": {
        "text": WORD,
        "raw": WORD,
        "url": WORD,
        "data": ANY,
        "metadata": FREE,
        "filename": WORD,
        "mediaType": WORD,
    },
}


def strange_members(value: Any, kind: str, members: Members, path: str = "") -> list[str]:
    """The paths of all members that a message of this kind does not have."""
    if kind == ANY:
        return []
    if kind == FREE:
        return [] if is_object(value) else [path]
    if kind == WORD:
        return [path] if is_object(value) or value is None else []
    if not is_object(value):
        return [path]
    found: list[str] = []
    for name, item in value.items():
        expected = members[kind].get(name)
        below = f"{path}.{name}"
        if expected is None:
            found.append(below)
            continue
        for each in item if is_array(item) and expected != ANY else [item]:
            found += strange_members(each, expected, members, below)
    return found
