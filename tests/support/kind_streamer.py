"""An agent of A2A 0.3 (in either framing) or of dotted that streams what the test tells it to, when the test says so.

    call = agent.next_call();  call.task("working");  call.piece("High ");  call.done()

Each request for a stream, be it to send or to listen again, is one call. What it says is the same on every wire; how it
is spelled is not. Another answer than a stream stands in `agent.instead`.
"""

import contextlib
import json
import queue
import threading
from collections.abc import Generator
from typing import Any, Final

from tests.support.stub_server import StubHandler, on_free_port

V03, REST, DOTTED = "a2a-0.3", "a2a-0.3-http", "dotted"
AT: Final = "2026-01-12T10:00:00Z"
T, C, A = "remote-1", "remote-context-1", "artifact-1"
PATIENCE_S: Final = 30.0
METHODS: Final = {
    "message/send": "send",
    "message.send": "send",
    "message/stream": "stream",
    "message.stream": "stream",
    "tasks/resubscribe": "subscribe",
    "tasks/get": "get",
    "task.get": "get",
    "tasks/cancel": "cancel",
    "task.cancel": "cancel",
}
Said = dict[str, Any]


class KindCall:
    """One stream that the agent was asked for: the test says what happens in it."""

    def __init__(self, agent: "KindStreamer", verb: str, method: str, body: Any) -> None:
        self.verb = verb
        self.method = method  # of JSON-RPC, or of HTTP
        self.body = body
        self._agent = agent
        self._frames: queue.Queue[Said | None] = queue.Queue(1000)

    def task(self, state: str, *, text: str | None = None) -> None:
        """The whole task, with all of its answer if there is any."""
        self._frames.put(self._agent.task(state, text))

    def status(self, state: str, words: str | None = None) -> None:
        """A change of state."""
        final = state not in ("submitted", "working")
        status = self._agent.status(state, words)
        self._say("status-update", {"taskId": T, "contextId": C, "status": status, "final": final})

    def piece(self, text: str, *, append: bool = False, last: bool = False) -> None:
        """A piece of the answer."""
        artifact = {"artifactId": A, "name": "tides", "parts": [self._agent.part(text)]}
        more = {"artifact": artifact, "append": append, "lastChunk": last}
        self._say("artifact-update", {"taskId": T, "contextId": C, **more})

    def done(self, state: str = "completed", words: str | None = None) -> None:
        """The last change of state, and the end."""
        self.status(state, words)
        self.hang_up()

    def hang_up(self) -> None:
        """End the answer."""
        self._frames.put(None)

    def _say(self, kind: str, event: Said) -> None:
        name = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}[kind]
        self._frames.put({name: event} if self._agent.wire == REST else {"kind": kind, **event})

    def frames(self) -> Generator[bytes]:
        """What is sent, as it comes."""
        while (shown := self._frames.get(timeout=PATIENCE_S)) is not None:
            framed = shown if self._agent.wire == REST else {"jsonrpc": "2.0", "id": self.body["id"], "result": shown}
            yield f"data: {json.dumps(framed)}\n\n".encode()


