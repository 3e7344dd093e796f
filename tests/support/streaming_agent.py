"""A platform agent that streams what the test tells it to, when the test says so."""

import contextlib
import json
import queue
import threading
from collections.abc import Generator
from typing import Any, Final

from tests.support.stub_server import StubHandler, on_free_port

PATIENCE_S: Final = 30.0
_HANG_UP: Final = ("", None)


class StreamedCall:
    """One call that the agent was sent: the test says what happens in it."""

    def __init__(self, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.body = body
        self.headers = headers
        self.left = threading.Event()
        self._events: queue.Queue[tuple[str, Any]] = queue.Queue(10_000)

    def say(self, name: str, data: Any) -> None:
        """Send an event."""
        self._events.put((name, data))

    def chunks(self, *texts: str) -> None:
        """Send pieces of the answer."""
        for text in texts:
            self.say("chunk", {"content": text})

    def complete(self, result: Any = None, **more: Any) -> None:
        """End the call well."""
        self.say("complete", {"status": "completed", **({} if result is None else {"result": result}), **more})
        self.hang_up()

    def hang_up(self) -> None:
        """End the answer."""
        self._events.put(_HANG_UP)

    def frames(self) -> Generator[bytes]:
        """What is sent, as it comes."""
        while True:
            name, data = self._events.get(timeout=PATIENCE_S)
            if (name, data) == _HANG_UP:
                return
            yield f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


class StreamingAgent:
    """Where it is, and the calls it was sent, in order."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.calls: queue.Queue[StreamedCall] = queue.Queue(1000)
        self.cancelled = threading.Event()

    def next_call(self) -> StreamedCall:
        """The next call that arrives."""
        return self.calls.get(timeout=PATIENCE_S)

    def card(self, agent_id: str, **more: Any) -> dict[str, Any]:
        """Its card."""
        return {
            "id": agent_id,
            "name": agent_id,
            "description": "Streams",
            "version": "1.0.0",
            "capabilities": {"streaming": True, "a2a": True, "memory": False},
            "skills": [{"name": "tell", "description": "Tells", "input_schema": {"type": "object"}}],
            "authentication": {"type": "bearer", "scopes_required": ["a2a:call"]},
            "rate_limits": {"requests_per_minute": 60000, "concurrent_requests": 1000},
            "endpoint": self.endpoint,
            **more,
        }


@contextlib.contextmanager
def streaming_agent() -> Generator[StreamingAgent]:
    """A streaming agent that runs within the block."""
    agent = StreamingAgent()

    class Handler(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
            body: dict[str, Any] = json.loads(self.read_body() or b"{}")
            if self.path.endswith("/cancel"):
                agent.cancelled.set()
                self.send_response(204)
                self.end_headers()
                return
            call = StreamedCall(body, self.read_headers())
            self.begin_stream()
            agent.calls.put(call)
            try:
                for frame in call.frames():
                    self.wfile.write(frame)
            except (OSError, queue.Empty):
                call.left.set()

    with on_free_port(Handler) as url:
        agent.endpoint = f"{url}/a2a"
        yield agent
