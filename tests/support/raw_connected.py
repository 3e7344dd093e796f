"""An agent that connects out, in plain HTTP and words of its own: none of the hub's code, none of the SDK's.

A `RawSession` is one session, driven step by step by a test; `echoing` is an agent in a thread that does as it is told.
"""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from dragoman.model.json import is_object
from tests.support.hub import HubProcess, Reply
from tests.support.speaking import FAILURE, QUESTION, wish_of
from tests.support.sse_client import SseItem, SseStream, sse
from tests.support.telling import FIRST, SECOND

CONNECT: Final = "/v1/agents/connect"
PATIENCE_S: Final = 20.0

T = TypeVar("T")
Event = tuple[str, dict[str, Any]]


def card(agent_id: str, *skills: Mapping[str, Any]) -> dict[str, Any]:
    """A platform card without an endpoint."""
    open_skill = {"name": "echo", "description": "Says it again", "input_schema": {"type": "object"}}
    return {
        "id": agent_id,
        "name": "Connected",
        "description": "Connects out.",
        "version": "1.0.0",
        "skills": list(skills) or [open_skill],
    }


class RawSession:
    """One session of an agent."""

    def __init__(self, hub: HubProcess, answer: Mapping[str, Any], token: str) -> None:
        self._hub = hub
        self.answer = answer
        self.id: str = answer["session_id"]
        self.agent_id: str = answer["agent_id"]
        self.token = token
        self.received = 0
        self._numbers: dict[tuple[str, int], int] = {}

    @contextlib.contextmanager
    def frames(self, after: int | None = None) -> Generator["Frames"]:
        """The session's stream, for the block."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        with sse(f"{self._hub.url}{CONNECT}?session={self.id}", headers=headers, patience_s=PATIENCE_S) as stream:
            yield Frames(self, stream)

    def tell(self, call: Mapping[str, Any], *events: Event, attempt: int | None = None) -> int:
        """Tell events of a call, numbered on; what is acknowledged."""
        reply = self.post(call, *events, attempt=attempt)
        assert reply.status == 200, reply.body
        acked: int = reply.json["acked"]
        return acked

    def post(
        self, call: Mapping[str, Any], *events: Event, attempt: int | None = None, first: int | None = None
    ) -> Reply:
        """Tell events of a call, numbered on or from `first`; the hub's answer."""
        key = (call["call_id"], call["attempt"] if attempt is None else attempt)
        at = self._numbers.get(key, 0) + 1 if first is None else first
        self._numbers[key] = at + len(events) - 1
        told = [{"n": n, "event": name, "data": data} for n, (name, data) in enumerate(events, at)]
        return self.raw(call["call_id"], {"session_id": self.id, "attempt": key[1], "events": told})

    def raw(self, call_id: str, body: Any) -> Reply:
        """Whatever it may be, as what is told of a call."""
        return self._hub.post(f"/v1/agents/calls/{call_id}/events", body, token=self.token)

    def beat(self, **more: Any) -> Reply:
        """A heartbeat."""
        body = {"agent_id": self.agent_id, "session_id": self.id, "received": self.received, **more}
        return self._hub.post(CONNECT, body, token=self.token)

    def leave(self) -> Reply:
        """End the session."""
        return self._hub.request("DELETE", f"{CONNECT}?session={self.id}", token=self.token)


class Frames:
    """What the hub says on one stream of a session."""

    def __init__(self, session: RawSession, stream: SseStream) -> None:
        self._session = session
        self.stream = stream
        self._items = iter(stream)
        if stream.status == 200:
            hello = next(self._items)
            assert (hello.name, hello.data["session_id"]) == ("hello", session.id)

    def next(self, name: str) -> dict[str, Any]:
        """The data of the next frame, which has that name."""
        item = self.take()
        assert item.name == name, item
        data: dict[str, Any] = item.data
        return data

    def take(self) -> SseItem:
        """The next frame."""
        item = next(self._items)
        if item.id:
            self._session.received = max(self._session.received, int(item.id))
        return item

    def __iter__(self) -> Iterator[SseItem]:
        """The frames to the end of the stream."""
        return self._items


def connect(hub: HubProcess, agent_id: str, token: str = "", **hello: Any) -> RawSession:
    """A session of an agent, which is registered with it."""
    reply = hub.post(CONNECT, {"agent_id": agent_id, "card": card(agent_id), **hello}, token=token)
    assert reply.status == 200, reply.body
    return RawSession(hub, reply.json, reply.json["token"])


@contextlib.contextmanager
def calling() -> Generator["Callers"]:
    """Callers in threads, for the block."""
    with ThreadPoolExecutor(16) as pool:
        yield Callers(pool)


class Callers:
    """Calls that wait for their answers beside the test."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def call(self, hub: HubProcess, agent_id: str, input: Any, **more: Any) -> Future[Reply]:
        """A platform call."""
        return self.submit(hub.call, "echo", input, agent_id, **more)

    def submit(self, work: Callable[..., T], *args: Any, **more: Any) -> Future[T]:
        """Anything that takes a while."""
        return self._pool.submit(work, *args, **more)


class Echoing:
    """An agent in a thread: it repeats what it is sent, or does what a text asks of it."""

    def __init__(self, session: RawSession) -> None:
        self.session = session
        self.calls: list[dict[str, Any]] = []
        self.arrived = threading.Event()  # a call that takes its time
        self.cancelled = threading.Event()
        self.go = threading.Event()  # lets it go on with what it tells

    def serve(self, frames: Frames) -> None:
        """Answer until the stream ends."""
        for item in frames:
            if item.name == "call":
                self.calls.append(item.data)
                self._answer(item.data)
            elif item.name == "input":
                self._complete(item.data, item.data["message"]["parts"])
            elif item.name == "cancel":
                self.cancelled.set()

    def _answer(self, call: dict[str, Any]) -> None:
        parts = call["message"]["parts"]
        text = "".join(_text(part) for part in parts)
        if text == "tell":
            self._tell(call, ("start", {}), ("chunk", {"content": FIRST}))
            self.go.wait(PATIENCE_S)
            self._tell(call, ("chunk", {"content": SECOND}), ("complete", {"status": "completed"}))
            return
        match wish_of(text):
            case "fail":
                self._tell(call, ("start", {}), ("error", {"code": "BROKEN", "message": FAILURE}))
            case "reject":
                self._tell(call, ("rejected", {"message": FAILURE}))
            case "ask":
                self._tell(call, ("start", {}), ("ask", {"ask": 0, "prompt": QUESTION}))
            case "slow":
                self._tell(call, ("start", {}))
                self.arrived.set()
            case _:
                self._complete(call, parts)

    def _complete(self, call: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        made = {"id": "answer", "parts": parts, "last": True}
        self._tell(call, ("artifact", made), ("complete", {"status": "completed"}))

    def _tell(self, call: dict[str, Any], *events: Event) -> None:
        reply = self.session.post(call, *events)
        assert reply.status in (200, 410), reply.body  # It may have been cancelled meanwhile.


@contextlib.contextmanager
def echoing(hub: HubProcess, agent_id: str) -> Generator[Echoing]:
    """An agent that answers by itself, for the block."""
    agent = Echoing(connect(hub, agent_id, capacity=50))
    with agent.session.frames() as frames:
        thread = threading.Thread(target=agent.serve, args=(frames,), daemon=True)
        thread.start()
        yield agent
        agent.session.leave()  # which ends the stream
        thread.join(PATIENCE_S)


def _text(part: Mapping[str, Any]) -> str:
    data: Any = part.get("data")
    return str(part.get("text") or (data.get("text", "") if is_object(data) else ""))
