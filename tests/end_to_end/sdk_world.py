"""Published clients at one hub, and the agents that they stream from, each started when it is first needed."""

from contextlib import ExitStack

from dragoman.dialects.dialect import Dialect
from tests.support.agents.envelope import EnvelopeAgent
from tests.support.hub import HubProcess
from tests.support.matrix import agent_of
from tests.support.sdk_caller import SdkClient
from tests.support.sdk_follower import SdkFollower
from tests.support.telling import Teller, telling_agent


class SdkWorld:
    """One hub, clients and agents as they are needed."""

    def __init__(self, hub: HubProcess, stack: ExitStack) -> None:
        self.hub = hub
        self._stack = stack
        self._followers: dict[tuple[str, int], SdkFollower] = {}
        self._tellers: dict[str, tuple[str, Teller]] = {}
        self._plain: dict[str, str] = {}

    def follower(self, client: SdkClient, number: int = 1) -> SdkFollower:
        """The first, or a further, process of a published client."""
        key = (str(client), number)
        if key not in self._followers:
            self._followers[key] = self._stack.enter_context(SdkFollower(client, self.hub.url))
        return self._followers[key]

    def teller(self, dialect: Dialect) -> tuple[str, Teller]:
        """The id of an agent that says half of its answer and waits, and the agent itself, as new."""
        if dialect.slug not in self._tellers:
            teller = self._stack.enter_context(telling_agent(dialect))
            joined = self.hub.register(teller.card, id=f"teller-{dialect.slug}", dialect=dialect.slug)
            self._tellers[dialect.slug] = (joined["id"], teller)
        name, teller = self._tellers[dialect.slug]
        teller.reset()
        return name, teller

    def plain(self, dialect: Dialect) -> str:
        """The id of an agent that has no streams."""
        if dialect.slug not in self._plain:
            stub = self._stack.enter_context(agent_of(dialect)())
            joined = self.hub.register(stub.card, id=f"plain-{dialect.slug}", dialect=dialect.slug)
            if isinstance(stub, EnvelopeAgent):
                stub.token = joined.get("token", "")
            self._plain[dialect.slug] = joined["id"]
        return self._plain[dialect.slug]
