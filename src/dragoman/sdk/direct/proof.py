"""How a client without a hub proves itself to an agent: by the first scheme of its card that there is a credential for.

The order is apiKey, oauth2, bearer, none. A token got for OAuth2 client credentials is kept until a minute before its
end. No credential leaves this machine over plain HTTP.
"""

import asyncio
from typing import Final, TypeVar, final
from urllib.parse import urlencode

import msgspec

from dragoman.delivery.over_http import Wire
from dragoman.delivery.probe.places import is_loopback, name_of
from dragoman.model.agent import Agent, AgentCard, AuthScheme
from dragoman.model.errors import AgentUnavailable, BadParams, DragomanError, NotAuthenticated, NotSupported
from dragoman.model.http import JSON_TYPE, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.secret import Secret
from dragoman.net.addresses import parse
from dragoman.net.errors import NetError
from dragoman.ports.clock import Clock
from dragoman.sdk.errors import put_into_words
from dragoman.security.key_manager import KeyManager, OAuthClient

ORDER: Final = ("apiKey", "oauth2", "bearer")
EARLY_S: Final = 60.0  # before its end a token is renewed
AT_ONCE_S: Final = 1.0
UNSAID_S: Final = 300.0  # what a token is taken to last that does not say
TOKEN_S: Final = 30.0  # for the token endpoint to answer
KEY_HEADER: Final = "X-Api-Key"

Refusal = TypeVar("Refusal", bound=DragomanError)

_FORM: Final = {b"content-type": b"application/x-www-form-urlencoded", b"accept": JSON_TYPE}
_decode = msgspec.json.Decoder().decode


class _Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A scheme and the credential for it; without either, nothing is shown."""

    scheme: AuthScheme | None = None
    key: Secret | None = None
    client: OAuthClient | None = None


class _Token(msgspec.Struct, kw_only=True):
    value: Secret
    until: float
    uses: int = 0


@final
class DirectProof:
    """The credentials of one client towards one agent, in one event loop."""

    def __init__(self, keys: KeyManager, wire: Wire, clock: Clock) -> None:
        self._keys = keys
        self._wire = wire
        self._clock = clock
        self._chosen: _Chosen | None = None
        self._token: _Token | None = None
        self._renewing = asyncio.Lock()

    def is_ready(self, agent: Agent) -> bool:
        """Whether a credential is at hand, and lasts."""
        if self._chosen is None:
            return False
        return self._chosen.client is None or self._lasts()

    async def ready(self, agent: Agent) -> None:
        """Choose a scheme, and have a token where it needs one. Raises NotAuthenticated, BadParams."""
        if self._chosen is None:
            chosen = await asyncio.to_thread(self._choose, agent.card)
            if chosen.scheme is not None:
                refuse_plain(agent.card.endpoints[0].url or "")
            self._chosen = chosen
        if self._chosen.client is None or self._lasts():
            return
        async with self._renewing:
            if not self._lasts():
                self._token = await self._got(self._chosen, agent.card)

    def stored_headers(self, agent: Agent, url: str) -> dict[bytes, bytes] | None:
        """The headers that carry the credential; none where there is no credential."""
        chosen = self._chosen or _Chosen()
        if chosen.scheme is None:
            return {}
        if chosen.client is not None and self._token is not None:
            self._token.uses += 1
            return _bearer(self._token.value)
        key = chosen.key or Secret("")
        if chosen.scheme.kind == "apiKey":
            return {(chosen.scheme.name or KEY_HEADER).lower().encode(): key.reveal().encode()}
        return _bearer(key)

    def hub_token(self, agent: Agent, *, subject: str, chain: tuple[str, ...]) -> dict[bytes, bytes]:
        """Nothing: there is no hub to speak for."""
        return {}

    def signature(self, agent: Agent, call_id: str, body: bytes) -> dict[bytes, bytes]:
        """Nothing: a signature is a hub's."""
        return {}

    async def keep(self, agent: Agent, given: JsonObject) -> None:
        """Credentials are kept with a KeyManager."""
        raise NotSupported("Credentials are kept with KeyManager.set_key and set_oauth.")

    def renews(self) -> bool:
        """Whether a refusal may mean that a token, used before, has ended early; it is forgotten then."""
        if self._token is None or self._token.uses < 2:
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

    def _choose(self, card: AgentCard) -> _Chosen:
        for kind in ORDER:
            for scheme in card.auth:
                if scheme.kind == kind and (chosen := self._credential(scheme, card)) is not None:
                    return chosen
        return _Chosen()

    def _credential(self, scheme: AuthScheme, card: AgentCard) -> _Chosen | None:
        service = service_of(card, scheme)
        if scheme.kind == "oauth2":
            client = self._keys.get_oauth(service) if scheme.token_url else None
            return None if client is None else _Chosen(scheme=scheme, client=client)
        # A key in an address ends up in logs along the way.
        if scheme.kind == "apiKey" and scheme.location not in (None, "header"):
            return None
        key = self._keys.get_key(service)
        return None if key is None else _Chosen(scheme=scheme, key=key)

    async def _got(self, chosen: _Chosen, card: AgentCard) -> _Token:
        """A token by client credentials. Raises NotAuthenticated, AgentUnavailable."""
        assert chosen.client is not None  # noqa: S101 - only then a token is needed
        scheme = chosen.scheme or AuthScheme(kind="oauth2")
        url = scheme.token_url or ""
        refuse_plain(url)
        form = {
            "grant_type": "client_credentials",
            "client_id": chosen.client.client_id.reveal(),
            "client_secret": chosen.client.client_secret.reveal(),
        }
        if scheme.scopes:
            form["scope"] = " ".join(scheme.scopes)
        request = HttpRequest(method="POST", url=url, headers=_FORM, body=urlencode(form).encode())
        asked_at = self._clock.monotonic()
        try:
            reply = await self._wire.fetch(request, asked_at + TOKEN_S)
        except NetError as error:
            raise AgentUnavailable(f"The token endpoint of {card.name} is {error}.", reason="no_token") from None
        return _read_token(reply, card, asked_at)


