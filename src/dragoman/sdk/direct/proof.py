"""How a client without a hub proves itself to an agent: by the first scheme of its card that there is a credential for.

The order is apiKey, oauth2, bearer, none. A token got for OAuth2 client credentials is kept until a minute before its
end. No credential leaves this machine over plain HTTP.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, TypeVar, final

from dragoman.delivery.by_service import Chosen, choose, service_of
from dragoman.delivery.credential_kinds import KEY_HEADER
from dragoman.delivery.oauth_out import Grant, NoToken, Token, fetch_token
from dragoman.delivery.over_http import Wire
from dragoman.delivery.probe.places import is_loopback, name_of
from dragoman.model.agent import Agent, AgentCard, AuthScheme
from dragoman.model.errors import AgentUnavailable, BadParams, DragomanError, NotAuthenticated
from dragoman.model.http import NO_HEADERS, Headers
from dragoman.model.secret import Secret
from dragoman.net.addresses import parse
from dragoman.net.errors import NetError
from dragoman.net.tls import ClientIdentity
from dragoman.ports.clock import Clock
from dragoman.sdk.errors import put_into_words
from dragoman.security.key_manager import KeyManager

TOKEN_S: Final = 30.0  # for the token endpoint to answer

Refusal = TypeVar("Refusal", bound=DragomanError)


@final
class DirectProof:
    """The credentials of one client towards one agent, in one event loop."""

    identities: Mapping[str, ClientIdentity] = {}

    def __init__(self, keys: KeyManager, wire: Wire, clock: Clock) -> None:
        self._keys = keys
        self._wire = wire
        self._clock = clock
        self._chosen: Chosen | None = None
        self._token: Token | None = None
        self._uses = 0  # of the token
        self._renewing = asyncio.Lock()

    def is_ready(self, agent: Agent) -> bool:
        """Whether a credential is at hand, and lasts."""
        if self._chosen is None:
            return False
        return self._chosen.client is None or self._lasts()

    async def ready(self, agent: Agent) -> None:
        """Choose a scheme, and have a token where it needs one. Raises NotAuthenticated, BadParams."""
        if self._chosen is None:
            chosen = await asyncio.to_thread(choose, agent.card, self._keys)
            if chosen.scheme is not None:
                refuse_plain(agent.card.endpoints[0].url or "")
            self._chosen = chosen
        if self._chosen.client is None or self._lasts():
            return
        async with self._renewing:
            if not self._lasts():
                self._token = await self._got(self._chosen, agent.card)
                self._uses = 0

    def shown(self, agent: Agent, url: str, *, subject: str, chain: tuple[str, ...], by_hub: bool) -> Headers:
        """The headers that carry the credential; none where there is no credential: there is no hub to speak for."""
        chosen = self._chosen or Chosen()
        if chosen.scheme is None:
            return NO_HEADERS
        if chosen.client is not None and self._token is not None:
            self._uses += 1
            return _bearer(self._token.value)
        key = chosen.key or Secret("")
        if chosen.scheme.kind == "apiKey":
            return {(chosen.scheme.name or KEY_HEADER).lower().encode(): key.reveal().encode()}
        return _bearer(key)

    async def renewed(self, agent: Agent, refused: Headers) -> bool:
        """Nothing: the whole call is made again (`renews`), for an agent may say so within a stream, too."""
        return False

    def signature(self, agent: Agent, call_id: str, body: bytes) -> Headers:
        """Nothing: a signature is a hub's."""
        return NO_HEADERS

    def renews(self) -> bool:
        """Whether a refusal may mean that a token, used before, has ended early; it is forgotten then."""
        if self._token is None or self._uses < 2:
            return False
        self._token = None
        return True

    def refused(self, agent: Agent) -> NotAuthenticated:
        """What it means that the agent wants another credential."""
        wanted = ", ".join(dict.fromkeys(scheme.kind for scheme in agent.card.auth)) or "a credential"
        if self._chosen is not None and self._chosen.scheme is not None:
            error = NotAuthenticated(f"{agent.card.name} refused the {self._chosen.scheme.kind} credential")
            return _said(error, f"See that what KeyManager has for {service_of(agent.card)!r} is valid.")
        error = NotAuthenticated(f"{agent.card.name} wants {wanted}, and there is no credential for it")
        return _said(error, f"KeyManager looks for {service_of(agent.card)!r}: keys.set_key(…), or the environment.")

    def _lasts(self) -> bool:
        return self._token is not None and self._clock.monotonic() < self._token.until

    async def _got(self, chosen: Chosen, card: AgentCard) -> Token:
        """A token by client credentials. Raises NotAuthenticated, AgentUnavailable."""
        assert chosen.client is not None  # noqa: S101 - only then a token is needed
        scheme = chosen.scheme or AuthScheme(kind="oauth2")
        url = scheme.token_url or ""
        refuse_plain(url)
        client = chosen.client
        grant = Grant(url=url, client_id=client.client_id, client_secret=client.client_secret, scopes=scheme.scopes)
        try:
            return await fetch_token(grant, self._wire.fetch, self._clock, timeout_s=TOKEN_S)
        except NoToken as none:
            if not none.reached:
                said = f"The token endpoint of {card.name} is {none.why}."
                raise AgentUnavailable(said, reason="no_token") from None
            error = NotAuthenticated(f"The token endpoint of {card.name} gave no token ({none.why})", reason="no_token")
            raise _said(
                error, f"See that the OAuth client that KeyManager has for {service_of(card)!r} is valid."
            ) from None


def refuse_plain(url: str) -> None:
    """Raises BadParams for an address to which a credential would travel in the open."""
    try:
        target = parse(url)
    except NetError:
        raise BadParams(f"{url[:200]!r} is no address that a credential could be sent to.") from None
    if target.scheme == "http" and not is_loopback(target.host):
        raise _said(
            BadParams(f"No credential is sent to {name_of(url)} over plain http", reason="plain_http"),
            "Call the agent by https.",
        )


def _bearer(token: Secret) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {token.reveal()}".encode()}


def _said(error: Refusal, next_step: str) -> Refusal:
    put_into_words(error, next_step)
    return error
