"""A hub at the other end of a link that does as a test says: it loses, repeats, refuses, forgets."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dragoman.model.json import JsonObject
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.connect.connection import Connection
from dragoman.sdk.connect.links import Frame, Gap, SessionOver, Stale
from dragoman.sdk.errors import HubUnreachable
from tests.contracts.manual_clock import ManualClock

TURNS: Final = 200  # of the loop, in which everything that can happen happens
STEPS: Final = 400


class ScriptedLink:
    """Records what it is told as a hub would; what goes wrong next stands in `opening`, `telling` and `losing`."""

    def __init__(self) -> None:
        self.hellos: list[JsonObject] = []
        self.opening: deque[Exception | JsonObject] = deque()  # of the next openings and heartbeats
        self.telling: deque[Exception] = deque()  # instead of taking what is told
        self.losing = 0  # so many answers, after what was told is on disk
        self.repeating = 0  # so many frames, when a stream is opened again
        self.posts: list[tuple[str, int, int]] = []  # what came: call, attempt, number of events
        self.committed: dict[str, list[tuple[str, Any]]] = {}
        self.attempts: dict[str, int] = {}
        self.over: set[str] = set()  # calls that have ended
        self.streams: list[tuple[str, int]] = []  # that were opened: session, after which frame
        self.left: list[str] = []
        self.closed = False
        self.blocked = asyncio.Event()
        self.blocked.set()  # cleared: nothing that is told is answered
        self._numbers: dict[str, int] = {}
        self._sessions = 0
        self._frames: list[Frame] = []
        self._wake = asyncio.Event()
        self._breaks: deque[Exception | None] = deque()

    # What a test does.

    def say(self, event: str, **data: Any) -> None:
        """Say something to the agent."""
        self._frames.append(Frame(len(self._frames) + 1, event, data))
        self._wake.set()

    def offer(self, call_id: str, skill: str = "echo", *, attempt: int = 1, **more: Any) -> None:
        """Offer a call."""
        self.begin_attempt(call_id, attempt)
        call: JsonObject = {"call_id": call_id, "attempt": attempt, "skill": skill, "input": {}, **more}
        self.say("call", **call)

    def begin_attempt(self, call_id: str, attempt: int) -> None:
        """From now on only that attempt counts."""
        self.attempts[call_id] = attempt
        self._numbers[call_id] = 0

    def break_stream(self, error: Exception | None = None) -> None:
        """End the stream, or let it fail."""
        self._breaks.append(error)
        self._wake.set()

    def end_session(self) -> None:
        """Know the session no more."""
        self._sessions += 1
        self._frames.clear()
        self.break_stream(SessionOver())

    def said(self, call_id: str) -> list[str]:
        """The names of what is on disk of a call."""
        return [event for event, _ in self.committed.get(call_id, [])]

    # What a link does.

    async def open(self, hello: JsonObject) -> JsonObject:
        self.hellos.append(hello)
        answer: JsonObject = {"session_id": f"s{self._sessions}", "heartbeat_s": 10, "lease_s": 30}
        if self.opening:
            given = self.opening.popleft()
            if isinstance(given, Exception):
                raise given
            answer |= given
        if hello.get("session_id", answer["session_id"]) != answer["session_id"]:
            raise SessionOver
        return {"keep": [], "drop": [], **answer}

    async def frames(self, session_id: str, after: int) -> AsyncGenerator[Frame]:
        self.streams.append((session_id, after))
        if session_id != f"s{self._sessions}":
            raise SessionOver
        yield Frame(0, "hello", {"session_id": session_id})
        seen = max(0, after - self.repeating)
        while True:
            for frame in self._frames[seen:]:
                seen += 1
                yield frame
            if self._breaks:
                broken = self._breaks.popleft()
                if broken is None:
                    return
                raise broken
            self._wake.clear()
            await self._wake.wait()

    async def tell(self, session_id: str, call_id: str, attempt: int, events: Sequence[JsonObject]) -> int:
        self.posts.append((call_id, attempt, len(events)))
        await self.blocked.wait()
        if self.telling:
            raise self.telling.popleft()
        if session_id != f"s{self._sessions}":
            raise SessionOver
        if attempt != self.attempts[call_id] or call_id in self.over:
            raise Stale
        for event in events:
            expected = self._numbers[call_id] + 1
            if event["n"] > expected:
                raise Gap(expected)
            if event["n"] == expected:
                self._numbers[call_id] = expected
                self.committed.setdefault(call_id, []).append((event["event"], event["data"]))
        if self.losing:
            self.losing -= 1
            raise HubUnreachable(sent=True)
        return self._numbers[call_id]

    async def leave(self, session_id: str) -> None:
        self.left.append(session_id)

    async def close(self) -> None:
        self.closed = True


class Scripted:
    """An agent connected to a scripted hub, and a clock that moves when nothing else does."""

    def __init__(self, agent: Agent, link: ScriptedLink, clock: ManualClock) -> None:
        self.link = link
        self.clock = clock
        self.connection = Connection(agent, link, clock=clock)
        self.task = asyncio.get_running_loop().create_task(self.connection.run())

    async def until(self, holds: Callable[[], bool], step_s: float = 0.05) -> None:
        """Wait until something holds, while time passes in steps."""
        for _ in range(STEPS):
            await self.settle()
            if holds():
                return
            if self.task.done():
                self.task.result()
            self.clock.advance(step_s)
        raise AssertionError(f"it never held; on disk: {self.link.committed}, posts: {self.link.posts}")

    async def settle(self) -> None:
        """Let everything happen that can happen without time passing."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def pass_s(self, seconds: float) -> None:
        """Let time pass, a little at a time."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            await self.settle()
            self.clock.advance(min(0.5, end - self.clock.monotonic()))
        await self.settle()

    async def stop(self) -> None:
        """Stop it, and see it end."""
        self.connection.stop()
        await self.until(self.task.done)


@contextmanager
def connected(agent: Agent) -> Generator[Scripted]:
    """The agent, connected to a scripted hub."""
    scripted = Scripted(agent, ScriptedLink(), ManualClock())
    try:
        yield scripted
    finally:
        scripted.task.cancel()
