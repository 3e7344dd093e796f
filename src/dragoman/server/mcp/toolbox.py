"""Which tools there are for a caller, and which skill of which agent a tool is.

A tool's name mostly says it: the agent's id, and the skill. One that had to be cut or changed is found among those that
were listed of late, or by listing them once more; what is remembered for that is bounded.
"""

from collections import OrderedDict
from typing import Final

from dragoman.dialects.mcp.tools import tool_of
from dragoman.hub.authorize import usable
from dragoman.hub.handle import Hub
from dragoman.hub.registry import Registry
from dragoman.model.agent import Agent, AgentStatus, Skill
from dragoman.model.answers import AgentPage
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import AgentNotFound, NotAuthenticated
from dragoman.model.json import JsonObject
from dragoman.model.operations import Discover
from dragoman.model.tool_names import BETWEEN, tool_name
from dragoman.server.mcp.requests import UnknownTool

AGENTS_A_PAGE: Final = 50
MOST_PAGES: Final = 20  # looked through for one name
MOST_KNOWN: Final = 10_000  # names that do not say themselves whose they are


class Toolbox:
    """The tools of one hub."""

    def __init__(self, hub: Hub, registry: Registry) -> None:
        self._hub = hub
        self._registry = registry
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()  # tenant and name → the agent's id

    async def page(self, caller: Caller, cursor: str | None, arrival: Arrival) -> tuple[list[JsonObject], str | None]:
        """Some tools, and where the next page begins. Raises NotAuthenticated, BadParams, Overloaded."""
        found = await self._hub.handle(caller, Discover(limit=AGENTS_A_PAGE, cursor=cursor), arrival)
        assert isinstance(found, AgentPage)  # noqa: S101 - what is asked for
        tools: dict[str, JsonObject] = {}
        for agent in found.agents:
            if agent.status is not AgentStatus.ACTIVE:
                continue
            for skill in usable(caller, agent):
                tool = tool_of(agent, skill)
                name = tool["name"]
                if _agent_in(name) != agent.id:
                    self._remember(caller.tenant, name, agent.id)
                tools.setdefault(name, tool)
        return list(tools.values()), found.cursor

    async def find(self, caller: Caller, name: str, arrival: Arrival) -> tuple[Agent, Skill]:
        """The skill that a tool is. Raises UnknownTool; NotAuthenticated to strangers, whatever there is."""
        for agent_id in (_agent_in(name), self._known.get((caller.tenant, name))):
            found = await self._of(caller, agent_id, name)
            if found is not None:
                return found
        if tool_name(_agent_in(name), name.partition(BETWEEN)[2]) != name:
            cursor: str | None = None
            for _ in range(MOST_PAGES):
                _, cursor = await self.page(caller, cursor, arrival)
                found = await self._of(caller, self._known.get((caller.tenant, name)), name)
                if found is not None:
                    return found
                if cursor is None:
                    break
        if caller.anonymous:
            raise NotAuthenticated
        raise UnknownTool(f"Unknown tool: {name[:128]}. tools/list names those that there are.", tool=name[:128])

    async def _of(self, caller: Caller, agent_id: str | None, name: str) -> tuple[Agent, Skill] | None:
        if not agent_id:
            return None
        try:
            agent = await self._registry.resolve(caller, agent_id)
        except AgentNotFound:
            return None
        if caller.anonymous and (agent.private or not agent.open):
            return None
        skill = next((each for each in agent.card.skills if tool_name(agent.id, each.id) == name), None)
        return None if skill is None else (agent, skill)

    def _remember(self, tenant: str, name: str, agent_id: str) -> None:
        self._known[tenant, name] = agent_id
        self._known.move_to_end((tenant, name))
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


def _agent_in(name: str) -> str:
    """The id that a name begins with; the agent's own, unless the name had to be changed."""
    return name.partition(BETWEEN)[0]
