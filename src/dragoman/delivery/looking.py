"""Look at an agent before anybody calls it: its card, what really answers there, and whether the hub may dial it."""

from collections.abc import Mapping

from dragoman.delivery.credential_kinds import origin_of
from dragoman.delivery.over_http import Wire
from dragoman.delivery.probe import document, examined_card, look
from dragoman.delivery.proof import Keeper, Proof, Shown
from dragoman.dialects.dialect import Dialect
from dragoman.model.agent import Agent
from dragoman.model.errors import AgentUnavailable, BadParams, NotSupported
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.net.addresses import without_login
from dragoman.net.errors import NetError
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Probed


class Looking:
    """Looks at agents, and keeps the credentials that their owners bring."""

    def __init__(
        self, *, wire: Wire, clock: Clock, dialects: Mapping[str, Dialect], credentials: Proof, keeper: Keeper | None
    ) -> None:
        self._wire = wire
        self._clock = clock
        self._dialects = dialects
        self._credentials = credentials
        self._keeper = keeper  # of what owners store, where there are owners

    async def examine(
        self,
        url: str,
        dialect: str | None = None,
        *,
        credentials: JsonObject | None = None,
        agent: Agent | None = None,
    ) -> Probed:
        """The card at a URL, with the endpoints that really answer. Raises BadParams."""
        if dialect is not None and dialect not in self._dialects:
            raise BadParams(
                f"dialect: unknown, {dialect!r}; there are: {', '.join(self._dialects)}",
                errors=[{"path": "dialect", "message": "unknown"}],
            )
        dialect = dialect or self._introduced_by(agent)
        shown = await self._shown_at(url, credentials, agent)
        own = origin_of(url)

        async def fetch(request: HttpRequest, deadline: float) -> HttpReply:
            return await self._wire.fetch(request, deadline, shown.identity if origin_of(request.url) == own else None)

        examined = await look(
            url, fetch=fetch, dialects=self._dialects, clock=self._clock, named=dialect, credentials=shown.headers
        )
        found = examined.found
        return Probed(
            card=examined_card(examined),
            probe=document(examined),
            found_at=None if found is None else found.url,
            body=None if found is None else found.raw,
            introduced=dialect is not None and self._dialects[dialect].introduce is not None,
        )

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        try:
            await self._wire.check(url)
        except NetError as error:
            shown = without_login(url)[:200]
            raise BadParams(f"{shown}: {error}", errors=[{"path": "url", "message": str(error)}]) from None

    async def keep_credentials(self, agent: Agent, credentials: JsonObject) -> None:
        """Store how the hub authenticates to an agent. Raises BadParams."""
        await self._kept_by().keep(agent, credentials)

    def _introduced_by(self, agent: Agent | None) -> str | None:
        """The dialect of an agent that has no card of its own to be found again."""
        spoken = () if agent is None else [self._dialects.get(each.dialect) for each in agent.card.endpoints]
        return next((each.slug for each in spoken if each is not None and each.introduce is not None), None)

    async def _shown_at(self, url: str, given: JsonObject | None, agent: Agent | None) -> Shown:
        """What an agent is shown that is looked at: what its owner brings, or stored for this address."""
        if given is not None:
            return await self._kept_by().given(given, url)
        if agent is None:
            return Shown()
        try:
            await self._credentials.ready(agent)
            headers = self._credentials.shown(agent, url, subject=agent.owner_id, chain=(), by_hub=False)
        except AgentUnavailable:
            return Shown()  # It is looked at without: its owner learns elsewhere that the credential does not serve.
        return Shown(headers=headers, identity=self._credentials.identities.get(agent.uuid))

    def _kept_by(self) -> Keeper:
        if self._keeper is None:
            raise NotSupported("Nobody stores credentials here.")
        return self._keeper
