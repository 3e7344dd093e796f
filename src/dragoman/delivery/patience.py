"""How long a call waits for a session of its agent, and which session may have it. Pure.

was given out by an earlier life   the session that still has it, for a while; then any, or none at all
nobody waits for it                any session, until its deadline; so does one that was given out and lost
somebody waits for it              any session, until its deadline while there is one, else not for long
"""

from typing import Final

import msgspec

from dragoman.delivery.line import Line
from dragoman.model.call import Before
from dragoman.model.errors import AgentTimeout, AgentUnavailable, DragomanError, Interrupted
from dragoman.ports.attempts import AttemptOutcome

PATIENCE_S: Final = 15.0  # how long a call that somebody waits for waits for a session
YOUNG_S: Final = 30.0  # how long after its start the hub expects agents that it has not seen yet
CLAIM_S: Final = 5.0  # after the hub's start: for the process that has a call to come back, before another gets it


class Patience(msgspec.Struct, frozen=True):
    """Until when to wait, and whether any session may have the call; otherwise only one that is known."""

    until: float
    any_session: bool


class Crewed(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the agent: whether it has sessions now, and whether it ever had in this life of the hub."""

    connected: bool
    seen: bool


def patience(line: Line, agent: Crewed, *, now: float, started: float, lease_s: float) -> Patience:
    """How long to wait now. Raises AgentTimeout, AgentUnavailable, Interrupted where there is nothing to wait for."""
    if now >= line.deadline:
        raise timed_out(line)
    if line.pinned is not None:
        return Patience(line.deadline, any_session=False)
    if line.awaited:
        unrepeatable = line.opened.before is Before.UNREPEATABLE
        until = started + (lease_s if unrepeatable else min(CLAIM_S, lease_s))
        if now < until:
            return Patience(min(until, line.deadline), any_session=False)
        if unrepeatable:
            raise Interrupted(reason="interrupted", agent_id=line.opened.call.agent.id)
    if line.accepted or line.attempt or agent.connected:
        line.alone_since = None
        return Patience(line.deadline, any_session=True)
    if line.alone_since is None:
        line.alone_since = now
    until = line.alone_since + PATIENCE_S
    if now >= until or (not agent.seen and now - started > YOUNG_S):
        raise absent(line)
    return Patience(min(until, line.deadline), any_session=True)


def refuse_twice(line: Line) -> None:
    """A call that was lost with its session goes to another, unless it may be begun only once. Raises Interrupted."""
    if line.begun and line.opened.call.operation.at_most_once:
        raise Interrupted(
            "The agent was lost while it had this call; it was not given to it again.",
            reason="interrupted",
            agent_id=line.opened.call.agent.id,
        )


def timed_out(line: Line) -> DragomanError:
    """The call's time is over."""
    call = line.opened.call
    return AgentTimeout(timeout_ms=int(call.timeout_s * 1000), agent_id=call.agent.id)


def absent(line: Line) -> DragomanError:
    """The agent has no session."""
    agent_id = line.opened.call.agent.id
    return AgentUnavailable(f"{agent_id} is not connected.", retry_after_s=5, reason="not_connected", agent_id=agent_id)


def outcome_of(error: DragomanError, line: Line) -> AttemptOutcome:
    """What the agent had to do with an error: it was away, let the time run out, or never had the call."""
    if isinstance(error, AgentUnavailable | Interrupted):
        return AttemptOutcome.UNREACHABLE
    late = isinstance(error, AgentTimeout) and line.session is not None
    return AttemptOutcome.TIMED_OUT if late else AttemptOutcome.DROPPED
