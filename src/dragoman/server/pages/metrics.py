"""What the hub counts, for Prometheus; and how much it logs, for its administrator."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from dragoman.hub.acts import act_of
from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.hub.key_ring import require_admin
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import NotAuthorized
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.observe.exposition import OPEN, PLAIN, wants_open
from dragoman.observe.scrape import Scrape
from dragoman.ports.audit import Audit
from dragoman.server.pages.page import Page, body_of, json_reply

LOG_CHANGED: Final = "log.changed"

SetLevel = Callable[[str], None]


class LogChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How grave a line must be to be written, until the hub stops."""

    level: Literal["debug", "info", "warning", "error"]


def pages(scrape: Scrape, set_level: SetLevel, audit: Audit, *, is_open: bool) -> tuple[Page, ...]:
    """The pages of observing; with `is_open` whoever can reach the hub may read its metrics."""

    async def metrics(request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        if not is_open:
            require_admin(caller)
            if not caller.admin and caller.tenant != DEFAULT_TENANT:
                raise NotAuthorized("The metrics are the whole hub's: only its own administrator may read them.")
        as_open = wants_open(request.headers.get(b"accept"))
        body = await scrape.text(is_open=as_open)
        return HttpReply(status=200, headers={b"content-type": (OPEN if as_open else PLAIN).encode()}, body=body)

    async def changed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        require_admin(caller)
        if not caller.admin:
            raise NotAuthorized("The log is the whole hub's: only its own administrator may change it.")
        level = body_of(request, LogChange).level
        await audit.note(act_of(caller, LOG_CHANGED, level, arrival.request_id))
        set_level(level)
        return json_reply(200, {"level": level})

    return (
        Page(method="GET", path="/metrics", answer=metrics, public=is_open),
        Page(method="PATCH", path="/v1/settings/log", answer=changed),
    )
