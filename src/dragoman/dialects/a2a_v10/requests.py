"""The operations of A2A 1.0: what each request asks of the hub, and how much of the answer its caller wants to see.

Knows no framing: JSON-RPC and HTTP bring the same requests, and both are answered from the same view.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.dialects.a2a_v10.push import (
    callback_of,
    read_create_push,
    read_delete_push,
    read_get_push,
    read_list_push,
)
from dragoman.dialects.a2a_v10.view import Asked, View, agent_of, page_cursor, page_tag
from dragoman.dialects.a2a_v10.wire import (
    CANCEL,
    CARD,
    CREATE_PUSH,
    DEFAULT_PAGE,
    GET,
    LIST,
    LIST_PUSH,
    NAME_PUSH,
    SEND,
    SUBSCRIBE,
    CancelTaskRequest,
    CardRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendConfiguration,
    SendMessageRequest,
    SubscribeRequest,
    WireMessage,
    WirePart,
)
from dragoman.dialects.hints import HINTS, read_hints, without_hints
from dragoman.dialects.jsonrpc import Frame, bad_field, given_ids, read_params
from dragoman.dialects.protojson import Reader, bad, read_bytes, read_role_name, read_state_name
from dragoman.dialects.sse import last_seen
from dragoman.model.content import Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import NotJson
from dragoman.model.http import HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import CancelTask, FollowTask, GetCard, GetTask, ListTasks, SendTask, Wait

Shape = TypeVar("Shape")

WAIT_S: Final = 3600.0  # a caller that waits sets no limit of its own
LATER_S: Final = 86_400.0
_NO_CONFIGURATION: Final = SendConfiguration()
_WHOLE: Final = View(sent=True)
_AT_ONCE: Final = Wait.NONE
_AT_THE_END: Final = Wait.END
_AS_IT_GOES: Final = Wait.STREAM
_UNNAMED: Final = (Role.SYSTEM, Role.TOOL)  # roles that the wire has no name for


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How one method is read, wherever its request stands; each raises DragomanError for what makes no sense."""

    by_frame: Callable[[HttpRequest, Frame], Asked]
    by_body: Callable[[HttpRequest, bytes], Asked]
    by_texts: Callable[[HttpRequest, Mapping[str, str]], Asked]


def read_send(request: HttpRequest, params: SendMessageRequest, *, streamed: bool = False) -> Asked:
    """A message for an agent, as a new task or into one that waits for it."""
    wire, how, headers = params.message, params.configuration or _NO_CONFIGURATION, request.headers
    wait = _AS_IT_GOES if streamed else _AT_ONCE if how.return_immediately else _AT_THE_END
    hints = read_hints(params.metadata, wire.metadata)
    named, tenant, metadata = request.params.get("agent"), params.tenant, without_hints(params.metadata)
    if tenant and named is not None and tenant != named:
        metadata = {"tenant": tenant, **(metadata or {})}  # The URL has made it needless, so it is kept here.
    extensions = headers.get(b"a2a-extensions") or headers.get(b"x-a2a-extensions")
    message = _message(wire)
    key, request_id = given_ids(request)
    operation = SendTask(
        message=message,
        agent=named or tenant or hints.agent,
        skill=hints.skill,
        continues=wire.task_id or None,
        context_id=wire.context_id or None,
        wait=wait,
        priority=hints.priority,
        timeout_s=hints.timeout_s or (LATER_S if wait is _AT_ONCE else WAIT_S),
        parent_id=hints.parent,
        within=hints.within,
        title=hints.title,
        idempotency_key=key,
        request_id=request_id,
        extensions=_extensions(extensions) if extensions else (),
        metadata=metadata,
    )
    if streamed:
        operation = msgspec.structs.replace(operation, after=last_seen(headers))
    if how is _NO_CONFIGURATION:
        return Asked(operation, _WHOLE)
    push, accepts = how.task_push_notification_config, tuple(how.accepted_output_modes or ())
    callback = None if push is None else callback_of(push, request)
    operation = msgspec.structs.replace(operation, callback=callback, accepts=accepts)
    return Asked(operation, _WHOLE if how.history_length is None else View(sent=True, history=how.history_length))


def read_stream(request: HttpRequest, params: SendMessageRequest) -> Asked:
    """The same, answered event by event."""
    return read_send(request, params, streamed=True)


def read_get(request: HttpRequest, params: GetTaskRequest) -> Asked:
    """One task."""
    return Asked(
        GetTask(task_id=params.id, agent=agent_of(request, params.tenant)), View(history=params.history_length)
    )


def read_list(request: HttpRequest, params: ListTasksRequest) -> Asked:
    """Tasks by context, state and time, page by page."""
    state = None if params.status is None else read_state_name(params.status, "status")
    limit = DEFAULT_PAGE if params.page_size is None else params.page_size
    agent = agent_of(request, params.tenant)
    after = params.status_timestamp_after
    tag = page_tag(agent, params.context_id or None, state, after and after.isoformat())
    operation = ListTasks(
        agent=agent,
        context_id=params.context_id or None,
        state=state,
        after=after,
        limit=limit,
        cursor=page_cursor(params.page_token, tag),
    )
    shown = bool(params.include_artifacts)
    return Asked(operation, View(history=params.history_length, artifacts=shown, page_size=limit, page_tag=tag))


