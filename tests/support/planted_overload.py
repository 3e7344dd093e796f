"""Bugs in how the hub gives way when it has too much to do, and gauges that make much of little."""

import time
from collections.abc import Awaitable
from typing import Any

from dragoman.hub.carry import Carrier
from dragoman.hub.flow.pressure import Pressure
from dragoman.model.call import OpenedCall
from tests.support.planting import put_in_place


def no_shedding(_: int) -> None:
    """The hub takes every call, however late it is."""

    def blind(_self: Pressure, _lag_s: float = 0.0) -> None:
        return

    put_in_place(Pressure, "look", blind)


def costly_calls(ms: int) -> None:
    """Each call that is carried takes so many milliseconds of the loop: a few hundred of them are a full load."""
    carry = Carrier.carry

    def slowed(self: Carrier, opened: OpenedCall, **more: Any) -> Awaitable[Any]:
        time.sleep(ms / 1000)  # and not of the machine, which others use
        return carry(self, opened, **more)

    put_in_place(Carrier, "carry", slowed)
