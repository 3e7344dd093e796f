"""Push notifications of A2A 1.0: where a task is told of, as callers ask for it and are shown it, and what is posted.

What is posted is what a stream would show of the event. Tokens and credentials go out with it, and are shown to nobody.
"""

from typing import Final

import msgspec

from dragoman.dialects.a2a_v10.streams import told
from dragoman.dialects.a2a_v10.view import Asked, View, agent_of, page_cursor, page_tag, page_token
from dragoman.dialects.a2a_v10.wire import ListPushConfigsRequest, PushConfig, PushConfigRequest
from dragoman.dialects.dialect import Notice
from dragoman.dialects.official_card import V10
from dragoman.dialects.protojson import bad
from dragoman.model.answers import CallbackList
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.http import Headers, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.operations import DeleteCallback, GetCallback, ListCallbacks, SetCallback

_HEADERS: Final[Headers] = {b"content-type": b"application/a2a+json", b"a2a-version": b"1.0"}
_TOKEN: Final = b"x-a2a-notification-token"

_encode = msgspec.json.Encoder().encode


def read_create_push(request: HttpRequest, params: PushConfig) -> Asked:
    """A further address that is told of a task."""
    if not params.task_id:
        raise bad("taskId", "required")
    callback = callback_of(params, request)
    operation = SetCallback(task_id=params.task_id, callback=callback, agent=agent_of(request, params.tenant))
    return Asked(operation, View(task_id=params.task_id))


def read_get_push(request: HttpRequest, params: PushConfigRequest) -> Asked:
    """One of a task's configs."""
    agent = agent_of(request, params.tenant)
    operation = GetCallback(task_id=params.task_id, dialect=V10, callback_id=params.id, agent=agent)
    return Asked(operation, View(task_id=params.task_id))


def read_list_push(request: HttpRequest, params: ListPushConfigsRequest) -> Asked:
    """A task's configs, all of them where no size is given."""
    tag = page_tag("push", params.task_id)
    start = page_cursor(params.page_token, tag) or "0"
    if not start.isdecimal() or len(start) > 4:
        raise bad("pageToken", "not a token of this list: begin again without one")
    operation = ListCallbacks(task_id=params.task_id, dialect=V10, agent=agent_of(request, params.tenant))
    return Asked(
        operation,
        View(task_id=params.task_id, page_size=params.page_size or 0, page_tag=tag, page_start=int(start)),
    )


def read_delete_push(request: HttpRequest, params: PushConfigRequest) -> Asked:
    """The end of a config."""
    agent = agent_of(request, params.tenant)
    return Asked(DeleteCallback(task_id=params.task_id, dialect=V10, callback_id=params.id, agent=agent))


def callback_of(config: PushConfig, request: HttpRequest) -> Callback:
    """The callback that a config asks for; one without an id gets that of the request it came in."""
    auth: JsonObject = {}
    given = config.authentication
    if given is not None and given.scheme:
        auth["scheme"] = given.scheme
        if given.credentials:
            auth["credentials"] = given.credentials
    return Callback(
        id=config.id or f"push-{request.id}",
        dialect=V10,
        url=config.url,
        tells=Tells.EVENTS,
        token=config.token or None,
        auth=auth or None,
    )


def shown_config(callback: Callback, view: View) -> JsonObject:
    """A config as its owner is shown it: all but its secrets."""
    shown: JsonObject = {"id": callback.id, "taskId": view.task_id, "url": callback.url or ""}
    if callback.auth is not None:
        shown["authentication"] = {"scheme": callback.auth["scheme"]}
    return shown


def shown_configs(listed: CallbackList, view: View) -> JsonObject:
    """A page of a task's configs."""
    end = view.page_start + view.page_size if view.page_size else len(listed.callbacks)
    shown: JsonObject = {"configs": [shown_config(each, view) for each in listed.callbacks[view.page_start : end]]}
    if end < len(listed.callbacks):
        shown["nextPageToken"] = page_token(str(end), view)
    return shown


def notify(notice: Notice) -> HttpRequest | None:
    """The post that tells of one event; None for what no stream would show."""
    shown = told(notice.task, notice.happened.event)
    if shown is None:
        return None
    callback, auth = notice.callback, notice.callback.auth or {}
    headers = dict(_HEADERS)
    if auth.get("credentials"):
        headers[b"authorization"] = f"{auth['scheme']} {auth['credentials']}".encode()
    if callback.token is not None:
        headers[_TOKEN] = callback.token.encode()
    return HttpRequest(method="POST", url=notice.url, headers=headers, body=_encode(shown))
