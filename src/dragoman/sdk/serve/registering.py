"""An agent's own server makes itself known to a hub: `agent.serve(register=hub_url)`.

Where anybody may call it, by its URL: the hub looks what it speaks. Where callers need a credential, by its platform
card: agents of that dialect are shown the hub's own tokens, and those are taken here, by the keys that the hub
publishes. The token that the hub gives the agent is kept in its data folder: the agent calls others with it.
"""

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Final, final

from dragoman.config import Settings
from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.model.errors import DragomanError
from dragoman.model.json import JsonObject, is_object
from dragoman.ports.clock import Clock
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.connect.backoff import Backoff
from dragoman.sdk.errors import error_of_reply
from dragoman.security.jwt_verify import VerifyingKey, published_keys, verified_claims
from dragoman.security.private_files import create_private, read_private
from dragoman.security.scopes import CALL
from dragoman.security.tokens import NAMES_CALLER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.sdk.agent.agent import Agent

TOKEN_FILE: Final = "agent-token"  # noqa: S105 - a file name
KEYS: Final = "/.well-known/jwks.json"
KEYS_S: Final = 300.0  # for which the hub's keys are taken to be the same
ANSWER_S: Final = 20.0
_log = logging.getLogger("dragoman.agent")


@final
class Registering:
    """Registers one agent at one hub, and again at each start; waits for a hub that is away."""

    def __init__(self, agent: "Agent", settings: Settings, acting: A2AClient, clock: Clock) -> None:
        self._agent = agent
        self._settings = settings
        self._acting = acting  # with what the agent calls others
        self._clock = clock
        self._http = HubHttp(acting.url, agent.api_key, clock=clock)
        self._client = A2AClient(http=self._http)
        self._issuer = ""
        self._keys: Mapping[str, VerifyingKey] = {}
        self._registered = False
        self._waiting = False

    async def run(self) -> None:
        """Register, then look for the hub's keys now and then; returns where the hub refuses for good."""
        self._act_as_agent()
        backoff = Backoff(self._clock)
        try:
            while True:
                try:
                    # Before anybody can call by way of the hub: who signs, and with what.
                    self._issuer, self._keys = await self._own_name(), published_keys(await self._published(KEYS))
                    if not self._registered:
                        await self._register()
                    backoff.reset()
                    await self._clock.sleep(KEYS_S)
                except DragomanError as error:
                    if not error.retryable:
                        _log.error("%s refuses to register %s: %s", self._http.url, self._agent.id, error)
                        return
                    self._note(error)
                    await self._clock.sleep(max(error.retry_after_s or 0.0, backoff.next_s()))
        finally:
            await self._http.close()

    def verify(self, token: str, now: datetime) -> JsonObject | None:
        """Who calls, by a token that the hub signed for this agent; None if it is none."""
        if not self._issuer:
            return None
        claims = verified_claims(
            token, keys=self._keys, issuer=self._issuer, audience=self._agent.id, now=now, kind=NAMES_CALLER
        )
        if claims is None:
            return None
        # Whatever else it says: who calls through a hub may call this agent, and no more.
        subject = claims["sub"]
        return {"sub": subject, "agent_id": subject, "exp": claims["exp"], "tid": DEFAULT_TENANT, "scope": CALL}

    async def _register(self) -> None:
        if self._settings.auth == "none":
            told = await self._client.register(f"{self._settings.public_url}/", id=self._agent.id)
        else:
            endpoint = f"{self._settings.public_url}/v1/agents/{self._agent.id}/a2a"
            told = await self._client.register({**self._agent.card(), "endpoint": endpoint})
        token = told.get("token")
        if isinstance(token, str) and token:
            path = self._settings.data / TOKEN_FILE
            path.unlink(missing_ok=True)  # of an earlier registration, which the hub has forgotten
            create_private(path, token)
            self._act_as_agent()
        self._registered, self._waiting = True, False
        _log.info("%s is registered at %s", self._agent.id, self._http.url)

    async def _own_name(self) -> str:
        """What the hub calls itself, and so the tokens that it signs; it may be reached by other names."""
        links = (await self._published("/")).get("links")
        named = str(links.get("api", "")) if is_object(links) else ""
        return named.removesuffix("/openapi.json") or self._http.url

    async def _published(self, path: str) -> JsonObject:
        """What the hub shows to everybody."""
        reply = await self._http.ask("GET", path, timeout_s=ANSWER_S)
        if reply.status != 200 or not is_object(reply.body):
            raise error_of_reply(reply.status, reply.headers, reply.body)
        return reply.body

    def _note(self, error: DragomanError) -> None:
        if not self._waiting and not self._registered:
            _log.warning("%s is not registered yet: %s Trying again.", self._agent.id, error)
        self._waiting = True

    def _act_as_agent(self) -> None:
        """Let the agent call others as itself, once the hub has given it a token."""
        token = None if self._agent.api_key is not None else read_private(self._settings.data / TOKEN_FILE)
        if token:
            self._acting.use_token(token)
