"""What changes at a hub: agents come and go, tasks move. Told to whoever watches, each with the time it was seen."""

from datetime import datetime

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.task import Task


class AgentChanged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An agent was registered or changed; without `agent` it can be found no more."""

    at: datetime
    agent_id: str
    agent: Agent | None


class TaskChanged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task has moved on."""

    at: datetime
    task: Task


Change = AgentChanged | TaskChanged
