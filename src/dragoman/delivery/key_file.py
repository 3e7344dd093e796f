"""The operator's key file as a source of credentials: for agents of administrators, by the services of their cards.

A card says under which name its key is kept, and cards are strangers' words. So a key goes to one origin alone: the
one that it was first used at, whatever card names it later.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, final

import msgspec

from dragoman.delivery.by_service import Chosen, choose, service_of
from dragoman.delivery.credential_kinds import StoredCredential, origin_of, read_credential
from dragoman.delivery.flights import Flights
from dragoman.model.agent import Agent, AuthScheme
from dragoman.model.errors import AgentUnavailable, BadParams
from dragoman.model.json import JsonObject
from dragoman.ports.store import Vault
from dragoman.security.key_manager import KeyManager, KeysRefused
from dragoman.security.sealed import Sealer

LOG: Final = logging.getLogger("dragoman.delivery")


class _Bound(msgspec.Struct, frozen=True, kw_only=True):
    origin: str
    token_origin: str = ""


@final
class KeyFileSource:
    """Credentials that no owner stored: looked up in the file that a setting names."""

    def __init__(
        self, keys: KeyManager, *, vault: Vault, sealer: Sealer, is_administrators: Callable[[Agent], bool]
    ) -> None:
        self._keys = keys
        self._vault = vault
        self._sealer = sealer
        self._is_administrators = is_administrators
        self._binding: Flights[_Bound] = Flights()

    async def find(self, agent: Agent, url: str) -> StoredCredential | None:
        """The agent's credential, bound to where it was first used: here, if it never was. Raises AgentUnavailable."""
        if not self._is_administrators(agent):
            return None
        try:
            chosen = await asyncio.to_thread(choose, agent.card, self._keys)
        except KeysRefused as error:
            # Its text names a file of the hub's machine: that is for the log.
            LOG.warning("the key file cannot be used: %s", error.message, extra={"fields": {"agent_id": agent.id}})
            raise AgentUnavailable("The hub's key file cannot be read.", reason="key_file", agent_id=agent.id) from None
        scheme = chosen.scheme
        if scheme is None:
            return None
        given, what = _as_given(chosen), f"{chosen.kind} of {service_of(agent.card, scheme)}"
        try:
            read = read_credential(given)
        except BadParams as error:
            LOG.warning("a key cannot be sent: %s", error.message, extra={"fields": {"agent_id": agent.id}})
            raise AgentUnavailable("The hub's key for the agent cannot be sent.", reason="key_file") from None
        token_origin = "" if chosen.client is None else origin_of(scheme.token_url or "")
        # One at a time: of two agents that name one service, one is the first.
        bound = await self._binding.fly(what, lambda: self._bound(what, origin_of(url), token_origin))
        return msgspec.structs.replace(read, origin=bound.origin, token_origin=bound.token_origin)

    async def _bound(self, what: str, origin: str, token_origin: str) -> _Bound:
        row = f"key file: {what}"
        sealed = await self._vault.get_sealed(row)
        if sealed is not None:
            opened = self._sealer.open(sealed, table="sealed", column="value", row=row, tenant="")
            return msgspec.json.decode(opened, type=_Bound)
        bound = _Bound(origin=origin, token_origin=token_origin)
        plain = msgspec.json.encode(bound)
        await self._vault.put_sealed(row, self._sealer.seal(plain, table="sealed", column="value", row=row, tenant=""))
        return bound


def _as_given(chosen: Chosen) -> JsonObject:
    """What was chosen, as an owner would have given it."""
    scheme = chosen.scheme or AuthScheme(kind="none")
    if chosen.client is not None:
        client = {"client_id": chosen.client.client_id.reveal(), "client_secret": chosen.client.client_secret.reveal()}
        return {"type": "oauth2", **client, **({"scopes": list(scheme.scopes)} if scheme.scopes else {})}
    token = "" if chosen.key is None else chosen.key.reveal()
    named = {"header": scheme.name} if scheme.kind == "apiKey" and scheme.name is not None else {}
    return {"type": scheme.kind, "token": token, **named}
