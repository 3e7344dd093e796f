"""Deliveries, for those whose calls they tell of: listed, sent once more, and their addresses disabled and enabled."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from dragoman.dialects.times import wire_time
from dragoman.hub.deliveries import DeliveryDesk
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.ports.deliveries import Delivery, DeliveryQuery, DeliveryState
from dragoman.server.pages.page import MAX_PAGE, Page, body_of, json_reply, limit_of, query_of, time_of

_FILTERS: Final = frozenset({"state", "url", "call", "since", "limit", "cursor"})

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]


class DeliveryItem(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery as it is shown; `url` is null for a mailbox."""

    id: str
    state: DeliveryState
    url: str | None
    call_id: str
    event: int
    caller: str
    attempts: int
    replays: int
    last_answer: str | None
    last_attempt_at: str | None
    next_attempt_at: str | None
    created_at: str
    enabled: bool
    disabled_reason: str | None


class ReplayFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which deliveries are to be sent once more: these, or all that were given up and match."""

    ids: Annotated[list[Text], msgspec.Meta(min_length=1, max_length=MAX_PAGE)] | None = None
    state: Literal["parked", "disabled"] | None = None
    url: Text | None = None
    call: Text | None = None
    cursor: Text | None = None


class AddressSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether anything is sent to a delivery's address."""

    enabled: bool


class _Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request that has nothing to say."""


def pages(desk: DeliveryDesk) -> tuple[Page, ...]:
    """The pages of deliveries."""

    async def listed(request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        values = query_of(request, _FILTERS)
        query = DeliveryQuery(
            states=_states(values.get("state")),
            url=values.get("url"),
            task_id=values.get("call"),
            since=time_of(values, "since"),
            limit=limit_of(values),
            cursor=values.get("cursor"),
        )
        page = await desk.list(caller, query)
        return _items(page.deliveries, page.cursor)

    async def replayed(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        body_of(request, _Nothing)
        return json_reply(200, shown(await desk.replay_one(caller, request.params["delivery"], arrival.request_id)))

    async def replayed_many(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        asked = body_of(request, ReplayFilter)
        matching = (asked.state, asked.url, asked.call)
        if asked.ids is not None and matching == (None, None, None):
            done = await desk.replay(caller, asked.ids, arrival.request_id)
        elif asked.ids is None and matching != (None, None, None):
            states = () if asked.state is None else (DeliveryState(asked.state),)
            query = DeliveryQuery(states=states, url=asked.url, task_id=asked.call, limit=MAX_PAGE, cursor=asked.cursor)
            done = await desk.replay_page(caller, query, arrival.request_id)
        else:
            raise BadParams("Say which: either ids, or at least one of state, url and call.")
        return _items(done.deliveries, done.cursor)

    async def switched(request: HttpRequest, caller: Caller, arrival: Arrival) -> HttpReply:
        enabled = body_of(request, AddressSwitch).enabled
        delivery = request.params["delivery"]
        done = await desk.switch(caller, delivery, enabled=enabled, request_id=arrival.request_id)
        return json_reply(200, shown(done))

    return (
        Page(method="GET", path="/v1/deliveries", answer=listed, heavy=True),
        Page(method="POST", path="/v1/deliveries/replay", answer=replayed_many),
        Page(method="POST", path="/v1/deliveries/{delivery}/replay", answer=replayed),
        Page(method="PATCH", path="/v1/deliveries/{delivery}", answer=switched),
    )


def shown(delivery: Delivery) -> JsonObject:
    """A delivery as its caller sees it."""
    item = DeliveryItem(
        id=delivery.id,
        state=delivery.state,
        url=delivery.url or None,
        call_id=delivery.task_id,
        event=delivery.seq,
        caller=delivery.caller_id,
        attempts=delivery.tries,
        replays=delivery.replays,
        last_answer=delivery.answer or None,
        last_attempt_at=_time(delivery.tried_at),
        next_attempt_at=_time(delivery.again_at),
        created_at=wire_time(delivery.born_at),
        enabled=delivery.disabled is None,
        disabled_reason=delivery.disabled,
    )
    made: JsonObject = msgspec.to_builtins(item)
    return made


def _items(deliveries: tuple[Delivery, ...], cursor: str | None) -> HttpReply:
    return json_reply(200, {"items": [shown(one) for one in deliveries], "next_cursor": cursor})


def _states(text: str | None) -> tuple[DeliveryState, ...]:
    if text is None:
        return ()
    if text not in set(DeliveryState):
        raise BadParams(f"state: expected {', '.join(DeliveryState)}", errors=[{"path": "state", "message": "unknown"}])
    return (DeliveryState(text),)


def _time(at: datetime | None) -> str | None:
    return None if at is None else wire_time(at)
