"""Where agents that connect to the hub are received: who may, which card they bring, what they say and are told.

In the objects of the wire, decoded: the page and the WebSocket speak with it over HTTP, an agent that lives in the
hub's own process directly. Docs: `docs/connect.md`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final, TypeVar

import msgspec

from dragoman.delivery.board import Running
from dragoman.delivery.connections import Connections, Standing
from dragoman.delivery.session import FrameReader, Session
from dragoman.dialects.platform.connected import read_connected_card
from dragoman.dialects.platform.connected_events import Told
from dragoman.dialects.times import wire_time
from dragoman.hub.authorize import lacking, may_change
from dragoman.hub.intake import Intake
from dragoman.hub.presence import Presence, connects
from dragoman.hub.registry import Registry
from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.errors import BadParams, NotAuthorized, SessionOver
from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.security.scopes import CALL, RECEIVE, REGISTER
from dragoman.security.tokens import ACCESS_LIFE_S, Signing, mint_access_jwt

MOST_CAPACITY: Final = 1000
MOST_EVENTS: Final = 256  # that are told at once
MOST_RUNNING: Final = 2000
MOST_TOKENS: Final = 10_000  # kept, so that a heartbeat costs no signature
FRESH_S: Final = ACCESS_LIFE_S / 3  # for which a token is given out
DEFAULT_CAPACITY: Final = 10

Shape = TypeVar("Shape")
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Attempt = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class RunningBody(msgspec.Struct, frozen=True, kw_only=True):
    """A call that an agent's process has, and the last of its events that was acknowledged."""

    call_id: Id
    attempt: Attempt
    n: Number = 0


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is opened, or renewed where it names one."""

    agent_id: Id | None = None
    card: JsonObject | None = None
    capacity: Annotated[int, msgspec.Meta(ge=0, le=MOST_CAPACITY)] | None = None
    sdk: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    session_id: Id | None = None
    received: Number | None = None
    running: Annotated[list[RunningBody], msgspec.Meta(max_length=MOST_RUNNING)] | None = None


class ToldEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an agent tells of a call, and its number in this attempt."""

    n: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    event: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    data: JsonObject = {}


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent tells of a call at once."""

    session_id: Id
    attempt: Attempt
    events: Annotated[list[ToldEvent], msgspec.Meta(min_length=1, max_length=MOST_EVENTS)]


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it stands, and a token for the agent's own calls."""

    session_id: str
    agent_id: str
    uuid: str
    heartbeat_s: float
    lease_s: float
    token: str
    token_expires_at: str
    keep: list[str]
    drop: list[str]


class Acked(msgspec.Struct, frozen=True, kw_only=True):
    """The number up to which all that was told of a call is on disk."""

    acked: int


