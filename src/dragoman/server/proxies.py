"""Where a request really came from, when a proxy of ours handed it on.

Wrong credentials are counted by address: behind a proxy all callers would share one, and whoever guesses would lock out
the rest. What a proxy says counts only where it is one that the settings name; anybody may send the header.
"""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import final


@final
class Proxies:
    """The proxies whose word counts."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = tuple(ip_network(network) for network in networks)

    def client(self, address: str, forwarded: bytes | None) -> str:
        """The nearest address that is no proxy of ours; `forwarded` is the X-Forwarded-For, the nearest last."""
        if forwarded is None or not self._is_ours(address):
            return address
        for named in reversed(forwarded.decode("ascii", "replace").split(",")):
            text = named.strip()
            try:
                ip_address(text)
            except ValueError:
                return address
            if not self._is_ours(text):
                return text
            address = text
        return address

    def _is_ours(self, address: str) -> bool:
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return any(known in network for network in self._networks)


def proxies_of(networks: Sequence[str]) -> Proxies | None:
    """The proxies that the settings name; None where they name none."""
    return Proxies(networks) if networks else None
