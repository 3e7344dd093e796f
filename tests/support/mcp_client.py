"""A small MCP client in words of its own: it shares no code with the hub, so a mistake there cannot hide itself."""

import contextlib
import itertools
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.hub import HubProcess, Reply
from tests.support.sse_client import SseStream, sse

ALONE: Final = "2026-07-28"
SESSIONS: Final = "2025-11-25"
BOTH: Final = "application/json, text/event-stream"
_PREFIX: Final = "io.modelcontextprotocol/"
_numbers = itertools.count(1)

Params = Mapping[str, Any] | None


class McpClient:
    """One client of a hub: in a session that it opens itself, or without any, by the revision that it speaks."""

    def __init__(self, hub: HubProcess, version: str = SESSIONS, *, token: str = "", greets: bool = True) -> None:
        self.hub = hub
        self.version = version
        self.token = token
        self.session = ""
        if greets and version != ALONE:
            reply = self.post("initialize", {"protocolVersion": version, "capabilities": {}})
            assert reply.status == 200, reply.body
            self.session = reply.headers["mcp-session-id"]
            assert self.notify("notifications/initialized").status == 202

    def headers(self, method: str = "", params: Any = None) -> dict[str, str]:
        """What a request of this client shows."""
        shown = {"Accept": BOTH, "Mcp-Protocol-Version": self.version}
        if self.session:
            shown["Mcp-Session-Id"] = self.session
        if self.version == ALONE and method:
            shown["Mcp-Method"] = method
            if method == "tools/call":
                shown["Mcp-Name"] = params["name"]
        if method == "initialize":
            del shown["Mcp-Protocol-Version"]
        return shown

    def body(self, method: str, params: Params = None, request_id: int | None = None) -> dict[str, Any]:
        """One request."""
        said = dict(params or {})
        if self.version == ALONE:
            own: dict[str, Any] = {f"{_PREFIX}protocolVersion": ALONE, f"{_PREFIX}clientCapabilities": {}}
            said["_meta"] = {**own, **said.get("_meta", {})}
        number = next(_numbers) if request_id is None else request_id
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": said}

    def post(self, method: str, params: Params = None, **headers: str) -> Reply:
        """A request, and the whole reply; `_` in a header's name stands for `-`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        shown = {**self.headers(method, params), **more}
        return self.hub.post("/mcp", self.body(method, params), shown, self.token)

    def notify(self, method: str, params: Params = None) -> Reply:
        """A notification."""
        said = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        return self.hub.post("/mcp", said, self.headers(method, params), self.token)

    def result(self, method: str, params: Params = None) -> Any:
        """What a request is answered with, as JSON or as the last of some events."""
        reply = self.post(method, params)
        assert reply.status == 200, reply.body
        said = last_message(reply)
        assert "result" in said, said
        return said["result"]

    def error(self, method: str, params: Params = None, status: int = 200) -> Any:
        """What a request is refused with."""
        reply = self.post(method, params)
        assert reply.status == status, reply.body
        return reply.json["error"]

    def tools(self) -> dict[str, Any]:
        """Every tool, by its name, page by page."""
        found: dict[str, Any] = {}
        cursor: dict[str, str] = {}
        while True:
            page = self.result("tools/list", cursor)
            for tool in page["tools"]:
                assert tool["name"] not in found, "one name stands for two tools"
                found[tool["name"]] = tool
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    def tool_of(self, agent: str, skill: str = "echo") -> dict[str, Any]:
        """The tool that is that skill of that agent."""
        told = f"The skill {skill} of the agent "
        (tool,) = [
            tool
            for tool in self.tools().values()
            if tool["description"].startswith(told) and f"({agent})." in tool["description"]
        ]
        return tool

    def call(self, name: str, arguments: Params = None) -> Any:
        """The result of a tool."""
        return self.result("tools/call", {"name": name, "arguments": dict(arguments or {})})

    @contextlib.contextmanager
    def calling(
        self, name: str, arguments: Params = None, *, token: object = None, request_id: int = 7
    ) -> Generator[SseStream]:
        """A tool call, event by event."""
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments or {})}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        body = self.body("tools/call", params, request_id)
        with sse(f"{self.hub.url}/mcp", body, headers=self._sent("tools/call", params)) as stream:
            assert stream.status == 200, stream.body()
            yield stream

    @contextlib.contextmanager
    def listening(self, after: str = "") -> Generator[SseStream]:
        """What the hub tells by itself, or the rest of a call's stream."""
        headers = self._sent()
        if after:
            headers["Last-Event-ID"] = after
        with sse(f"{self.hub.url}/mcp", headers=headers) as stream:
            assert stream.status == 200, stream.body()
            yield stream

    def _sent(self, method: str = "", params: Any = None) -> dict[str, str]:
        token = self.token or self.hub.token
        return {**self.headers(method, params), **({"Authorization": f"Bearer {token}"} if token else {})}


def last_message(reply: Reply) -> Any:
    """The last JSON-RPC message of a reply."""
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return reply.json
    lines = [line for line in reply.body.decode().splitlines() if line.startswith("data: {")]
    return Reply(200, {}, lines[-1].removeprefix("data: ").encode()).json


def words(result: Any) -> str:
    """The words of a result."""
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
