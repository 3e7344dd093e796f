"""A small MCP server in threads of the test, in words of its own: it keeps what it was sent and answers as it is told.

Tools: `echo` gives its arguments as they are, `tell` its progress before its answer, `fail` fails, `hold` answers when
it is let go or cancelled, `ask` wants something of its caller. Two to a page.
"""

import contextlib
import json
import threading
from collections.abc import Generator
from typing import Any, Final

from tests.support.stub_server import StubHandler, on_free_port

SESSIONS: Final = "2025-06-18"
ALONE: Final = "2026-07-28"
WAIT_S: Final = 20.0
OPEN: Final[dict[str, Any]] = {"type": "object"}


class McpServer:
    """Where it is, what came, and how it behaves."""

    def __init__(self, version: str, *, key: str = "") -> None:
        self.version = version
        self.key = key
        self.url = ""
        self.requests: list[tuple[dict[str, str], Any]] = []  # headers and body
        self.sessions: set[str] = set()
        self.arrived = threading.Event()
        self.cancelled = threading.Event()
        self.go = threading.Event()
        self.as_events = True  # whether answers come as events
        self.both = False  # whether it speaks the other kind of revision, too
        self.tools: list[dict[str, Any]] = [
            {
                "name": "echo",
                "title": "Echo",
                "description": "Says it again",
                "inputSchema": OPEN,
                "outputSchema": OPEN,
            },
            {"name": "tell", "inputSchema": OPEN},
            {"name": "fail", "inputSchema": OPEN, "annotations": {"readOnlyHint": True}},
            {"name": "hold", "inputSchema": OPEN},
            {"name": "ask", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        ]

    @property
    def alone(self) -> bool:
        """Whether its requests stand for themselves."""
        return self.version == ALONE

    def of(self, method: str) -> list[tuple[dict[str, str], Any]]:
        """The requests of one method."""
        return [(headers, body) for headers, body in self.requests if body and body.get("method") == method]


class _Handler(StubHandler):
    """One connection to the server that a class of its own names."""

    mcp: McpServer

    def do_DELETE(self) -> None:  # noqa: N802 - the name the parent calls
        """End a session."""
        self.mcp.sessions.discard(self.headers.get("Mcp-Session-Id", ""))
        self.say(204, {}, b"")

    def do_POST(self) -> None:  # noqa: N802 - the name the parent calls
        """One message."""
        headers, body = self.read_headers(), json.loads(self.read_body())
        self.mcp.requests.append((headers, body))
        refusal = _refusal(self.mcp, headers, body)
        with contextlib.suppress(OSError):
            if refusal is not None:
                self.say(refusal[0], {"Content-Type": "text/plain"}, refusal[1].encode())
            elif "id" not in body:
                if body["method"] == "notifications/cancelled":
                    self.mcp.cancelled.set()
                self.say(202, {}, b"")
            else:
                self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        method, params = body["method"], body.get("params", {})
        headers: dict[str, str] = {}
        if method == "initialize":
            session = f"s-{len(self.mcp.requests)}"
            self.mcp.sessions.add(session)
            headers["Mcp-Session-Id"] = session
        if method == "tools/call":
            self.mcp.arrived.set()
            if params["name"] == "tell":
                self._tell(body)
                return
            if params["name"] == "hold":
                self.mcp.go.wait(WAIT_S)
        said = json.dumps({"jsonrpc": "2.0", "id": body["id"], **_said(self.mcp, method, params)})
        if self.mcp.as_events and method != "tools/list":
            events = f": hello\n\nevent: message\ndata: {said}\n\n".encode()
            self.say(200, {**headers, "Content-Type": "text/event-stream"}, events)
        else:
            self.say(200, headers, said.encode())

    def _tell(self, body: dict[str, Any]) -> None:
        token = body["params"]["_meta"]["progressToken"]
        self.begin_stream()
        for step in (1, 2):
            params = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
            self._event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            self.mcp.go.wait(WAIT_S)
        self._event({"jsonrpc": "2.0", "id": body["id"], "result": {"content": [{"type": "text", "text": "told"}]}})

    def _event(self, data: Any) -> None:
        self.wfile.write(f"event: message\ndata: {json.dumps(data)}\n\n".encode())


@contextlib.contextmanager
def mcp_server(version: str = SESSIONS, *, key: str = "") -> Generator[McpServer]:
    """A server of that revision that runs within the block; with a key, for those who show it."""
    server = McpServer(version, key=key)

    class Handler(_Handler):
        mcp = server

    with on_free_port(Handler) as url:
        server.url = f"{url}/mcp"
        try:
            yield server
        finally:
            server.go.set()


def _refusal(server: McpServer, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, str] | None:
    if server.key and headers.get("authorization") != f"Bearer {server.key}":
        return 401, "who is there?"
    if server.both and headers.get("mcp-protocol-version") == ALONE:
        return None
    if server.alone:
        right = headers.get("mcp-protocol-version") == ALONE and headers.get("mcp-method") == body.get("method")
        return None if right else (400, "no such revision")
    if headers.get("mcp-protocol-version") == ALONE:
        return 400, "no such revision"
    if body.get("method") != "initialize" and headers.get("mcp-session-id") not in server.sessions:
        return 404, "no such session"
    return None


def _said(server: McpServer, method: str, params: dict[str, Any]) -> dict[str, Any]:
    about = {"name": "Tool Shed", "version": "3.0"}
    match method:
        case "initialize":
            result: dict[str, Any] = {"protocolVersion": server.version, "capabilities": {}, "serverInfo": about}
            return {"result": {**result, "instructions": "Take care."}}
        case "server/discover":
            meta = {"io.modelcontextprotocol/serverInfo": about}
            return {"result": {"supportedVersions": [ALONE], "capabilities": {}, "_meta": meta}}
        case "tools/list":
            begin = int(params.get("cursor", "0"))
            following = {"nextCursor": str(begin + 2)} if begin + 2 < len(server.tools) else {}
            return {"result": {"tools": server.tools[begin : begin + 2], **following}}
        case "tools/call":
            return _called(params)
        case _:
            return {"error": {"code": -32601, "message": f"no {method}"}}


def _called(params: dict[str, Any]) -> dict[str, Any]:
    match params["name"]:
        case "echo":
            given = params["arguments"]
            return {"result": {"content": [{"type": "text", "text": json.dumps(given)}], "structuredContent": given}}
        case "hold":
            return {"result": {"content": [{"type": "text", "text": "held"}]}}
        case "fail":
            return {"result": {"content": [{"type": "text", "text": "the saw is blunt"}], "isError": True}}
        case "ask":
            return {"result": {"resultType": "input_required", "inputRequests": {}}}
        case name:
            return {"error": {"code": -32602, "message": f"Unknown tool: {name}"}}