class Desk:
    """Receives the agents of one hub."""

    def __init__(
        self,
        *,
        connections: Connections,
        registry: Registry,
        intake: Intake,
        presence: Presence,
        clock: Clock,
        signing: Signing,
        hub_url: str,
    ) -> None:
        self._connections = connections
        self._registry = registry
        self._intake = intake
        self._presence = presence
        self._clock = clock
        self._signing = signing
        self._hub_url = hub_url
        self._tokens: dict[tuple[str, str, str | None, frozenset[str]], tuple[str, datetime]] = {}

    async def open(self, caller: Caller, hello: JsonObject) -> JsonObject:
        """Open a session or, where one is named, renew it.

        Raises SessionOver, NotAuthorized, AgentNotFound, BadParams, Overloaded.
        """
        said = _read(hello, Hello)
        _require(caller, RECEIVE)
        running = [Running(call_id=each.call_id, attempt=each.attempt, n=each.n) for each in said.running or ()]
        if said.session_id is not None:
            session = self._session(caller, said.session_id)
            agent = await self._agent(caller, session.agent_id)
            if not connects(agent):
                self._connections.leave(session)
                raise SessionOver(f"{agent.id} is called by its URL now.", session_id=session.id)
            standing = self._connections.renewed(session, said.capacity, said.received or 0, running)
            return self._answer(caller, agent, standing)
        agent = await self._agent_of(caller, said)
        capacity = DEFAULT_CAPACITY if said.capacity is None else said.capacity
        standing = await self._connections.open(agent.tenant, agent.id, caller.id, capacity, running)
        await self._presence.came(agent.tenant, agent.id)
        return self._answer(caller, agent, standing)

    def frames(self, caller: Caller, session_id: str, after: int) -> FrameReader:
        """What the hub says to a session, after a number and from now on. Raises SessionOver, NotAuthorized."""
        return self._connections.frames(self._session(caller, session_id), after)

    async def told(self, caller: Caller, call_id: str, telling: JsonObject) -> int:
        """Take what an agent tells of a call; the number up to which all of it is on disk.

        Raises SessionOver, EventGap, StaleAttempt, NotAuthorized, BadParams, Overloaded.
        """
        said = _read(telling, Telling)
        session = self._session(caller, said.session_id)
        return await self._connections.told(session, call_id, said.attempt, _in_order(said.events))

    def forget_tokens(self) -> None:
        """Sign every token anew: the key that signed them must not be trusted any more."""
        self._tokens.clear()

    def leave(self, caller: Caller, session_id: str) -> None:
        """End a session; what it has not begun goes to others. Raises SessionOver, NotAuthorized."""
        self._connections.leave(self._session(caller, session_id, leaving=True))

    async def _agent_of(self, caller: Caller, said: Hello) -> Agent:
        """The agent that opens a session; with the card that it brings."""
        if said.card is not None:
            _require(caller, REGISTER)
            return await self._intake.connect(caller, read_connected_card(said.card, said.agent_id))
        if said.agent_id is None:
            raise BadParams("agent_id: required", errors=[{"path": "agent_id", "message": "required"}])
        agent = await self._agent(caller, said.agent_id)
        if not connects(agent):
            message = f"{agent.id} is called by its URL: send its card to have it called over this connection."
            raise BadParams(message, errors=[{"path": "card", "message": "required"}])
        return agent

    async def _agent(self, caller: Caller, agent_id: str) -> Agent:
        agent = await self._registry.resolve(caller, agent_id)
        if not may_change(caller, agent):
            raise NotAuthorized(f"{agent.id} belongs to another key.", agent_id=agent.id)
        return agent

    def _session(self, caller: Caller, session_id: str, *, leaving: bool = False) -> Session:
        """A session that the caller may use: the one who opened it, its agent, or an administrator.

        Another's looks like one that never was.
        """
        _require(caller, RECEIVE)
        session = self._connections.session(session_id, leaving=leaving)
        own = session.tenant == caller.tenant and (
            caller.id == session.opened_by or caller.agent_id == session.agent_id
        )
        if not own and not caller.admin:
            raise SessionOver(session_id=session_id)
        return session

    def _answer(self, caller: Caller, agent: Agent, standing: Standing) -> JsonObject:
        token, expires = self._token(caller, agent)
        lease_s = self._connections.lease_s
        answer = SessionAnswer(
            session_id=standing.session.id,
            agent_id=agent.id,
            uuid=agent.uuid,
            heartbeat_s=_whole(lease_s / 3),
            lease_s=_whole(lease_s),
            token=token,
            token_expires_at=wire_time(expires),
            keep=list(standing.keep),
            drop=list(standing.drop),
        )
        return msgspec.to_builtins(answer)

    def _token(self, caller: Caller, agent: Agent) -> tuple[str, datetime]:
        """A token for the agent's own calls, with no right that its caller lacks, and when it expires."""
        now, scopes = self._clock.now(), caller.scopes & _AGENT_SCOPES
        wanted = (agent.tenant, agent.id, caller.key_id, scopes)
        kept = self._tokens.get(wanted)
        if kept is not None and 0 <= (now - kept[1]).total_seconds() < FRESH_S:
            return kept[0], kept[1] + timedelta(seconds=ACCESS_LIFE_S)
        token = mint_access_jwt(
            self._signing(now),
            issuer=self._hub_url,
            subject=agent.id,
            tenant=agent.tenant,
            scopes=scopes,
            client_id=caller.key_id,
            agent_id=agent.id,
            now=now,
        )
        self._tokens.pop(wanted, None)
        if len(self._tokens) >= MOST_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[wanted] = (token, now)
        return token, now + timedelta(seconds=ACCESS_LIFE_S)


_AGENT_SCOPES: Final = frozenset({CALL, RECEIVE, REGISTER})


def _require(caller: Caller, scope: str) -> None:
    if scope not in caller.scopes:
        raise lacking(caller, (scope,))


def _in_order(events: Sequence[ToldEvent]) -> list[Told]:
    """The events, which have to follow each other. Raises BadParams."""
    first = events[0].n
    for index, event in enumerate(events):
        if event.n != first + index:
            path = f"events[{index}].n"
            raise BadParams(f"{path}: expected {first + index}", errors=[{"path": path, "message": "out of order"}])
    return [Told(n=event.n, event=event.event, data=event.data) for event in events]


def _read(said: JsonObject, shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(said, shape)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at `")
        path = at.rstrip("`").removeprefix("$").removeprefix(".")
        if message.startswith("Object missing required field `"):
            path, message = f"{path}.{message[31:-1]}".removeprefix("."), "required"
        shown = message.replace("`", "")
        raise BadParams(f"{path}: {shown}" if path else shown, errors=[{"path": path, "message": shown}]) from None


def _whole(seconds: float) -> float:
    return int(seconds) if seconds == int(seconds) else seconds
