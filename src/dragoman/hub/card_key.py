"""The key that the hub signs cards with.

One key for good, and none of those that sign tokens: these are followed by others every few weeks, and whoever checks
cards takes another key than the last for a forgery. Where it is known to others, a new one takes its place.
"""

from datetime import datetime
from typing import Final

from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.ports.store import Vault
from dragoman.security.sealed import Sealer
from dragoman.security.tokens import SigningKey, new_signing_key, public_jwks, restore_signing_key

NAME: Final = "hub card key"  # under which it is kept


class CardKey:
    """The key, kept sealed."""

    def __init__(self, key: SigningKey, *, vault: Vault, sealer: Sealer) -> None:
        self._key = key
        self._vault = vault
        self._sealer = sealer

    def signing(self, _now: datetime) -> SigningKey:
        """The key that signs, at whatever time."""
        return self._key

    def jwks(self, others: JsonObject) -> JsonObject:
        """The key set that anyone may read, with the hub's other keys."""
        return {"keys": [*others["keys"], *public_jwks([self._key])["keys"]]}

    async def renew(self) -> None:
        """Sign with a new key from now on: the old one is known to somebody else."""
        key = new_signing_key()
        await _keep(key, self._vault, self._sealer)
        self._key = key


async def open_card_key(vault: Vault, sealer: Sealer) -> CardKey:
    """The key of a hub, read, or made on the first start."""
    sealed = await vault.get_sealed(NAME)
    if sealed is not None:
        opened = sealer.open(sealed, table="sealed", column="value", row=NAME, tenant="")
        return CardKey(restore_signing_key(Secret(opened.decode())), vault=vault, sealer=sealer)
    key = new_signing_key()
    await _keep(key, vault, sealer)
    return CardKey(key, vault=vault, sealer=sealer)


async def _keep(key: SigningKey, vault: Vault, sealer: Sealer) -> None:
    plain = key.private_jwk.reveal().encode()
    await vault.put_sealed(NAME, sealer.seal(plain, table="sealed", column="value", row=NAME, tenant=""))
