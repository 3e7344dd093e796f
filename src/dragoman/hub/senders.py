"""Messages that their senders signed as a whole: checked with the key that the sender registered in its card.

Whether the caller may speak for that sender at all is asked where the message is carried out (registry.py).
"""

import asyncio
from datetime import timedelta
from typing import Final

import msgspec

from dragoman.hub.registry import Registry
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import AgentNotFound, CapabilityMismatch
from dragoman.model.operations import Signed
from dragoman.security.envelope_signing import sender_keys, verify_envelope
from dragoman.security.signing import SignatureProblem

SHORT_BYTES: Final = 64 * 1024  # the canonical form of a longer message takes so long that others would wait for it


class Senders:
    """Checks the signatures of senders."""

    def __init__(self, *, registry: Registry, keep_h: float) -> None:
        self._registry = registry
        self._keep = timedelta(hours=keep_h)  # for which a repeated message is known by its id

    async def proven(self, caller: Caller, message: Signed, arrival: Arrival) -> Arrival:
        """The arrival of a message whose signature is right; that of a sender without a key says nothing.

        An older message than the hub would still know by its id is not proof enough where a signature is required.

        Raises CapabilityMismatch.
        """
        try:
            agent = await self._registry.resolve(caller, message.sender)
        except AgentNotFound:
            return arrival
        keys = sender_keys(agent.card.keys)
        if not keys:
            return arrival
        if len(message.body) <= SHORT_BYTES:
            right = verify_envelope(message.body, message.signature, keys)
        else:
            right = await asyncio.to_thread(verify_envelope, message.body, message.signature, keys)
        if not right:
            raise CapabilityMismatch(
                f"The signature is not that of {message.sender} under a key of its card.",
                reason=SignatureProblem.INVALID.value,
            )
        known = abs(arrival.at - message.at) <= self._keep
        return msgspec.structs.replace(arrival, signed=True) if known else arrival
