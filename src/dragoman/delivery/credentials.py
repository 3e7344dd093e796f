"""How the hub proves itself to an agent: by the credential its owner stored, else by a short-lived token of its own.

The caller's credential is never sent on. A stored one is sealed, and bound to the origin it was stored for: an agent
that has moved gets nothing, and is not called, until its owner enters the credential again.

    stored → what the key file has → the hub's own token, where the agent's dialect takes it
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.delivery.credential_kinds import StoredCredential, bad_credential, origin_of, read_credential
from dragoman.delivery.flights import Flights
from dragoman.delivery.key_file import KeyFileSource
from dragoman.delivery.oauth_out import Fetch, Grant, NoToken, Tokens, fetch_token
from dragoman.delivery.proof import Shown, Suspended
from dragoman.model.agent import Agent, AgentCard, Binding
from dragoman.model.errors import AgentUnavailable
from dragoman.model.http import NO_HEADERS, Headers
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.net.errors import NetError
from dragoman.net.tls import ClientIdentity
from dragoman.ports.clock import Clock
from dragoman.ports.store import Vault
from dragoman.security.certificates import CertificateRefused, check_certificate, encrypted_key
from dragoman.security.sealed import Sealer
from dragoman.security.signing import sign_headers
from dragoman.security.tokens import HubTokens

CACHED: Final = 10_000
SCOPE: Final = "a2a:receive"


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored for an agent, at hand; `name` tells its tokens from those of what was stored before."""

    stored: StoredCredential
    name: str
    from_file: bool


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
        fetch: Fetch,
        check: Callable[[str], Awaitable[None]],
        spoken: Mapping[str, frozenset[Binding]],
        key_file: KeyFileSource | None = None,
    ) -> None:
        self._vault = vault
        self._sealer = sealer
        self._clock = clock
        self._tokens = tokens
        self._signing_secret = signing_secret
        self._fetch = fetch
        self._check = check  # whether an address may be dialled; raises NetError
        self._spoken = spoken
        self._key_file = key_file
        self._held: dict[str, _Held | None] = {}  # None: nothing is stored
        self._secrets: dict[str, Secret] = {}
        self._settled: set[str] = set()  # for whom nothing has to be got before a call
        self._changes = 0
        self._loading: Flights[None] = Flights()
        self._oauth = Tokens(fetch=fetch, clock=clock)
        self._problems: dict[str, str] = {}  # why there was no token when one was last asked for
        self.identities: dict[str, ClientIdentity] = {}

    def is_ready(self, agent: Agent) -> bool:
        """Whether what is stored for an agent is at hand, and needs no token."""
        return agent.uuid in self._settled

    async def ready(self, agent: Agent) -> None:
        """Have at hand what is stored for an agent, and a token where it needs one. Raises AgentUnavailable."""
        uuid = agent.uuid
        while uuid not in self._settled:
            if uuid not in self._held or uuid not in self._secrets:
                await self._loading.fly(uuid, lambda: self._load(agent))
            held = self._held.get(uuid)
            if held is not None and held.stored.type == "oauth2":
                await self._token(agent, held)
            # It may have been forgotten while we waited.
            if uuid in self._held:
                return

    def shown(self, agent: Agent, url: str, *, subject: str, chain: tuple[str, ...], by_hub: bool) -> Headers:
        """What the owner stored for this agent and this origin; else, where it takes that, the hub's own token."""
        held = self._held[agent.uuid]
        if held is None:
            return self._hub_token(agent, subject, chain) if by_hub else NO_HEADERS
        if held.stored.type == "hub-jwt":
            return self._hub_token(agent, subject, chain)
        if held.stored.secret and _moved(agent, held.stored, url):
            raise Suspended(reason="credential_suspended", agent_id=agent.id)
        return held.stored.headers(self._oauth.last(held.name))

    async def renewed(self, agent: Agent, refused: Headers) -> bool:
        """Another token, or what stands in the key file by now."""
        held = self._held.get(agent.uuid)
        if held is None:
            return False
        if held.stored.type == "oauth2":
            self._oauth.refused(held.name, refused.get(b"authorization", b""))
            await self._token(agent, held)
            return True
        if not held.from_file:
            return False
        self.forget(agent.uuid)
        await self.ready(agent)
        return self._held.get(agent.uuid) != held

    def signature(self, agent: Agent, call_id: str, body: bytes) -> Headers:
        """The hub's signature over a body, under the agent's own secret."""
        secret = self._secrets.get(agent.uuid)
        if secret is None:
            return NO_HEADERS
        return sign_headers(secret, id=call_id, timestamp=int(self._clock.now().timestamp()), body=body)

    async def keep(self, agent: Agent, given: JsonObject) -> None:
        """Store an agent's credential, bound to where the agent is now. Raises BadParams."""
        read, url = read_credential(given), self._place(agent)
        if read.secret and url is None:
            raise bad_credential("", "the agent has no URL that one could be sent to")
        token_url = await self._checked(read, url or "", agent.card)
        stored = msgspec.structs.replace(
            read, origin=origin_of(url) if url else "", token_origin=origin_of(token_url) if token_url else ""
        )
        sealed = self._sealer.seal(
            msgspec.json.encode(stored), table="sealed", column="value", row=_name(agent), tenant=agent.tenant
        )
        await self._vault.put_sealed(_name(agent), sealed)
        self.forget(agent.uuid)

    async def given(self, given: JsonObject, url: str) -> Shown:
        """What a credential that is not stored yet comes to, at this address. Raises BadParams."""
        read = read_credential(given)
        # Where it names no token endpoint the agent's card does: it has not been seen yet.
        if read.type == "oauth2" and read.token_url is not None:
            await self._checked(read, url, None)
            try:
                token = await fetch_token(_grant(read, read.token_url), self._fetch, self._clock)
            except NoToken as error:
                raise bad_credential("token_url", f"no token came from there: {error.why}") from None
            return Shown(headers=read.headers(token.value))
        if read.type == "mtls":
            await self._checked(read, url, None)
            return Shown(identity=await asyncio.to_thread(_identity, url, read))
        return Shown(headers=read.headers())

    async def facts(self, agent: Agent) -> JsonObject:
        """What an owner is told of its agent's credential: never the credential."""
        problem = self._problems.get(agent.uuid)
        try:
            while agent.uuid not in self._held:
                await self._loading.fly(agent.uuid, lambda: self._load(agent))
        except AgentUnavailable as error:
            problem = error.message
        held = self._held.get(agent.uuid)
        if held is None:
            return {"set": False, **({"problem": problem} if problem else {})}
        facts: JsonObject = {"set": True, "type": held.stored.type, "origin": held.stored.origin or None}
        if held.from_file:
            facts["from"] = "key file"
        moved = _moved(agent, held.stored, self._place(agent) or "") if held.stored.secret else ""
        if moved:
            facts["suspended"] = moved
        elif problem:
            facts["problem"] = problem
        return facts

    def forget(self, uuid: str | None = None) -> None:
        """Drop what is cached of one agent, or of all."""
        self._changes += 1
        if uuid is None:
            self._held.clear()
            self._secrets.clear()
            self._settled.clear()
            self._problems.clear()
            self.identities.clear()
        else:
            self._held.pop(uuid, None)
            self._secrets.pop(uuid, None)
            self._settled.discard(uuid)
            self._problems.pop(uuid, None)
            self.identities.pop(uuid, None)

    async def _load(self, agent: Agent) -> None:
        if len(self._held) >= CACHED:
            self.forget()
        uuid, row, changes = agent.uuid, _name(agent), self._changes
        secret = await self._signing_secret(agent)
        sealed = await self._vault.get_sealed(row)
        stored: StoredCredential | None = None
        if sealed is not None:
            opened = self._sealer.open(sealed, table="sealed", column="value", row=row, tenant=agent.tenant)
            stored = msgspec.json.decode(opened, type=StoredCredential)
        elif self._key_file is not None and (url := self._place(agent)) is not None:
            stored = await self._key_file.find(agent, url)
        identity: ClientIdentity | None = None
        if stored is not None and stored.type == "mtls":
            identity = await asyncio.to_thread(_identity, uuid, stored)
        if self._changes != changes:
            return  # What was read may be of before the change: whoever waits has it read again.
        held = None if stored is None else _Held(stored=stored, name=_digest(uuid, stored), from_file=sealed is None)
        self._held[uuid] = held
        if identity is not None:
            self.identities[uuid] = identity
        # An agent that was registered this moment gets its secret right after: look again with the next call.
        if secret is not None:
            self._secrets[uuid] = secret
            if stored is None or stored.type != "oauth2":
                self._settled.add(uuid)

    def _hub_token(self, agent: Agent, subject: str, chain: tuple[str, ...]) -> Headers:
        token = self._tokens.token(subject=subject, audience=agent.id, scope=SCOPE, chain=chain, now=self._clock.now())
        return {b"authorization": f"Bearer {token}".encode()}

    async def _token(self, agent: Agent, held: _Held) -> None:
        """Have a token at hand. One that may not be got, because the agent has moved, is not asked for."""
        url = _token_url(agent.card, held.stored)
        if url is None or origin_of(url) != held.stored.token_origin:
            return
        try:
            await self._oauth.have(held.name, _grant(held.stored, url))
        except NoToken as error:
            why = f" ({error.why})" if error.reached else ""
            said = f"The hub got no token for {agent.id} from its token endpoint{why}."
            self._problems[agent.uuid] = said
            raise AgentUnavailable(said, reason="no_token", agent_id=agent.id) from None
        if self._problems:
            self._problems.pop(agent.uuid, None)

    async def _checked(self, read: StoredCredential, url: str, card: AgentCard | None) -> str | None:
        """Whether a credential can be used at this address; its token endpoint, where it has one. Raises BadParams."""
        if read.type == "mtls":
            if not url.startswith("https:"):
                raise bad_credential("", "a client certificate needs an agent with an https URL")
            try:
                check_certificate(read.certificate or "", Secret(read.key or ""), read.ca)
            except CertificateRefused as error:
                field, _, problem = str(error).partition(": ")
                raise bad_credential(field, problem) from None
        if read.type != "oauth2":
            return None
        token_url = read.token_url if card is None else _token_url(card, read)
        if token_url is None:
            raise bad_credential("token_url", "required: the agent's card names none")
        try:
            await self._check(token_url)
        except NetError as error:
            raise bad_credential("token_url", str(error)) from None
        return token_url

    def _place(self, agent: Agent) -> str | None:
        """Where the agent is called: the first of its endpoints that this hub speaks to."""
        for endpoint in agent.card.endpoints:
            if endpoint.url is not None and endpoint.binding in self._spoken.get(endpoint.dialect, ()):
                return endpoint.url
        return None


