"""A platform agent that dies and comes back, at the same address: in three ways of being dead."""

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal

from tests.support.platform_agent import echo
from tests.support.ports import free_port
from tests.support.stub_server import StubHandler

Way = Literal["refused", "blackhole", "500"]
WAYS: Final[tuple[Way, ...]] = ("refused", "blackhole", "500")
Answer = tuple[int, dict[str, str], Any]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # Else many callers at once wait a second for their connection.


class MortalAgent:
    """Well at first; `answer` says what it answers while it lives."""

    def __init__(self) -> None:
        self.port: Final = free_port()
        self.arrived = 0
        self.answer: Callable[[dict[str, Any]], Answer] = lambda body: (200, {}, echo(body))
        self._dead: Way | None = None
        self.pause = threading.Event()  # never set: whoever is slow waits for it
        self._over = threading.Event()
        self._server: _Server | None = None
        self._count = threading.Lock()
        self.live()

    def card(self, agent_id: str) -> dict[str, Any]:
        """How it is registered."""
        skill = {"name": "echo", "description": "Says it again", "input_schema": {"type": "object"}}
        return {
            "id": agent_id,
            "name": "Mortal",
            "description": "Dies and comes back",
            "version": "1.0.0",
            "capabilities": {"streaming": False, "a2a": True},
            "skills": [skill],
            "endpoint": f"http://127.0.0.1:{self.port}/a2a",
        }

    def live(self) -> None:
        """Answer from now on."""
        self._dead = None
        if self._server is None:
            self._server = _Server(("127.0.0.1", self.port), _handler(self))
            serve = self._server.serve_forever
            threading.Thread(target=serve, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def die(self, way: Way) -> None:
        """Be dead from now on."""
        self._dead = way
        if way == "refused":
            self.close()

    def close(self) -> None:
        """Take no more connections."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def end(self) -> None:
        """Let go of everybody who still waits."""
        self._over.set()
        self.close()

    def answered(self, body: dict[str, Any]) -> Answer | None:
        """What it says to a request; None: nothing, for as long as it lasts."""
        with self._count:
            self.arrived += 1
        if self._dead == "blackhole":
            self._over.wait(20)
            return None
        return (500, {}, {}) if self._dead == "500" else self.answer(body)


def _handler(agent: MortalAgent) -> type[BaseHTTPRequestHandler]:
    class Handler(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that the server asks for
            body = json.loads(self.read_body() or b"{}")
            # A connection of its own each: one that is kept would outlive the server's death.
            self.close_connection = True
            said: Answer | None = (200, {}, {}) if self.path.endswith("/cancel") else agent.answered(body)
            if said is not None:
                status, headers, answer = said
                with contextlib.suppress(OSError):
                    self.say(status, {**headers, "Connection": "close"}, json.dumps(answer).encode())

    return Handler


@contextlib.contextmanager
def mortal_agent() -> Generator[MortalAgent]:
    """A mortal agent within the block."""
    agent = MortalAgent()
    try:
        yield agent
    finally:
        agent.end()
