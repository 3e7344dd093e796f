"""Bugs in how calls go to agents that connect: each breaks a promise that killed agents and hubs are held to."""

from dragoman.delivery.board import Board
from dragoman.delivery.line import Line
from dragoman.delivery.session import Session
from dragoman.model.json import JsonObject
from tests.support.planting import put_in_place


def lost_calls_not_offered(_: int) -> None:
    """What a session had begun when it was lost is offered to nobody."""
    lose = Line.lose

    def keep(line: Line, *, begun: bool) -> None:
        if not begun:
            lose(line, begun=begun)

    put_in_place(Line, "lose", keep)


def given_to_two_sessions(_: int) -> None:
    """A call goes to every session of its agent."""
    say = Session.say
    init = Session.__init__
    sessions: list[Session] = []

    def known(session: Session, **settings: object) -> None:
        init(session, **settings)  # pyright: ignore[reportArgumentType] - whatever they are, they are handed on
        sessions.append(session)

    def say_to_all(session: Session, event: str, data: JsonObject) -> int:
        for other in sessions if event == "call" else ():
            if other is not session and other.agent_id == session.agent_id and not other.over:
                say(other, event, data)
        return say(session, event, data)

    put_in_place(Session, "__init__", known)
    put_in_place(Session, "say", say_to_all)


def running_calls_dropped(_: int) -> None:
    """A session that comes back keeps nothing of what it has."""

    def nothing(*_: object) -> bool:
        return False

    put_in_place(Board, "keep", nothing)
