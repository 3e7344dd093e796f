"""Who may do what: one table of scopes per operation, and what a card and a key add to it.

An operation without a line here cannot be reached.
"""

from collections.abc import Mapping
from typing import Final

from dragoman.model.agent import Agent, Skill
from dragoman.model.call import Caller
from dragoman.model.errors import NotAuthenticated, NotAuthorized
from dragoman.model.operations import (
    CancelTask,
    ChangeAgent,
    DeleteCallback,
    Discover,
    FollowTask,
    GetCallback,
    GetCard,
    GetTask,
    ListCallbacks,
    ListTasks,
    ListVersions,
    Operation,
    Ping,
    RateTask,
    ReadMail,
    RegisterAgent,
    ReportTask,
    SendTask,
    SetCallback,
    Signed,
    Unreadable,
    WatchChanges,
)
from dragoman.security.scopes import ADMIN, CALL, RECEIVE, REGISTER, allows

# None: any authenticated caller.
NEEDED: Final[Mapping[type[Operation], str | None]] = {
    SendTask: CALL,
    GetTask: CALL,
    ListTasks: CALL,
    CancelTask: CALL,
    FollowTask: CALL,
    WatchChanges: CALL,
    RateTask: CALL,
    SetCallback: CALL,
    GetCallback: CALL,
    ListCallbacks: CALL,
    DeleteCallback: CALL,
    ReportTask: RECEIVE,
    ReadMail: CALL,
    RegisterAgent: REGISTER,
    ChangeAgent: REGISTER,
    Discover: None,
    GetCard: None,
    ListVersions: None,
    Ping: None,
    Signed: None,  # what is asked in it is looked at in its turn
    Unreadable: None,
}
# What a caller without a credential may try; each of them looks at the agent before it answers.
ANONYMOUS_MAY: Final = frozenset({SendTask, GetTask, CancelTask, FollowTask, Discover})


def authorize(caller: Caller, operation: Operation) -> None:
    """Let the caller ask for this at all.

    Raises NotAuthenticated, NotAuthorized.
    """
    if caller.anonymous:
        # At an agent's own place strangers learn how to call it, and with what credential.
        public = isinstance(operation, GetCard) and operation.public
        if not public and type(operation) not in ANONYMOUS_MAY:
            raise NotAuthenticated
        return
    try:
        need = NEEDED[type(operation)]
    except KeyError:
        raise NotAuthorized("Nobody may do that here.") from None
    if need is None or need in caller.scopes:
        return
    if isinstance(operation, ReportTask) and operation.cancels and CALL in caller.scopes:
        return  # Whoever gave a task may take it back.
    raise lacking(caller, (need,))


def authorize_call(caller: Caller, agent: Agent, skill: Skill | None) -> None:
    """Let the caller use this skill of this agent.

    Raises NotAuthenticated, NotAuthorized.
    """
    if caller.anonymous:
        if agent.open and not agent.private:
            return
        raise NotAuthenticated
    wanted = agent.card.scopes_required + (skill.scopes if skill else ())
    if wanted:
        missing = tuple(scope for scope in wanted if scope not in caller.scopes)
        if missing:
            raise lacking(caller, missing)
    if caller.allow and not allows(caller.allow, agent.id, skill.id if skill else None):
        raise NotAuthorized(
            f"This key may not use {skill.id if skill else 'this skill'} of {agent.id}.", allowed=list(caller.allow)
        )


def usable(caller: Caller, agent: Agent) -> tuple[Skill, ...]:
    """The skills of an agent that the caller may call."""
    return tuple(skill for skill in agent.card.skills if _may_call(caller, agent, skill))


def may_change(caller: Caller, agent: Agent) -> bool:
    """Whether an agent is the caller's to change: its owner's, its own, or an administrator's."""
    if agent.tenant != caller.tenant and not caller.admin:
        return False
    return caller.admin or ADMIN in caller.scopes or agent.owner_id == caller.id or agent.id == caller.agent_id


def _may_call(caller: Caller, agent: Agent, skill: Skill) -> bool:
    if not caller.anonymous and CALL not in caller.scopes:
        return False
    try:
        authorize_call(caller, agent, skill)
    except (NotAuthenticated, NotAuthorized):
        return False
    return True


def lacking(caller: Caller, scopes: tuple[str, ...]) -> NotAuthorized:
    """The refusal that names the missing scope and those there are."""
    has = ", ".join(sorted(caller.scopes)) or "none"
    return NotAuthorized(
        f"This key lacks the scope {', '.join(scopes)} (it has {has}).",
        missing=list(scopes),
        scopes=sorted(caller.scopes),
    )