def _moved(agent: Agent, stored: StoredCredential, url: str) -> str:
    """Why what is stored may not be sent there, in words for the owner; nothing where it may."""
    if (here := origin_of(url)) != stored.origin:
        return f"stored for {stored.origin}, and the agent is at {here} now: enter it again"
    if stored.type == "oauth2":
        asked = _token_url(agent.card, stored)
        there = "no token endpoint" if asked is None else origin_of(asked)
        if there != stored.token_origin:
            return f"stored for tokens of {stored.token_origin}, and the agent's card names {there} now: enter it again"
    return ""


def _token_url(card: AgentCard, stored: StoredCredential) -> str | None:
    if stored.token_url is not None:
        return stored.token_url
    return next((each.token_url for each in card.auth if each.kind == "oauth2" and each.token_url), None)


def _grant(stored: StoredCredential, url: str) -> Grant:
    return Grant(
        url=url,
        client_id=Secret(stored.client_id or ""),
        client_secret=Secret(stored.client_secret or ""),
        scopes=stored.scopes or (),
        audience=stored.audience,
        resource=stored.resource,
        basic=stored.client_auth == "basic",
    )


def _identity(whose: str, stored: StoredCredential) -> ClientIdentity:
    key, password = encrypted_key(Secret(stored.key or ""))
    return ClientIdentity(
        id=_digest(whose, stored), chain=stored.certificate or "", key=key, password=password, ca=stored.ca
    )


def _digest(whose: str, stored: StoredCredential) -> str:
    return sha256(whose.encode() + b"\n" + msgspec.json.encode(stored)).hexdigest()[:32]


def _name(agent: Agent) -> str:
    return f"credential:{agent.uuid}"
