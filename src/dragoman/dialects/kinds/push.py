"""Push of A2A 0.3 and dotted: where a task is told of, as callers write it and are shown it, and what is posted there.

What is posted is the whole task, after the event it tells of. A config that comes without an id is the task's one
nameless config: sent again, it takes the place of the first. Its secrets go out with every notice, and nowhere else.
"""

from typing import Annotated, Final

import msgspec

from dragoman.dialects.dialect import Notice
from dragoman.dialects.refusals import JSON_HEADERS
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.events import StatusChanged
from dragoman.model.http import HttpRequest
from dragoman.model.json import Json, JsonObject, is_array
from dragoman.model.task import Task

NAMELESS: Final = "default"
_TOKEN: Final = b"x-a2a-notification-token"
_SCHEMES: Final = "schemes"
_CREDENTIALS: Final = "credentials"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Address = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
# They travel in headers: what has no place there is refused where it can still be mended.
Scheme = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9!#$%&'*+.^_|~-]+$")]
Secret = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[\x20-\x7e]*$")]


class AuthenticationShape(msgspec.Struct, frozen=True, gc=False):
    """How the hub is to prove itself there; an empty one means that it need not."""

    schemes: list[Scheme] | None = None
    credentials: Secret | None = None


class ConfigShape(msgspec.Struct, frozen=True, gc=False):
    """Where to push to."""

    url: Address
    id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    token: Secret | None = None
    authentication: AuthenticationShape | None = None


def callback_of(config: ConfigShape, slug: str, name: str | None = None) -> Callback:
    """The callback that a config asks for, told of everything in the dialect's words; `name` if it has none itself."""
    given = config.authentication
    auth: JsonObject = {}
    if given is not None and given.schemes:
        auth[_SCHEMES] = given.schemes
    if given is not None and given.credentials:
        auth[_CREDENTIALS] = given.credentials
    return Callback(
        id=config.id or name or NAMELESS,
        dialect=slug,
        url=config.url,
        tells=Tells.EVENTS,
        token=config.token or None,
        auth=auth or None,
    )


def config_object(callback: Callback) -> JsonObject:
    """A config as its owner is shown it: all but its secrets."""
    shown: JsonObject = {"id": callback.id, "url": callback.url or ""}
    schemes: Json = (callback.auth or {}).get(_SCHEMES)
    if schemes:
        shown["authentication"] = {_SCHEMES: schemes}
    return shown


def posted(notice: Notice, body: bytes) -> HttpRequest:
    """What tells an address of a task: the task, and what the address wants to see of the hub."""
    callback = notice.callback
    headers = dict(JSON_HEADERS)
    auth = callback.auth or {}
    schemes: Json = auth.get(_SCHEMES)
    credentials: Json = auth.get(_CREDENTIALS)
    if is_array(schemes) and schemes and credentials:
        headers[b"authorization"] = f"{schemes[0]} {credentials}".encode()
    if callback.token is not None:
        headers[_TOKEN] = callback.token.encode()
    return HttpRequest(method="POST", url=notice.url, headers=headers, body=body)


def task_then(notice: Notice) -> Task | None:
    """The task as it was after the event, so far as its status goes; None where a later notice tells of it all.

    By the time an event is told of, the task may have moved on. A change of status is told as it was. A piece of an
    artifact is in the whole task that tells of what came next.
    """
    task, happened = notice.task, notice.happened
    event = happened.event
    if happened.seq >= task.last_seq:
        return task
    if not isinstance(event, StatusChanged):
        return None
    return msgspec.structs.replace(
        task,
        state=event.state,
        updated_at=event.at,
        status_message=event.message,
        failure=event.failure,
        progress=event.progress,
    )
