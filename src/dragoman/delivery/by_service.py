"""Which of the schemes that a card names there is a credential for, in a KeyManager.

The order is apiKey, oauth2, bearer. A service is known by its `service_identifier`, else by the agent's first alias
(its humanReadableId) or id. Looking may block: a loop asks from a thread.
"""

from typing import Final

import msgspec

from dragoman.model.agent import AgentCard, AuthScheme
from dragoman.model.secret import Secret
from dragoman.security.key_manager import KeyManager, OAuthClient

ORDER: Final = ("apiKey", "oauth2", "bearer")


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A scheme and the credential for it; without either, nothing is shown."""

    scheme: AuthScheme | None = None
    key: Secret | None = None
    client: OAuthClient | None = None

    @property
    def kind(self) -> str:
        """What is kept under the service's name: a key, or an OAuth2 client."""
        return "key" if self.client is None else "client"


def choose(card: AgentCard, keys: KeyManager) -> Chosen:
    """The first scheme that there is a credential for. Raises KeysRefused."""
    for kind in ORDER:
        for scheme in card.auth:
            if scheme.kind == kind and (chosen := _credential(scheme, card, keys)) is not None:
                return chosen
    return Chosen()


def service_of(card: AgentCard, scheme: AuthScheme | None = None) -> str:
    """The name under which credentials for an agent are kept: its service_identifier, humanReadableId or id."""
    schemes = card.auth if scheme is None else (scheme,)
    named = next((each.service_identifier for each in schemes if each.service_identifier), None)
    return (named or (card.aliases[0] if card.aliases else card.id)).lower()


def _credential(scheme: AuthScheme, card: AgentCard, keys: KeyManager) -> Chosen | None:
    service = service_of(card, scheme)
    if scheme.kind == "oauth2":
        client = keys.get_oauth(service) if scheme.token_url else None
        return None if client is None else Chosen(scheme=scheme, client=client)
    # A key in an address ends up in logs along the way.
    if scheme.kind == "apiKey" and scheme.location not in (None, "header"):
        return None
    key = keys.get_key(service)
    return None if key is None else Chosen(scheme=scheme, key=key)
