"""Files inside tasks, by a signed link or to the task's own caller. Never shown as a page of the hub's own origin."""

import re
from typing import Final
from urllib.parse import quote

from dragoman.hub.files import event_of, part_at, part_in
from dragoman.hub.tasks import scope_of
from dragoman.model.call import Arrival, Caller
from dragoman.model.content import Blob
from dragoman.model.errors import NotAuthenticated, NotFound
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope, Tasks
from dragoman.security.file_links import PATH, FileLinks, file_of
from dragoman.server.pages.page import Page, query_of

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}")
_LINK: Final = frozenset({"exp", "sig"})


def pages(store: Tasks, links: FileLinks, clock: Clock) -> tuple[Page, ...]:
    """The page of hosted files."""

    async def file(request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        name = request.params["file"]
        query = query_of(request, _LINK)
        found = file_of(name)
        signed = links.signed(name, query.get("exp", ""), query.get("sig", ""), clock.now().timestamp())
        if not signed and caller.anonymous:
            raise NotAuthenticated("The link has expired or is not one of this hub's.", reason="link_invalid")
        if found is None:
            raise NotFound("There is no such file.")
        scope = Scope(tenant=found.tenant, principal=None) if signed else scope_of(caller)
        task = await store.load(scope, found.task_id) if scope.tenant == found.tenant else None
        number = event_of(found)
        if number is not None and task is not None:
            events = await store.events(found.task_id, number - 1, 1)
            part = part_in(events[0].event, found.index) if events else None
        else:
            part = None if task is None else part_at(task, found)
        if not isinstance(part, Blob):
            raise NotFound("There is no such file.")
        return HttpReply(status=200, headers=_headers(part), body=part.raw)

    return (Page(method="GET", path=f"{PATH}{{file}}", answer=file, strangers=True),)


def _headers(part: Blob) -> dict[bytes, bytes]:
    media_type = part.media_type or ""
    if _MEDIA_TYPE.fullmatch(media_type) is None:
        media_type = "application/octet-stream"
    disposition = "attachment"
    if part.filename:
        disposition += f"; filename*=UTF-8''{quote(part.filename[:255], safe='')}"
    return {
        b"content-type": media_type.encode(),
        b"content-disposition": disposition.encode(),
        b"content-security-policy": b"sandbox; default-src 'none'",
        b"x-content-type-options": b"nosniff",
        b"cache-control": b"private, no-store",
    }
