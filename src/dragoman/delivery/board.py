"""Who is connected, which calls are where, and which wait: the switchboard's memory, and the rules by which it changes.

Nothing here is awaited, and nothing is said but in frames: whoever waits is roused (`line.py`). How long calls wait is
in `patience.py`.
"""

from collections.abc import Callable, Collection
from typing import Final, final

import msgspec

from dragoman.delivery.crew import Crew
from dragoman.delivery.line import Line
from dragoman.delivery.session import Asking, Claim, Session
from dragoman.dialects.platform.connected import cancel_frame
from dragoman.model.errors import Overloaded, SessionOver
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task

MOST_SESSIONS: Final = 10_000
MOST_OF_ONE: Final = 256  # sessions of one agent
MOST_SEEN: Final = 100_000

Name = tuple[str, str]  # an agent: its tenant and its id


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a session says it has; `n` is the last of its events that was acknowledged."""

    call_id: str
    attempt: int
    n: int = 0


@final
class Board:
    """The sessions of all agents that are connected, and the calls for them."""

    def __init__(self, left_alone: Callable[[Name], None]) -> None:
        self._left_alone = left_alone  # told of an agent whose last session is over
        self.draining = False  # then only what somebody waits for is still given out
        self.sessions: Final[dict[str, Session]] = {}
        self.lines: Final[dict[str, Line]] = {}
        self._crews: dict[Name, Crew] = {}
        self._claims: dict[str, Session] = {}  # by call: who says that it has it
        self._seen: set[Name] = set()

    # -- sessions

    def session(self, session_id: str) -> Session:
        """A session that lasts. Raises SessionOver."""
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionOver(session_id=session_id)
        return session

    def add(self, session: Session) -> None:
        """A new session. Raises Overloaded."""
        name = agent_of(session)
        crew = self.crew(name)
        if len(self.sessions) >= MOST_SESSIONS or len(crew.sessions) >= MOST_OF_ONE:
            self._tidy(name)
            raise Overloaded(f"{session.agent_id} has too many sessions.", retry_after_s=30)
        self.sessions[session.id] = crew.sessions[session.id] = session
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen.add(name)

    def standing(self) -> dict[str, bool]:
        """The agents that have had a session in this life of the hub, by id, and whether they have one."""
        connected = {name for name, crew in self._crews.items() if crew.sessions}
        return {name[1]: name in connected for name in self._seen}

    def was_seen(self, name: Name) -> bool:
        """Whether an agent has had a session in this life of the hub."""
        return name in self._seen

    def end(self, session: Session, *, left: bool) -> None:
        """A session is over; `left`: by its own word, so it has begun nothing of which it has not spoken."""
        if session.over:
            return
        session.close()
        name = agent_of(session)
        crew = self.crew(name)
        del self.sessions[session.id], crew.sessions[session.id]
        self.give_up(session, tuple(session.claims))
        for line in session.answered:
            line.pinned = None
            line.rouse()
        for line in tuple(session.calls.values()):
            known = line.frame and (line.told > 0 if left else session.was_read(line.frame))
            line.lose(begun=line.kept or line.pinned is session or bool(known))
        session.calls.clear()
        if not crew.sessions:
            for line in tuple(crew.waiting.values()):
                line.rouse()
            self._left_alone(name)
        self._tidy(name)

    # -- calls that sessions have already

    def keep(self, session: Session, claimed: Running, stored: Task | None, now: float) -> bool:
        """Whether a session goes on with a call that it says it has; from now on it has it."""
        line = self.lines.get(claimed.call_id)
        if line is not None:
            return self._keep_carried(session, claimed, line)
        if stored is None or stored.ended or stored.agent_id != session.agent_id:
            return False
        # The first attempt is not noted before something was told in it.
        if claimed.attempt != max(stored.attempt, 1) or claimed.call_id in self._claims:
            return False
        if stored.state not in INTERRUPTED and not stored.answered:
            session.claims[stored.id] = Claim(claimed.attempt, now)
            self._claims[stored.id] = session
        elif any(stored.id in other.asking for other in self.crew(agent_of(session)).sessions.values()):
            return False
        else:
            session.remember_asking(stored.id, Asking(claimed.attempt, None))
        return True

    def _keep_carried(self, session: Session, claimed: Running, line: Line) -> bool:
        if line.session is not None or line.attempt != claimed.attempt or agent_of(line) != agent_of(session):
            return False
        if line.continues and line.attempt == line.opened.task.attempt:
            # It asked, and the answer is on its way.
            if line.pinned is not None:
                return False
            session.remember_asking(line.id, Asking(line.attempt, None))
            self._pin(line, session)
        else:
            self._give(line, session, kept=True)
        return True

    def give_up(self, session: Session, call_ids: Collection[str]) -> None:
        """Calls that a session claims are not kept for it any longer."""
        for call_id in call_ids:
            session.give_up(call_id)
            self._claims.pop(call_id, None)

    # -- calls that wait

    def crew(self, name: Name) -> Crew:
        """An agent's sessions, and what waits for them."""
        return self._crews.setdefault(name, Crew())

    def find_again(self, line: Line) -> None:
        """Give the call to the session that has it already; one that was asked about to the session that asked."""
        claimant = self._claims.pop(line.id, None)
        claim = None if claimant is None else claimant.give_up(line.id)
        if claimant is not None and claim is not None and claim.attempt == line.attempt:
            self._give(line, claimant, kept=True)
            return
        for session in self.crew(agent_of(line)).sessions.values() if line.continues else ():
            asking = session.asking.get(line.id)
            if asking is not None and asking.attempt == line.attempt:
                self._pin(line, session)
                return

    def match(self, name: Name) -> None:
        """Give what waits to whoever has room."""
        crew = self._crews.get(name)
        if crew is not None:
            for line, session in crew.match(draining=self.draining):
                self._give(line, session)

    def forget(self, line: Line) -> None:
        """Nobody carries the call any more."""
        if self.lines.get(line.id) is line:
            del self.lines[line.id]
        name, session = agent_of(line), line.session
        self.crew(name).waiting.pop(line.id, None)
        if session is not None:
            if session.calls.pop(line.id, None) is not None and not line.settled:
                session.remember_ended(line.id, line.attempt)
            if self.draining:
                session.drain()
        line.close()
        self.match(name)
        self._tidy(name)

    def cancel(self, task: Task, reason: str) -> None:
        """Tell the session that has a call to stop; one that has not read of it yet never will."""
        crew = self._crews.get((task.tenant, task.agent_id))
        for session in () if crew is None else crew.sessions.values():
            attempt = session.attempt_of(task.id)
            if attempt is None:
                continue
            line = session.calls.pop(task.id, None)
            session.asking.pop(task.id, None)
            session.ended.pop(task.id, None)
            unread = line is not None and not (line.frame and session.was_read(line.frame))
            if line is not None and unread:
                session.has(line.frame)
            if line is None or not unread or line.kept or line.pinned is session:
                session.say("cancel", cancel_frame(task.id, attempt, reason))

    def _pin(self, line: Line, session: Session) -> None:
        line.pinned = session
        session.answered.append(line)
        self.match(agent_of(line))

    def _give(self, line: Line, session: Session, *, kept: bool = False) -> None:
        self.crew(agent_of(line)).waiting.pop(line.id, None)
        line.give(session, kept=kept)

    def _tidy(self, name: Name) -> None:
        if self._crews[name].idle:
            del self._crews[name]


def agent_of(of: Line | Session) -> Name:
    """The agent of a call, or of a session."""
    if isinstance(of, Session):
        return of.tenant, of.agent_id
    return of.opened.task.tenant, of.opened.call.agent.id
