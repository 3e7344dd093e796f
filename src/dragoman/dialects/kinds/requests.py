"""Requests of A2A 0.3 and of dotted read into operations: what both say in the same words.

Does not frame anything and knows no method: that is each dialect's own.
"""

from typing import Annotated, Final

import msgspec

from dragoman.dialects.hints import read_hints, without_hints
from dragoman.dialects.jsonrpc import given_ids
from dragoman.dialects.kinds.objects import MessageShape, read_message
from dragoman.dialects.kinds.push import ConfigShape, callback_of
from dragoman.dialects.refusals import details_of
from dragoman.dialects.sse import last_seen
from dragoman.dialects.uuids import uuid_of
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpRequest
from dragoman.model.json import JsonObject, is_array, is_object
from dragoman.model.operations import SendTask, Wait

# What a caller waits at most who named no time: an hour for an answer, a day for one that is fetched later.
WAITED_S: Final = 3600.0
LATER_S: Final = 86_400.0
_AT_ONCE: Final = Wait.NONE
_AT_THE_END: Final = Wait.END
_AS_IT_GOES: Final = Wait.STREAM

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ConfigurationShape(msgspec.Struct, frozen=True, gc=False):
    """How a message is to be answered."""

    acceptedOutputModes: list[str] | None = None  # noqa: N815 - the wire's own name
    historyLength: Count | None = None  # noqa: N815 - the wire's own name
    blocking: bool | None = None
    pushNotificationConfig: ConfigShape | None = None  # noqa: N815 - the wire's own name


NO_CONFIGURATION: Final = ConfigurationShape()


class SendShape(msgspec.Struct, frozen=True, gc=False):
    """What a message comes with."""

    message: MessageShape
    configuration: ConfigurationShape | None = None
    metadata: JsonObject | None = None
    tenant: str | None = None  # the agent that is meant, where the URL names none


def send_task(
    request: HttpRequest, asked: SendShape, slug: str, *, streamed: bool = False, extensions: tuple[str, ...] = ()
) -> SendTask:
    """The message as a task to be carried out; `streamed`: its caller wants to hear all that happens.

    Raises BadParams.
    """
    said, configuration = asked.message, asked.configuration or NO_CONFIGURATION
    config = configuration.pushNotificationConfig
    hints = read_hints(asked.metadata, said.metadata)
    wait = _AS_IT_GOES if streamed else _AT_ONCE if configuration.blocking is False else _AT_THE_END
    message = read_message(said, made_message_id(request), request.at)
    key, request_id = given_ids(request)
    callback = None if config is None else callback_of(config, slug)
    task = SendTask(
        message=message,
        agent=request.params.get("agent") or asked.tenant or hints.agent,
        skill=hints.skill,
        continues=said.taskId or None,
        context_id=said.contextId or None,
        wait=wait,
        priority=hints.priority,
        request_id=request_id,
        timeout_s=hints.timeout_s or (LATER_S if wait is _AT_ONCE else WAITED_S),
        parent_id=hints.parent,
        within=hints.within,
        title=hints.title,
        idempotency_key=key,
        extensions=extensions,
        metadata=without_hints(asked.metadata),
    )
    if configuration is NO_CONFIGURATION and not streamed:
        return task
    accepts = tuple(configuration.acceptedOutputModes or ())
    after = last_seen(request.headers) if streamed else None
    return msgspec.structs.replace(task, callback=callback, accepts=accepts, after=after)


def made_message_id(request: HttpRequest) -> str:
    """The id of a message that came without one."""
    return "msg-" + uuid_of("message", request.id).replace("-", "")[:12]


def error_data(error: DragomanError) -> JsonObject:
    """The facts of an error, those that have a name in these dialects under that name."""
    shown = details_of(error)
    errors = shown.get("errors")
    if is_array(errors) and errors and is_object(errors[0]):
        shown.setdefault("path", errors[0].get("path"))
    if "call_id" in shown:
        shown["taskId"] = shown.pop("call_id")
    return shown
