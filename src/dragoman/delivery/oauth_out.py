"""Tokens by OAuth2 client credentials: asked for once for all who need one, kept until a minute before their end.

The token endpoint is dialled under the same address rule as everything else, and follows no redirect. Where the client
may be sent to is decided by whoever asks; here nothing is bound to anything.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Final, final
from urllib.parse import quote, urlencode

import msgspec

from dragoman.delivery.flights import Flights
from dragoman.model.http import JSON_TYPE, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.secret import Secret
from dragoman.net.errors import NetError
from dragoman.ports.clock import Clock

EARLY_S: Final = 60.0  # before its end a token is renewed
AT_ONCE_S: Final = 1.0
UNSAID_S: Final = 300.0  # what a token is taken to last that does not say
TOKEN_S: Final = 10.0  # for the token endpoint to answer
HELD: Final = 10_000

_FORM: Final = {b"content-type": b"application/x-www-form-urlencoded", b"accept": JSON_TYPE}
_decode = msgspec.json.Decoder().decode

Fetch = Callable[[HttpRequest, float], Awaitable[HttpReply]]  # by a monotonic deadline; raises NetError


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a token is asked for with, and where; `basic`: the client's secret goes into a header, not the form."""

    url: str
    client_id: Secret
    client_secret: Secret
    scopes: tuple[str, ...] = ()
    audience: str | None = None
    resource: str | None = None
    basic: bool = False


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token, and until when (monotonic) it is shown."""

    value: Secret
    until: float


class NoToken(Exception):
    """The token endpoint gave none; `why` is a word for it that quotes nothing. `reached`: it did answer."""

    def __init__(self, why: str, *, reached: bool) -> None:
        super().__init__(why)
        self.why = why
        self.reached = reached


async def fetch_token(grant: Grant, fetch: Fetch, clock: Clock, *, timeout_s: float = TOKEN_S) -> Token:
    """A fresh token. Raises NoToken."""
    form = {"grant_type": "client_credentials"}
    headers = dict(_FORM)
    if grant.basic:
        # RFC 6749, 2.3.1: both halves are form-encoded before they are joined.
        pair = ":".join(quote(half.reveal(), safe="") for half in (grant.client_id, grant.client_secret))
        headers[b"authorization"] = b"Basic " + b64encode(pair.encode())
    else:
        form |= {"client_id": grant.client_id.reveal(), "client_secret": grant.client_secret.reveal()}
    more = {"scope": " ".join(grant.scopes), "audience": grant.audience, "resource": grant.resource}
    form |= {name: value for name, value in more.items() if value}
    request = HttpRequest(method="POST", url=grant.url, headers=headers, body=urlencode(form).encode())
    asked_at = clock.monotonic()
    try:
        reply = await fetch(request, asked_at + timeout_s)
    except NetError as error:
        raise NoToken(str(error), reached=False) from None
    return _read(reply, asked_at)


@final
class Tokens:
    """The tokens that are held, by a name for whose they are."""

    def __init__(self, *, fetch: Fetch, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._held: dict[str, Token] = {}
        self._flights: Flights[Token | NoToken] = Flights()

    def last(self, name: str) -> Secret | None:
        """The token that was got last: after `have`, one to be shown now."""
        token = self._held.get(name)
        return None if token is None else token.value

    async def have(self, name: str, grant: Grant) -> None:
        """Have a token at hand that lasts. Raises NoToken."""
        token = self._held.get(name)
        if token is not None and self._clock.monotonic() < token.until:
            return
        got = await self._flights.fly(name, lambda: self._got(name, grant))
        if isinstance(got, NoToken):
            raise NoToken(got.why, reached=got.reached)

    def refused(self, name: str, shown: bytes) -> None:
        """This was shown and not taken: forget it, unless another one has come since."""
        token = self._held.get(name)
        if token is not None and shown == b"Bearer " + token.value.reveal().encode():
            del self._held[name]

    def forget(self, name: str | None = None) -> None:
        """Forget one, or all."""
        if name is None:
            self._held.clear()
        else:
            self._held.pop(name, None)

    async def _got(self, name: str, grant: Grant) -> Token | NoToken:
        try:
            token = await fetch_token(grant, self._fetch, self._clock)
        except NoToken as error:
            return error
        if len(self._held) >= HELD:
            self._held.clear()
        self._held[name] = token
        return token


def _read(reply: HttpReply, asked_at: float) -> Token:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    answer: JsonObject = body if is_object(body) else {}
    token: Json = answer.get("access_token")
    if reply.status != 200 or not isinstance(token, str) or not token:
        # The code alone: what else is said may quote the request.
        code: Json = answer.get("error")
        known = isinstance(code, str) and len(code) <= 64 and code.isascii() and code.replace("_", "").isalnum()
        raise NoToken(str(code) if known else f"HTTP {reply.status}", reached=True)
    kind: Json = answer.get("token_type", "bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise NoToken("it is no bearer token", reached=True)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise NoToken("it fits into no header", reached=True)
    lasts_s: Json = answer.get("expires_in")
    if isinstance(lasts_s, bool) or not isinstance(lasts_s, int | float) or lasts_s < 0:
        lasts_s = UNSAID_S
    # One that lasts no longer than a minute is still good for the call that it was got for.
    return Token(value=Secret(token), until=asked_at + max(lasts_s - EARLY_S, min(lasts_s, AT_ONCE_S)))
