"""The operations of A2A 1.0: what each request asks of the hub, and how much of the answer its caller wants to see.

Knows no framing: JSON-RPC and HTTP bring the same requests, and both are answered from the same view.
"""

from collections.abc import Callable, Mapping
from itertools import count
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
from dragoman.dialects.jsonrpc import Frame, bad_field, header_text, read_params
from dragoman.dialects.protojson import Reader, bad, read_bytes, read_role_name, read_state_name
from dragoman.dialects.sse import last_seen
from dragoman.model.content import Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import NotJson
from dragoman.model.http import HttpRequest
from dragoman.model.json import JsonObject, is_object
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


def read_send(request: HttpRequest, params: SendMessageRequest) -> Asked:
    """A message for an agent, as a new task or into one that waits for it."""
    how = params.configuration
    return _sent(request, params, _AT_ONCE if how is not None and how.return_immediately else _AT_THE_END)


def read_stream(request: HttpRequest, params: SendMessageRequest) -> Asked:
    """The same, answered event by event."""
    return _sent(request, params, _AS_IT_GOES)


def _sent(request: HttpRequest, params: SendMessageRequest, wait: Wait) -> Asked:
    wire, how = params.message, params.configuration or _NO_CONFIGURATION
    hints = read_hints(params.metadata, wire.metadata)
    push = how.task_push_notification_config
    named = request.params.get("agent")
    message = _message(wire)
    callback = None if push is None else callback_of(push, request)
    operation = SendTask(
        message=message,
        agent=named or params.tenant or hints.agent,
        skill=hints.skill,
        continues=wire.task_id or None,
        context_id=wire.context_id or None,
        wait=wait,
        priority=hints.priority,
        timeout_s=hints.timeout_s or (LATER_S if wait is _AT_ONCE else WAIT_S),
        parent_id=hints.parent,
        within=hints.within,
        title=hints.title,
        idempotency_key=header_text(request, "Idempotency-Key"),
        request_id=header_text(request, "X-Request-ID"),
        extensions=_extensions(request),
        metadata=_metadata(params, named),
    )
    if how is not _NO_CONFIGURATION or wait is _AS_IT_GOES:
        accepts = tuple(how.accepted_output_modes or ())
        after = last_seen(request.headers) if wait is _AS_IT_GOES else None
        operation = msgspec.structs.replace(operation, callback=callback, accepts=accepts, after=after)
    return Asked(operation, _WHOLE if how.history_length is None else View(sent=True, history=how.history_length))


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
    return Message(
        id=wire.message_id,
        role=_role(wire),
        parts=tuple(map(_part, wire.parts, count())),
        references=tuple(wire.reference_task_ids or ()),
        extensions=tuple(wire.extensions or ()),
        metadata=without_hints(wire.metadata),
    )


def _role(wire: WireMessage) -> Role:
    """The role; one that the wire has no name for stands in the hints."""
    role = read_role_name(wire.role, "message.role")
    told = wire.metadata.get(HINTS) if wire.metadata else None
    if not is_object(told):
        return role
    named = told.get("role")
    return Role(named) if named in _UNNAMED else role


def _part(part: WirePart, index: int) -> Part:
    text, raw, url, data = part.text, part.raw, part.url, part.data
    absent = (text, raw, url).count(None)
    # A null beside the content is one that a careless caller wrote out.
    if data is UNSET if absent == 3 else absent < 2 or not (data is UNSET or data is None):
        raise bad(f"message.parts[{index}]", "exactly one of text, raw, url, data is required")
    media_type, filename, metadata = part.media_type or None, part.filename or None, part.metadata or None
    if text is not None:
        return Text(text=text, media_type=media_type, filename=filename, metadata=metadata)
    if raw is not None:
        decoded = read_bytes(raw)
        if decoded is None:
            raise bad(f"message.parts[{index}].raw", "expected base64")
        return Blob(raw=decoded, media_type=media_type, filename=filename, metadata=metadata)
    if url is not None:
        if not url:
            raise bad(f"message.parts[{index}].url", "required")
        return Link(url=url, media_type=media_type, filename=filename, metadata=metadata)
    return Data(value=data, media_type=media_type, filename=filename, metadata=metadata)


def _metadata(params: SendMessageRequest, named: str | None) -> JsonObject | None:
    """The request's metadata; a tenant that the URL has made needless is kept there."""
    metadata = without_hints(params.metadata)
    if named is None or not params.tenant or params.tenant == named:
        return metadata
    return {"tenant": params.tenant, **(metadata or {})}


def _extensions(request: HttpRequest) -> tuple[str, ...]:
    given = request.headers.get(b"a2a-extensions") or request.headers.get(b"x-a2a-extensions")
    if not given:
        return ()
    words = (each.strip() for each in given.decode("ascii", "replace").split(","))
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
