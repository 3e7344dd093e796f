"""The hub's signing keys, for its administrator: shown, and followed by a new one before their time."""

from collections.abc import Awaitable, Callable

import msgspec

from dragoman.dialects.times import wire_time
from dragoman.hub.acts import act_of
from dragoman.hub.key_ring import require_admin
from dragoman.hub.signing_keys import HeldKey, SigningKeys
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import NotAuthorized
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.ports.audit import Act
from dragoman.ports.clock import Clock
from dragoman.server.pages.page import Page, body_of, json_reply


class SigningRotation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the key was seen by somebody else: then a new one signs at once, and the old ones count no more."""

    now: bool = False


def pages(
    keys: SigningKeys, clock: Clock, distrusted: Callable[[], None], note: Callable[[Act], Awaitable[None]]
) -> tuple[Page, ...]:
    """The pages; `distrusted` is called when what was signed so far must not count any more."""

    async def listed(_request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        _require_hub_admin(caller)
        return json_reply(200, shown(keys, clock))

    async def rotated(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        _require_hub_admin(caller)
        at_once = body_of(request, SigningRotation).now
        made = await keys.rotate(at_once=at_once)
        await note(act_of(caller, "signing-key.rotated", made[-1].key.kid, arrival.request_id))
        if at_once:
            distrusted()
        return json_reply(200, shown(keys, clock))

    return (
        Page(method="GET", path="/v1/signing-keys", answer=listed),
        Page(method="POST", path="/v1/signing-keys/rotate", answer=rotated),
    )


def shown(keys: SigningKeys, clock: Clock) -> JsonObject:
    """The keys that are published, the oldest first."""
    signing = keys.signing(clock.now()).kid
    return {"items": [_item(each, signing) for each in keys.held()], "next_cursor": None}


def _item(held: HeldKey, signing: str) -> JsonObject:
    return {"kid": held.key.kid, "signs_from": wire_time(held.signs_from), "signs": held.key.kid == signing}


def _require_hub_admin(caller: Caller) -> None:
    require_admin(caller)
    if not caller.admin:
        raise NotAuthorized("These keys are the whole hub's: only its own administrator may see to them.")