def read_cancel(request: HttpRequest, params: CancelTaskRequest) -> Asked:
    """The end of a task."""
    said = (params.metadata or {}).get("reason")
    reason = said if isinstance(said, str) and said else None
    return Asked(CancelTask(task_id=params.id, reason=reason, agent=agent_of(request, params.tenant)))


def read_subscribe(request: HttpRequest, params: SubscribeRequest) -> Asked:
    """What happens to a task from now on, or since the event that the caller saw last."""
    after = last_seen(request.headers)
    return Asked(FollowTask(task_id=params.id, after=after, agent=agent_of(request, params.tenant)))


def read_card_request(request: HttpRequest, params: CardRequest) -> Asked:
    """The card that only those see who may."""
    return Asked(GetCard(agent=agent_of(request, params.tenant)), View(extended=True))


def _message(wire: WireMessage) -> Message:
    role, metadata = read_role_name(wire.role, "message.role"), wire.metadata
    if metadata:
        role, metadata = _told_role(metadata) or role, without_hints(metadata)
    parts: list[Part] = []
    for part in wire.parts:
        parts.append(_part(part, len(parts)))
    return Message(
        id=wire.message_id,
        role=role,
        parts=tuple(parts),
        references=wire.reference_task_ids or (),
        extensions=wire.extensions or (),
        metadata=metadata or None,
    )


def _told_role(metadata: JsonObject) -> Role | None:
    """The role that stands in the hints, where the wire has no name for it."""
    told: Json = metadata.get(HINTS)
    named: Json = told.get("role") if is_object(told) else None
    return Role(named) if named in _UNNAMED else None


def _part(part: WirePart, index: int) -> Part:
    text, raw, url, data = part.text, part.raw, part.url, part.data
    media_type, filename, metadata = part.media_type or None, part.filename or None, part.metadata or None
    if text is None and raw is None and url is None and data is not UNSET:
        return Data(value=data, media_type=media_type, filename=filename, metadata=metadata)
    # A null beside the content is one that a careless caller wrote out.
    if (text, raw, url).count(None) != 2 or not (data is UNSET or data is None):
        raise bad(f"message.parts[{index}]", "exactly one of text, raw, url, data is required")
    if text is not None:
        return Text(text=text, media_type=media_type, filename=filename, metadata=metadata)
    if raw is not None:
        decoded = read_bytes(raw)
        if decoded is None:
            raise bad(f"message.parts[{index}].raw", "expected base64")
        return Blob(raw=decoded, media_type=media_type, filename=filename, metadata=metadata)
    if not url:
        raise bad(f"message.parts[{index}].url", "required")
    return Link(url=url, media_type=media_type, filename=filename, metadata=metadata)


def _extensions(header: bytes) -> tuple[str, ...]:
    words = (each.strip() for each in header.decode("ascii", "replace").split(","))
    return tuple(word for word in words if word and word.isascii() and word.isprintable())  # they go on as a header


def _method(reader: Reader[Shape], asked: Callable[[HttpRequest, Shape], Asked]) -> Method:
    """A method from its request's shape and what that asks."""

    def by_frame(request: HttpRequest, frame: Frame) -> Asked:
        return asked(request, read_params(frame, reader.read))

    def by_body(request: HttpRequest, body: bytes) -> Asked:
        return asked(request, _decoded(reader, body))

    def by_texts(request: HttpRequest, texts: Mapping[str, str]) -> Asked:
        return asked(request, _converted(reader, texts))

    return Method(by_frame=by_frame, by_body=by_body, by_texts=by_texts)


def _decoded(reader: Reader[Shape], body: bytes) -> Shape:
    try:
        return reader.read(body)
    except msgspec.ValidationError as error:
        problem = bad_field(error, "body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = NotJson("The body is not JSON.")
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise problem


def _converted(reader: Reader[Shape], texts: Mapping[str, str]) -> Shape:
    try:
        return reader.read_texts(texts)
    except msgspec.ValidationError as error:
        problem = bad_field(error, "query")
    raise problem


METHODS: Final[Mapping[str, Method]] = {
    "SendMessage": _method(SEND, read_send),
    "GetTask": _method(GET, read_get),
    "ListTasks": _method(LIST, read_list),
    "CancelTask": _method(CANCEL, read_cancel),
    "GetExtendedAgentCard": _method(CARD, read_card_request),
    "SendStreamingMessage": _method(SEND, read_stream),
    "SubscribeToTask": _method(SUBSCRIBE, read_subscribe),
    "CreateTaskPushNotificationConfig": _method(CREATE_PUSH, read_create_push),
    "GetTaskPushNotificationConfig": _method(NAME_PUSH, read_get_push),
    "ListTaskPushNotificationConfigs": _method(LIST_PUSH, read_list_push),
    "DeleteTaskPushNotificationConfig": _method(NAME_PUSH, read_delete_push),
}
