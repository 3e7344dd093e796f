"""How the hub proves itself to an agent: by the credential its owner stored, else by a short-lived token of its own.

The caller's credential is never sent on. A stored one is sealed, and bound to the origin it was stored for.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Literal, Protocol
from urllib.parse import urlsplit

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.ports.clock import Clock
from dragoman.ports.store import Vault
from dragoman.security.sealed import Sealer
from dragoman.security.signing import sign_headers
from dragoman.security.tokens import HubTokens

CACHED: Final = 10_000
SCOPE: Final = "a2a:receive"

Value = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^[\x21-\x7e]+$")]


class StoredCredential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an owner stored for one agent; `origin` is the one place it may go to."""

    type: Literal["none", "bearer", "apiKey", "basic"]
    token: Value | None = None
    header: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = None
    username: Value | None = None
    password: Value | None = None
    origin: str = ""

    def headers(self) -> dict[bytes, bytes]:
        """The headers that carry it."""
        match self.type:
            case "bearer":
                return {b"authorization": f"Bearer {self.token}".encode()}
            case "apiKey":
                return {(self.header or "X-Api-Key").lower().encode(): (self.token or "").encode()}
            case "basic":
                pair = b64encode(f"{self.username}:{self.password}".encode())
                return {b"authorization": b"Basic " + pair}
            case "none":
                return {}


class Proof(Protocol):
    """How whoever calls agents proves itself to them: what a courier needs to know of it."""

    def is_ready(self, agent: Agent) -> bool:
        """Whether what there is for an agent is at hand."""
        ...

    async def ready(self, agent: Agent) -> None:
        """Have at hand what there is for an agent."""
        ...

    def stored_headers(self, agent: Agent, url: str) -> dict[bytes, bytes] | None:
        """The headers of the credential for this agent at this address; None where there is none."""
        ...

    def hub_token(self, agent: Agent, *, subject: str, chain: tuple[str, ...]) -> dict[bytes, bytes]:
        """What is shown instead, to agents that take the hub's own word."""
        ...

    def signature(self, agent: Agent, call_id: str, body: bytes) -> dict[bytes, bytes]:
        """A signature over a body, if there is a secret for it."""
        ...

    async def keep(self, agent: Agent, given: JsonObject) -> None:
        """Store an agent's credential. Raises BadParams."""
        ...


class Credentials:
    """The credentials towards agents, by agent."""

    def __init__(
        self,
        *,
        vault: Vault,
        sealer: Sealer,
        clock: Clock,
        tokens: HubTokens,
        signing_secret: Callable[[Agent], Awaitable[Secret | None]],
    ) -> None:
        self._vault = vault
        self._sealer = sealer
        self._clock = clock
        self._tokens = tokens
        self._signing_secret = signing_secret
        self._stored: dict[str, StoredCredential | None] = {}
        self._secrets: dict[str, Secret] = {}

    def is_ready(self, agent: Agent) -> bool:
        """Whether what is stored for an agent is at hand."""
        return agent.uuid in self._secrets

    async def ready(self, agent: Agent) -> None:
        """Have at hand what is stored for an agent; reads the store once per agent."""
        if agent.uuid not in self._secrets:
            await self._load(agent)

    def stored_headers(self, agent: Agent, url: str) -> dict[bytes, bytes] | None:
        """The headers of the credential stored for this agent and this origin; None where there is none."""
        stored = self._stored[agent.uuid]
        if stored is None or stored.origin != origin_of(url):
            return None
        return stored.headers()

    def hub_token(self, agent: Agent, *, subject: str, chain: tuple[str, ...]) -> dict[bytes, bytes]:
        """The hub's own short-lived token, for an agent whose owner stored no other credential."""
        token = self._tokens.token(subject=subject, audience=agent.id, scope=SCOPE, chain=chain, now=self._clock.now())
        return {b"authorization": f"Bearer {token}".encode()}

    def signature(self, agent: Agent, call_id: str, body: bytes) -> dict[bytes, bytes]:
        """The hub's signature over a body, under the agent's own secret."""
        secret = self._secrets.get(agent.uuid)
        if secret is None:
            return {}
        return sign_headers(secret, id=call_id, timestamp=int(self._clock.now().timestamp()), body=body)

    async def keep(self, agent: Agent, given: JsonObject) -> None:
        """Store an agent's credential. Raises BadParams."""
        stored = _read(given, origin_of(agent.card.endpoints[0].url or ""))
        sealed = self._sealer.seal(
            msgspec.json.encode(stored), table="sealed", column="value", row=_name(agent), tenant=agent.tenant
        )
        await self._vault.put_sealed(_name(agent), sealed)
        self.forget(agent.uuid)

    def forget(self, uuid: str | None = None) -> None:
        """Drop what is cached of one agent, or of all."""
        if uuid is None:
            self._stored.clear()
            self._secrets.clear()
        else:
            self._stored.pop(uuid, None)
            self._secrets.pop(uuid, None)

    async def _load(self, agent: Agent) -> None:
        if len(self._stored) >= CACHED:
            self.forget()
        secret = await self._signing_secret(agent)
        sealed = await self._vault.get_sealed(_name(agent))
        stored: StoredCredential | None = None
        if sealed is not None:
            opened = self._sealer.open(sealed, table="sealed", column="value", row=_name(agent), tenant=agent.tenant)
            stored = msgspec.json.decode(opened, type=StoredCredential)
        self._stored[agent.uuid] = stored
        # An agent that was registered this moment gets its secret right after: look again with the next call.
        if secret is not None:
            self._secrets[agent.uuid] = secret


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def given_headers(given: JsonObject, url: str) -> dict[bytes, bytes]:
    """The headers of a credential that is not stored yet. Raises BadParams."""
    return _read(given, origin_of(url)).headers()


def _read(given: JsonObject, origin: str) -> StoredCredential:
    try:
        stored = msgspec.convert(given, StoredCredential)
    except msgspec.ValidationError as error:
        raise BadParams(f"credentials: {error}", errors=[{"path": "credentials", "message": str(error)}]) from None
    needed = {"bearer": ("token",), "apiKey": ("token",), "basic": ("username", "password"), "none": ()}[stored.type]
    for field in needed:
        if getattr(stored, field) is None:
            path = f"credentials.{field}"
            raise BadParams(f"{path}: required", errors=[{"path": path, "message": "required"}])
    return msgspec.structs.replace(stored, origin=origin)


def _name(agent: Agent) -> str:
    return f"credential:{agent.uuid}"
