"""A caller says how good an ended call was; the agent's rating is worked out anew.

Not its agent's owner, who would praise it, save where the hub's operator is asked to be trusted with everything.
"""

from datetime import datetime

from dragoman.hub.registry import Registry
from dragoman.hub.tasks import TaskBook
from dragoman.model.answers import Rated
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound, Conflict, NotAuthorized, NotSupported, TaskNotFound
from dragoman.model.operations import RateTask
from dragoman.ports.store import Rating, Ratings


async def rate(
    caller: Caller, asked: RateTask, at: datetime, *, tasks: TaskBook, registry: Registry, store: Ratings
) -> Rated:
    """Keep what the caller says of a call of its own, in place of what it said before.

    Raises TaskNotFound, Conflict for a call that has not ended, NotAuthorized, AgentNotFound for one that is gone.
    """
    task = await tasks.load(caller, asked.task_id)
    # An administrator sees everybody's calls, but speaks for nobody else.
    if task.caller_id != caller.id:
        raise TaskNotFound(f"There is no call or task {asked.task_id!r}.", call_id=asked.task_id)
    if task.asked.then:
        raise NotSupported(f"{task.id} went to several agents: rate its steps.", call_id=task.id, reason="has_steps")
    if not task.ended:
        raise Conflict(f"{task.id} has not ended yet.", call_id=task.id, reason="not_ended", state=task.state.value)
    agent = await registry.resolve(caller, task.agent_id)
    if not caller.admin and (agent.owner_id == caller.id or agent.id == caller.agent_id):
        raise NotAuthorized(f"{agent.id} is your own: others rate it.", reason="own_agent")
    rating = Rating(
        tenant=agent.tenant,
        agent_id=agent.id,
        task_id=task.id,
        stars=asked.rating,
        comment=asked.comment,
        rated_at=at,
    )
    rated = await store.rate(rating)
    if rated is None:
        raise AgentNotFound(f"There is no agent {agent.id!r}.", agent_id=agent.id)
    return Rated(task_id=task.id, stars=asked.rating, comment=asked.comment, agent=rated)