def service_of(card: AgentCard, scheme: AuthScheme | None = None) -> str:
    """The name under which credentials for an agent are kept: its service_identifier, humanReadableId or id."""
    schemes = card.auth if scheme is None else (scheme,)
    named = next((each.service_identifier for each in schemes if each.service_identifier), None)
    return (named or (card.aliases[0] if card.aliases else card.id)).lower()


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


def _read_token(reply: HttpReply, card: AgentCard, asked_at: float) -> _Token:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    answer: JsonObject = body if is_object(body) else {}
    token: Json = answer.get("access_token")
    if reply.status != 200 or not isinstance(token, str) or not token:
        # The code alone: what else is said may quote the request.
        code: Json = answer.get("error")
        why = code if isinstance(code, str) and code.replace("_", "").isalnum() else f"HTTP {reply.status}"
        error = NotAuthenticated(f"The token endpoint of {card.name} gave no token ({why})", reason="no_token")
        raise _said(error, f"See that the OAuth client that KeyManager has for {service_of(card)!r} is valid.")
    lasts_s: Json = answer.get("expires_in")
    if isinstance(lasts_s, bool) or not isinstance(lasts_s, int | float) or lasts_s < 0:
        lasts_s = UNSAID_S
    # One that lasts no longer than a minute is still good for the call that it was got for.
    return _Token(value=Secret(token), until=asked_at + max(lasts_s - EARLY_S, min(lasts_s, AT_ONCE_S)))


def _bearer(token: Secret) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {token.reveal()}".encode()}


def _said(error: Refusal, next_step: str) -> Refusal:
    put_into_words(error, next_step)
    return error
