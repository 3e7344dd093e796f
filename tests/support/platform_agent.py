"""A platform agent in a thread of the test: answers what the test says, and keeps what it was sent."""

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
Respond = Callable[[dict[str, Any]], Answer | dict[str, Any]]


class PlatformAgent:
    """What the hub sent, and where it sends it."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.arrived = threading.Event()
        self.cancelled = threading.Event()
        self.release = threading.Event()
        self.endpoint = ""

    def card(self, **more: Any) -> dict[str, Any]:
        """A card for this agent; any field may be given."""
        skill = {"name": "echo", "description": "Says it again", "input_schema": {"type": "object"}}
        return {
            "id": "agt_echo",
            "name": "Echo",
            "description": "Says it again",
            "version": "1.0.0",
            "capabilities": {"streaming": False, "a2a": True, "memory": False},
            "skills": [skill],
            "authentication": {"type": "bearer", "scopes_required": ["a2a:call"]},
            "rate_limits": {"requests_per_minute": 6000, "concurrent_requests": 100},
            "endpoint": self.endpoint,
            **more,
        }


def echo(body: dict[str, Any]) -> dict[str, Any]:
    """The input again, with some usage."""
    return {"status": "completed", "result": body["input"], "usage": {"tokens": 3, "cost_usd": 0.001}}


@contextlib.contextmanager
def platform_agent(respond: Respond = echo, port: int = 0) -> Generator[PlatformAgent]:
    """A platform agent that runs within the block, at any port or at a given one."""
    agent = PlatformAgent(respond)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            body: dict[str, Any] = json.loads(raw or b"{}")
            headers = {name.lower(): value for name, value in self.headers.items()}
            headers["raw-body"] = raw.decode("utf-8", "replace")
            agent.requests.append((self.path, headers, body))
            if self.path.endswith("/cancel"):
                agent.cancelled.set()
                self._say(200, {}, b"{}")
                return
            agent.arrived.set()
            answer = agent.respond(body)
            status, more, said = (
                (200, dict[str, str](), json.dumps(answer).encode()) if isinstance(answer, dict) else answer
            )
            with contextlib.suppress(OSError):
                self._say(status, more, said)

        def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    agent.endpoint = f"http://127.0.0.1:{server.server_address[1]}/a2a"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield agent
    finally:
        agent.release.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
