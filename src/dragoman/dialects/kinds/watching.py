"""Who is told of a task, as callers of A2A 0.3 and of dotted ask for it: `tasks/pushNotificationConfig/…`."""

from typing import Final

import msgspec

from dragoman.dialects.jsonrpc import Frame, read_params
from dragoman.dialects.kinds.objects import bad_param
from dragoman.dialects.kinds.push import ConfigShape, Name, callback_of, config_object
from dragoman.model.answers import CallbackList
from dragoman.model.callbacks import Callback
from dragoman.model.http import HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.operations import DeleteCallback, GetCallback, ListCallbacks, Operation, SetCallback

_SET: Final = "tasks/pushNotificationConfig/set"
_GET: Final = "tasks/pushNotificationConfig/get"
_LIST: Final = "tasks/pushNotificationConfig/list"
_DELETE: Final = "tasks/pushNotificationConfig/delete"
PUSH_METHODS: Final = frozenset({_SET, _GET, _LIST, _DELETE})


class _Named(msgspec.Struct, frozen=True, gc=False):
    """A task by either of its names, and a config of it."""

    id: Name | None = None
    taskId: Name | None = None  # noqa: N815 - the wire's own name
    pushNotificationConfigId: Name | None = None  # noqa: N815 - the wire's own name


class _Given(_Named, frozen=True, gc=False, kw_only=True):
    """A task, and a config for it."""

    pushNotificationConfig: ConfigShape  # noqa: N815 - the wire's own name


_decode_named = msgspec.json.Decoder(_Named).decode
_decode_given = msgspec.json.Decoder(_Given).decode


def read_push(request: HttpRequest, frame: Frame, slug: str) -> Operation:
    """What one of the four methods asks for. Raises BadParams."""
    agent = request.params.get("agent")
    if frame.method == _SET:
        given = read_params(frame, _decode_given)
        callback = callback_of(given.pushNotificationConfig, slug)
        return SetCallback(task_id=_task_id(given, "taskId"), callback=callback, agent=agent)
    named = read_params(frame, _decode_named)
    task_id, config_id = _task_id(named, "id"), named.pushNotificationConfigId
    if frame.method == _GET:
        return GetCallback(task_id=task_id, dialect=slug, callback_id=config_id, agent=agent)
    if frame.method == _LIST:
        return ListCallbacks(task_id=task_id, dialect=slug, agent=agent)
    if config_id is None:
        raise bad_param("pushNotificationConfigId", "required")
    return DeleteCallback(task_id=task_id, dialect=slug, callback_id=config_id, agent=agent)


def shown_push(operation: Operation, answer: Callback | CallbackList) -> JsonObject | list[JsonObject]:
    """A task's config, or all of them."""
    if isinstance(answer, CallbackList):
        return [_shown(operation, each) for each in answer.callbacks]
    return _shown(operation, answer)


def _shown(operation: Operation, callback: Callback) -> JsonObject:
    asked = operation if isinstance(operation, SetCallback | GetCallback | ListCallbacks) else None
    return {"taskId": "" if asked is None else asked.task_id, "pushNotificationConfig": config_object(callback)}


def _task_id(named: _Named, name: str) -> str:
    """The task; the methods call it by different names, and callers by either."""
    task_id = named.taskId or named.id
    if task_id is None:
        raise bad_param(name, "required")
    return task_id
