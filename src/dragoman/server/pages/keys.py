"""Keys, for administrators: made (and shown once), listed, limited, rotated, revoked."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import msgspec

from dragoman.dialects.times import wire_time
from dragoman.hub.authenticate import Authenticator
from dragoman.hub.key_ring import KeyRing, MadeKey, require_admin
from dragoman.model.agent import RateLimits
from dragoman.model.budget import Budget
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import NotAuthorized
from dragoman.model.given_limits import GivenLimits
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.ports.store import StoredKey
from dragoman.security.scopes import ADMIN
from dragoman.server.pages.page import Page, body_of, json_reply

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=10**12)]
Dollars = Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]


class KeyBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a key may spend."""

    usd_per_day: Dollars | None = None
    tokens_per_day: Tokens | None = None
    usd_per_conversation: Dollars | None = None
    calls_per_conversation: Count | None = None


class NewKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a key is to be."""

    name: Word
    scopes: Annotated[list[Word], msgspec.Meta(min_length=1, max_length=50)]
    allow: Annotated[list[Word], msgspec.Meta(max_length=200)] | None = None
    agent_id: Word | None = None
    tenant: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")] | None = None
    expires_at: datetime | None = None
    rate_limits: GivenLimits | None = None
    budget: KeyBudget | None = None


class KeyChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes of a key: what is named takes the place of all that was there, null takes it away."""

    rate_limits: GivenLimits | msgspec.UnsetType | None = msgspec.UNSET
    budget: KeyBudget | msgspec.UnsetType | None = msgspec.UNSET


class Rotation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the old key stays good."""

    overlap_s: Annotated[float, msgspec.Meta(ge=0, le=30 * 86400)] = 86400.0


def pages(ring: KeyRing, authenticator: Authenticator, secrets_changed: Callable[[], None]) -> tuple[Page, ...]:
    """The pages of keys; a new key of an agent brings a new secret to sign its calls with."""

    async def listed(_request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        require_admin(caller)
        return json_reply(200, {"items": [shown(key) for key in await ring.list(caller)], "next_cursor": None})

    async def created(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        require_admin(caller)
        asked = body_of(request, NewKey)
        if asked.tenant not in (None, caller.tenant) and not caller.admin:
            raise NotAuthorized("Only the hub's administrator makes keys of other tenants.")
        if ADMIN in asked.scopes and ADMIN not in caller.scopes:
            raise NotAuthorized("Only an administrator makes keys of administrators.")
        made = await ring.create(
            tenant=asked.tenant or caller.tenant,
            principal=asked.agent_id,
            name=asked.name,
            scopes=asked.scopes,
            agent_id=asked.agent_id,
            allow=asked.allow or (),
            expires_at=asked.expires_at,
            limits=_limits(asked.rate_limits),
            budget=_budget(asked.budget),
            by=caller,
            request_id=arrival.request_id,
        )
        secrets_changed()
        return json_reply(201, made_once(made))

    async def changed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        require_admin(caller)
        change = body_of(request, KeyChange)
        known = await ring.find(caller, request.params["key"])
        limits = known.limits if change.rate_limits is msgspec.UNSET else _limits(change.rate_limits)
        budget = known.budget if change.budget is msgspec.UNSET else _budget(change.budget)
        key = await ring.change(caller, known.key_id, limits, budget, arrival.request_id)
        authenticator.forget(key.key_id)
        return json_reply(200, shown(key))

    async def rotated(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        require_admin(caller)
        overlap_s = body_of(request, Rotation).overlap_s
        made = await ring.rotate(caller, request.params["key"], overlap_s, arrival.request_id)
        secrets_changed()
        return json_reply(201, made_once(made))

    async def revoked(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        require_admin(caller)
        key = await ring.revoke(caller, request.params["key"], arrival.request_id)
        authenticator.forget(key.key_id)
        return json_reply(200, shown(key))

    return (
        Page(method="GET", path="/v1/keys", answer=listed),
        Page(method="POST", path="/v1/keys", answer=created),
        Page(method="PATCH", path="/v1/keys/{key}", answer=changed),
        Page(method="POST", path="/v1/keys/{key}/rotate", answer=rotated),
        Page(method="DELETE", path="/v1/keys/{key}", answer=revoked),
    )


def shown(key: StoredKey) -> JsonObject:
    """A key without anything secret."""
    times = {
        name: None if at is None else wire_time(at)
        for name, at in (
            ("created_at", key.created_at),
            ("expires_at", key.expires_at),
            ("revoked_at", key.revoked_at),
            ("last_used_at", key.last_used_at),
        )
    }
    return {
        "key_id": key.key_id,
        "name": key.name,
        "principal": key.principal,
        "tenant": key.tenant,
        "agent_id": key.agent_id,
        "scopes": list(key.scopes),
        "allow": list(key.allow),
        "rate_limits": None if key.limits is None else msgspec.to_builtins(key.limits),
        "budget": None if key.budget is None else msgspec.to_builtins(key.budget),
        **times,
    }


def _limits(asked: GivenLimits | None) -> RateLimits | None:
    limits = RateLimits() if asked is None else msgspec.convert(asked, RateLimits, from_attributes=True)
    return None if limits == RateLimits() else limits


def _budget(asked: KeyBudget | None) -> Budget | None:
    budget = Budget() if asked is None else msgspec.convert(asked, Budget, from_attributes=True)
    return None if budget == Budget() else budget


def made_once(made: MadeKey) -> JsonObject:
    """A key as it is shown when it is made, and never again."""
    return {**shown(made.stored), "key": made.key, "signing_secret": made.signing_secret}
