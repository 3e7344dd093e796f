"""An agent of A2A 1.0 that streams what the test tells it to, when the test says so, in either framing.

JSON-RPC is at `/`, HTTP with paths below it. Whatever asks for a stream waits in `calls`; what is not a stream is
answered at once: a look at a task with what the test put into `tasks`, a plain send with a finished echo.
"""

import contextlib
import json
import queue
import threading
from collections.abc import Generator
from typing import Any, Final
from urllib.parse import unquote

from tests.support.agents.a2a_v10 import card_of
from tests.support.stub_server import StubHandler, on_free_port

PATIENCE_S: Final = 30.0
TASK: Final = "remote:1"
CONTEXT: Final = "remote-context"


class Stream10:
    """One request for a stream: the test says what happens in it."""

    def __init__(self, method: str, verb: str, params: dict[str, Any], headers: dict[str, str], frame: Any) -> None:
        self.method = method
        self.verb = verb
        self.params = params
        self.headers = headers
        self.left = threading.Event()
        self._frame = frame
        self._events: queue.Queue[Any] = queue.Queue(10_000)

    def say(self, *objects: dict[str, Any]) -> None:
        """Send StreamResponses."""
        for each in objects:
            self._events.put(each)

    def task(self, state: str = "SUBMITTED", **more: Any) -> None:
        """Send the whole task."""
        self.say({"task": task10(state, **more)})

    def status(self, state: str, text: str = "") -> None:
        """Send a change of status."""
        said = {"messageId": "said", "role": "ROLE_AGENT", "parts": [{"text": text}]}
        status = {"state": f"TASK_STATE_{state}"} | ({"message": said} if text else {})
        self.say({"statusUpdate": {"taskId": TASK, "contextId": CONTEXT, "status": status}})

    def made(self, text: str, *, append: bool = False, last: bool = False) -> None:
        """Send a piece of an artifact."""
        artifact = {"artifactId": "made", "parts": [{"text": text}]}
        about = {"taskId": TASK, "contextId": CONTEXT, "artifact": artifact}
        self.say({"artifactUpdate": {**about, "append": append, "lastChunk": last}})

    def hang_up(self) -> None:
        """End the answer."""
        self._events.put(None)

    def frames(self) -> Generator[bytes]:
        """What is sent, as it comes."""
        while (said := self._events.get(timeout=PATIENCE_S)) is not None:
            framed = said if self._frame is None else {**self._frame, "result": said}
            yield f"data: {json.dumps(framed)}\n\n".encode()


class Streaming10Agent:
    """Where it is, what it was asked, and how it behaves."""

    def __init__(self) -> None:
        self.url = ""
        self.card: dict[str, Any] = {}
        self.calls: queue.Queue[Stream10] = queue.Queue(1000)
        self.asked: list[str] = []  # the operation of every request, in order
        self.tasks: dict[str, dict[str, Any]] = {}
        self.streams = True  # else the operations that stream are unknown to it
        self.subscribes_by = {"POST", "GET"}

    def next_call(self, method: str = "SendStreamingMessage") -> Stream10:
        """The next stream that is asked for."""
        call = self.calls.get(timeout=PATIENCE_S)
        assert call.method == method, call.method
        return call

    def plain(self, method: str, params: dict[str, Any]) -> tuple[int, Any]:
        """The answer to what asks for no stream: a JSON-RPC error code (0 where there is none), and the result."""
        if method == "SendMessage":
            parts = params["message"]["parts"]
            done = task10("COMPLETED", artifacts=[{"artifactId": "echo", "parts": parts}])
            return 0, {"task": done}
        if method == "GetTask":
            found = self.tasks.get(params["id"])
            return (-32001, None) if found is None else (0, found)
        return -32601, None


def task10(state: str, **more: Any) -> dict[str, Any]:
    """The agent's one task."""
    return {"id": TASK, "contextId": CONTEXT, "status": {"state": f"TASK_STATE_{state}"}, **more}


class Handler(StubHandler):
    """Serves one agent."""

    agent: Streaming10Agent

    def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
        """JSON-RPC at the root, a path elsewhere."""
        body: Any = json.loads(self.read_body() or b"{}")
        if self.path != "/":
            self._by_path(body)
            return
        frame = {"jsonrpc": "2.0", "id": body["id"]}
        self._serve(body["method"], body.get("params") or {}, frame)

    def do_GET(self) -> None:  # noqa: N802 - the name the parent calls
        """The card, or a path."""
        if self.path == "/.well-known/agent-card.json":
            self.say_json(200, self.agent.card)
        else:
            self._by_path({})

    def _by_path(self, body: dict[str, Any]) -> None:
        last = unquote(self.path.rpartition("/")[2])
        name, _, verb = last.rpartition(":")
        if last.startswith("message:"):
            self._serve({"send": "SendMessage", "stream": "SendStreamingMessage"}[verb], body, None)
        elif verb == "subscribe" and self.command not in self.agent.subscribes_by:
            self.say_json(405, {})
        elif verb == "subscribe":
            self._serve("SubscribeToTask", {"id": name}, None)
        else:
            self._serve("GetTask", {"id": last}, None)

    def _serve(self, method: str, params: dict[str, Any], frame: dict[str, Any] | None) -> None:
        self.agent.asked.append(method)
        if self.agent.streams and method in ("SendStreamingMessage", "SubscribeToTask"):
            self._stream(method, params, frame)
            return
        code, result = self.agent.plain(method, params)
        if frame is not None:
            error = {"code": code, "message": "no"}
            self.say_json(200, {**frame, "error": error} if code else {**frame, "result": result})
        else:
            self.say_json(404 if code else 200, {"error": {"code": 404, "message": "no"}} if code else result)

    def _stream(self, method: str, params: dict[str, Any], frame: dict[str, Any] | None) -> None:
        call = Stream10(method, self.command, params, self.read_headers(), frame)
        self.begin_stream()
        self.agent.calls.put(call)
        try:
            for piece in call.frames():
                self.wfile.write(piece)
        except (OSError, queue.Empty):
            call.left.set()


@contextlib.contextmanager
def streaming10(*bindings: str, name: str = "Teller 1.0") -> Generator[Streaming10Agent]:
    """Such an agent, running within the block; its card lists these framings, JSON-RPC alone where none is named."""
    agent = Streaming10Agent()
    with on_free_port(type("Bound", (Handler,), {"agent": agent})) as agent.url:
        agent.card = card_of(name, agent.url, bindings or ("JSONRPC",))
        agent.card["capabilities"]["streaming"] = True
        yield agent
