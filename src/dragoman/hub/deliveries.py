"""Deliveries, for those whose calls they are about, and for administrators: listed, replayed, their addresses switched.

Another's delivery looks like one that never was.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from dragoman.hub.acts import act_of
from dragoman.hub.authorize import lacking
from dragoman.model.call import Caller
from dragoman.model.errors import NotFound
from dragoman.ports.clock import Clock
from dragoman.ports.deliveries import Delivery, DeliveryList, DeliveryQuery, DeliveryState
from dragoman.ports.store import Deliveries, Scope
from dragoman.security.scopes import ADMIN, CALL

# What a replay of many takes up: what arrived is sent again, and what is tried anyway is hastened, one by one alone.
GIVEN_UP: Final = (DeliveryState.PARKED, DeliveryState.DISABLED)


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The deliveries that are sent once more, and where the next replay of the same kind goes on."""

    deliveries: tuple[Delivery, ...]
    cursor: str | None = None


class DeliveryDesk:
    """What a caller may ask about deliveries."""

    def __init__(self, *, store: Deliveries, clock: Clock, due: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._due = due  # told when something is to be delivered

    async def list(self, caller: Caller, query: DeliveryQuery) -> DeliveryList:
        """A page of the deliveries that the caller may see. Raises NotAuthorized, BadParams."""
        return await self._store.list_deliveries(_scope(caller), query)

    async def replay(self, caller: Caller, ids: Sequence[str], request_id: str | None = None) -> Replayed:
        """Send these once more; those that the caller may not see are left out. Raises NotAuthorized."""
        act = act_of(caller, "delivery.replayed", "", request_id)  # of what, the store knows
        found = await self._store.replay(_scope(caller), ids, act)
        self._due()
        return Replayed(deliveries=tuple(found))

    async def replay_one(self, caller: Caller, delivery_id: str, request_id: str | None = None) -> Delivery:
        """Send one once more. Raises NotAuthorized, NotFound."""
        found = (await self.replay(caller, (delivery_id,), request_id)).deliveries
        if not found:
            raise _unknown(delivery_id)
        return found[0]

    async def replay_page(self, caller: Caller, query: DeliveryQuery, request_id: str | None = None) -> Replayed:
        """Send a page of those that were given up once more. Raises NotAuthorized, BadParams."""
        wanted = tuple(state for state in GIVEN_UP if state in (query.states or GIVEN_UP))
        page = await self._store.list_deliveries(_scope(caller), msgspec.structs.replace(query, states=wanted))
        found = await self.replay(caller, [one.id for one in page.deliveries], request_id)
        return Replayed(deliveries=found.deliveries, cursor=page.cursor)

    async def switch(
        self, caller: Caller, delivery_id: str, *, enabled: bool, request_id: str | None = None
    ) -> Delivery:
        """Enable or disable a delivery's address. Raises NotAuthorized, NotFound."""
        reason = None if enabled else f"disabled by {caller.name}"
        act = act_of(caller, "receiver.enabled" if enabled else "receiver.disabled", delivery_id, request_id)
        found = await self._store.switch_receiver(_scope(caller), delivery_id, reason, self._clock.now(), act)
        if found is None:
            raise _unknown(delivery_id)
        return found


def _scope(caller: Caller) -> Scope:
    """Whose deliveries a caller may see: those of its own calls, or its tenant's for an administrator."""
    if ADMIN in caller.scopes:
        return Scope(tenant=caller.tenant, principal=None)
    if CALL not in caller.scopes:
        raise lacking(caller, (CALL,))
    return Scope(tenant=caller.tenant, principal=caller.id)


def _unknown(delivery_id: str) -> NotFound:
    return NotFound(f"There is no delivery {delivery_id!r}.", delivery_id=delivery_id)
