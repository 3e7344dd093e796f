"""The kinds of credentials that an owner may store for an agent, as they are given and as they are kept.

Pure: what is said here of a credential is its form. Where it may go is said by `origin` and `token_origin`, which the
hub writes, whatever was given.
"""

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.net.requests import OWN_HEADERS

KEY_HEADER: Final = "X-Api-Key"

Kind = Literal["none", "bearer", "apiKey", "basic", "oauth2", "mtls", "hub-jwt"]
Value = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^[\x21-\x7e]+$")]
Url = Annotated[str, msgspec.Meta(max_length=2048, pattern=r"^https?://[^\s/]")]
Pem = Annotated[str, msgspec.Meta(min_length=1, max_length=64 * 1024)]

# What each kind needs, and what else it may have.
FIELDS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "none": ((), ()),
    "hub-jwt": ((), ()),
    "bearer": (("token",), ()),
    "apiKey": (("token",), ("header", "place")),
    "basic": (("username", "password"), ()),
    "oauth2": (("client_id", "client_secret"), ("token_url", "scopes", "audience", "resource", "client_auth")),
    "mtls": (("certificate", "key"), ("ca",)),
}
_BOUND: Final = ("type", "origin", "token_origin")
# What the hub says itself in every request, and what would change how a request is read.
_TAKEN: Final = frozenset({name.decode() for name in OWN_HEADERS} | {"traceparent", "tracestate", "forwarded"})
_TAKEN_BEGINNINGS: Final = ("content-", "proxy-", "x-forwarded-", "webhook-")


class StoredCredential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an owner stored for one agent; `origin` is the one place it may go to.

    An OAuth2 client goes to `token_origin` alone: to `token_url`, or to what the agent's card names without one.
    """

    type: Kind
    token: Value | None = None
    header: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = None
    place: Literal["header", "query", "cookie"] | None = msgspec.field(default=None, name="in")
    username: Value | None = None
    password: Value | None = None
    token_url: Url | None = None
    client_id: Value | None = None
    client_secret: Value | None = None
    scopes: Annotated[tuple[Value, ...], msgspec.Meta(max_length=50)] | None = None
    audience: Value | None = None
    resource: Value | None = None
    client_auth: Literal["body", "basic"] | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    ca: Pem | None = None
    origin: str = ""
    token_origin: str = ""

    def __repr__(self) -> str:
        return f"StoredCredential(type={self.type!r}, origin={self.origin!r})"

    @property
    def secret(self) -> bool:
        """Whether there is anything in it that must not reach anybody else."""
        return self.type not in ("none", "hub-jwt")

    def headers(self, token: Secret | None = None) -> dict[bytes, bytes]:
        """The headers that carry it; `token` is what was got with it, where it gets one."""
        match self.type:
            case "bearer":
                return {b"authorization": f"Bearer {self.token}".encode()}
            case "apiKey":
                return {(self.header or KEY_HEADER).lower().encode(): (self.token or "").encode()}
            case "basic":
                pair = b64encode(f"{self.username}:{self.password}".encode())
                return {b"authorization": b"Basic " + pair}
            case "oauth2":
                return {} if token is None else {b"authorization": f"Bearer {token.reveal()}".encode()}
            case "none" | "hub-jwt" | "mtls":
                return {}


def read_credential(given: JsonObject) -> StoredCredential:
    """The credential as it was given, not bound to any place yet. Raises BadParams naming the field."""
    try:
        read = msgspec.convert(
            {name: value for name, value in given.items() if name not in _BOUND[1:]}, StoredCredential
        )
    except msgspec.ValidationError as error:
        raise bad_credential("", str(error)) from None
    needed, more = FIELDS[read.type]
    for field in needed:
        if getattr(read, field) is None:
            raise bad_credential(field, "required")
    for field in StoredCredential.__struct_fields__:
        if field not in (*needed, *more, *_BOUND) and getattr(read, field) is not None:
            raise bad_credential(field, f"is no part of a credential of type {read.type}")
    _refuse_unsendable(read)
    return read


@lru_cache(maxsize=4096)
def origin_of(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def bad_credential(field: str, message: str) -> BadParams:
    """What is wrong with a field of a credential, or with all of it."""
    path = f"credentials.{field}" if field else "credentials"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def _refuse_unsendable(read: StoredCredential) -> None:
    if read.place not in (None, "header"):
        raise bad_credential("in", "the hub sends keys in headers alone: in an address they end up in logs")
    header = (read.header or "").lower()
    if header in _TAKEN or header.startswith(_TAKEN_BEGINNINGS):
        raise bad_credential("header", "this header is set by the hub")
    if read.username is not None and ":" in read.username:
        raise bad_credential("username", "no name with a colon can be sent so")
