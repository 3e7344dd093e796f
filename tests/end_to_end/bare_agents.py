"""Agents without any SDK: a few bytes on a socket, said exactly as the test wants them said."""

import contextlib
import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Said = tuple[int, dict[str, str], bytes]
Answer = Callable[[dict[str, Any]], Said | dict[str, Any] | None]


class BareAgent:
    """What was asked of it, and where it is asked."""

    def __init__(self, url: str, answer: Answer) -> None:
        self.url = url
        self.answer = answer
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.asked: list[dict[str, Any]] = []
        self.cancelled = threading.Event()
        self.release = threading.Event()

    def official_card(self, **more: Any) -> dict[str, Any]:
        """A small card of A2A 1.0 for this agent."""
        interface = {"url": self.url + "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        skills = [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["chat"]}]
        return {"name": "Bare", "version": "1.0.0", "supportedInterfaces": [interface], "skills": skills, **more}


def result(value: object) -> dict[str, Any]:
    """A JSON-RPC answer; its id is filled in."""
    return {"jsonrpc": "2.0", "id": None, "result": value}


def failure(code: int, message: str, **more: Any) -> dict[str, Any]:
    """A JSON-RPC error; its id is filled in."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message, **more}}


def task(state: str, **more: Any) -> dict[str, Any]:
    """A task of A2A 1.0, by the ids this agent gives its tasks."""
    return {"id": "their-task", "contextId": "their-context", "status": {"state": state}, **more}


@contextlib.contextmanager
def bare_agent(answer: Answer) -> Generator[BareAgent]:
    """Serve until the block ends. `answer` gives JSON (its `id` is the request's), bytes, or nothing at all."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            agent.paths.append(self.path)
            agent.headers.append({name.lower(): value for name, value in self.headers.items()})
            agent.asked.append(asked)
            said = agent.answer(asked)
            if said is None:
                agent.release.wait(20)
                self.close_connection = True
            elif isinstance(said, dict):
                framed = {**said, "id": asked.get("id")} if "jsonrpc" in said else said
                self._say(200, {}, json.dumps(framed).encode())
            else:
                self._say(*said)
            if "cancel" in self.path or asked.get("method") == "CancelTask":
                agent.cancelled.set()

        def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    agent = BareAgent(f"http://127.0.0.1:{server.server_address[1]}", answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield agent
    finally:
        agent.release.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
