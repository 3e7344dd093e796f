"""How whoever calls agents proves itself to them, and who keeps what it needs for that: what a courier must know.

A hub has the credentials that owners stored, a client without a hub those of its KeyManager.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.errors import AgentUnavailable
from dragoman.model.http import NO_HEADERS, Headers
from dragoman.model.json import JsonObject
from dragoman.net.tls import ClientIdentity


class Suspended(AgentUnavailable):
    """The agent has another address than the one its credential was stored for: its owner has to enter it again."""

    retry = False


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown to an agent that is not registered yet."""

    headers: Headers = NO_HEADERS
    identity: ClientIdentity | None = None


class Proof(Protocol):
    """How whoever calls agents proves itself to them: what a courier needs to know of it."""

    @property
    def identities(self) -> Mapping[str, ClientIdentity]:
        """The client certificates at hand, by the agent's UUID."""
        ...

    def is_ready(self, agent: Agent) -> bool:
        """Whether what there is for an agent is at hand, and lasts."""
        ...

    async def ready(self, agent: Agent) -> None:
        """Have at hand what there is for an agent. Raises AgentUnavailable where it cannot be had."""
        ...

    def shown(self, agent: Agent, url: str, *, subject: str, chain: tuple[str, ...], by_hub: bool) -> Headers:
        """The headers that prove who calls; `by_hub`: without a credential of its own the agent takes the hub's word.

        Raises Suspended where there is a credential, and it is not for this address.
        """
        ...

    async def renewed(self, agent: Agent, refused: Headers) -> bool:
        """Whether there is something else to show in place of what the agent refused. Raises AgentUnavailable."""
        ...

    def signature(self, agent: Agent, call_id: str, body: bytes) -> Headers:
        """A signature over a body, if there is a secret for it."""
        ...


class Keeper(Protocol):
    """Who keeps the credentials of agents, for their owners."""

    async def keep(self, agent: Agent, given: JsonObject) -> None:
        """Store an agent's credential, for the address that it has now. Raises BadParams."""
        ...

    async def given(self, given: JsonObject, url: str) -> Shown:
        """What a credential that is not stored yet comes to, at this address. Raises BadParams."""
        ...