class KindStreamer:
    """Where it is, and the streams it was asked for, in order."""

    def __init__(self, wire: str) -> None:
        self.wire = wire
        self.url = ""
        self.calls: queue.Queue[KindCall] = queue.Queue(1000)
        self.asked: list[str] = []  # the verbs
        self.instead: dict[str, tuple[int, Said]] = {}  # by verb: an answer that is no stream
        self.cancelled = threading.Event()
        self.methods = frozenset(METHODS)  # of JSON-RPC, that it knows

    def next_call(self) -> KindCall:
        """The next stream it is asked for."""
        return self.calls.get(timeout=PATIENCE_S)

    def card(self, name: str) -> Said:
        """Its card: it says that it streams."""
        skill = {"id": "tell", "name": "Tell", "description": "Tells", "tags": ["test"]}
        shared: Said = {"name": name, "description": "Streams", "version": "1.0.0", "url": f"{self.url}/"}
        if self.wire == DOTTED:
            modes = {"inputModes": ["text"], "outputModes": ["text"], "examples": ["x"]}
            capabilities = {"streaming": True, "pushNotifications": False, "longRunningTasks": True}
            return {**shared, "provider": "Stubs", "skills": [{**skill, **modes}], "capabilities": capabilities}
        return {
            **shared,
            "protocolVersion": "0.3.0",
            "preferredTransport": "HTTP+JSON" if self.wire == REST else "JSONRPC",
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [skill],
        }

    def task(self, state: str, text: str | None = None) -> Said:
        """The task, as this wire shows it."""
        made = [] if text is None else [{"artifactId": A, "name": "tides", "parts": [self.part(text)]}]
        shown: Said = {"id": T, "contextId": C, "status": self.status(state, None), "artifacts": made}
        return {"task": shown} if self.wire == REST else {"kind": "task", **shown}

    def status(self, state: str, words: str | None) -> Said:
        """A status, as this wire shows it."""
        named = f"TASK_STATE_{state.upper().replace('-', '_')}" if self.wire == REST else state
        shown: Said = {"state": named, "timestamp": AT}
        if words is not None and self.wire == DOTTED:
            shown["message"] = words
        elif words is not None:
            rest = self.wire == REST
            said = {"messageId": f"says-{words}", "role": "ROLE_AGENT" if rest else "agent"}
            parts = {"content": [self.part(words)]} if rest else {"kind": "message", "parts": [self.part(words)]}
            shown["message"] = {**said, **parts}
        return shown

    def part(self, text: str) -> Said:
        """A text, as this wire shows it."""
        return {"text": text} if self.wire == REST else {"kind": "text", "text": text}

    def verb_of(self, method: str, path: str, body: Any) -> str:
        """What a request asks for."""
        if self.wire != REST:
            return METHODS.get(body.get("method", ""), "")
        if path.startswith("/v1/message:"):
            return path.removeprefix("/v1/message:")
        return path.rpartition(":")[2] if path.endswith((":subscribe", ":cancel")) else "get"


@contextlib.contextmanager
def kind_streamer(wire: str) -> Generator[KindStreamer]:
    """A streaming agent that runs within the block."""
    agent = KindStreamer(wire)

    class Handler(StubHandler):
        def _serve(self) -> None:
            body: Any = json.loads(self.read_body() or b"{}")
            verb = agent.verb_of(self.command, self.path, body)
            agent.asked.append(verb)
            if wire != REST and body.get("method") not in agent.methods:
                return self._plain(body, *refusal(-32601))
            if verb == "cancel":
                agent.cancelled.set()
            if verb in agent.instead:
                return self._plain(body, *agent.instead[verb])
            if verb not in ("stream", "subscribe"):
                return self._plain(body, 200, {"result": agent.task("working")})
            call = KindCall(agent, verb, self.command if wire == REST else body["method"], body)
            self.begin_stream("text/event-stream; charset=utf-8")
            agent.calls.put(call)
            with contextlib.suppress(OSError, queue.Empty):
                for frame in call.frames():
                    self.wfile.write(frame)
            return None

        def _plain(self, body: Any, status: int, said: Said) -> None:
            """An answer with a result or an error; over HTTP what is inside that."""
            shown: Any = {"jsonrpc": "2.0", "id": body.get("id"), **said}
            if wire == REST:
                shown = said["error"] if "error" in said else said["result"]
                task = shown.get("task")
                shown = task if task is not None and agent.asked[-1] == "get" else shown
            self.say_json(status, shown)

        do_GET = do_POST = _serve  # noqa: N815 - the names the parent calls

    with on_free_port(Handler) as agent.url:
        yield agent


def refusal(code: int, status: int = 200) -> tuple[int, Said]:
    """An answer that refuses."""
    return status, {"error": {"code": code, "message": "not here"}}
