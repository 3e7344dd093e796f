"""An MCP server of the official package, over streamable HTTP at /mcp: tools that answer, fail, tell and wait.

Its binding says which revisions it takes: `alone` any, `sessions` those that begin by a handshake, `locked` those with
the key KEY in every request; `single` any, with one tool. Whoever asks for /forget ends all its sessions, and for /more
gives it one tool more.
"""

import base64

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from serving import serve
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

server = MCPServer("Tide Tables", instructions="Knows the tides.", version="2.1.0")


class Tide(BaseModel):
    """When the water is high, and how high."""

    place: str
    metres: float


@server.tool(title="High water")
def tide(place: str, day: int = 1) -> Tide:
    """When the water is high"""
    return Tide(place=place, metres=day * 1.5)


@server.tool()
def say(words: str) -> CallToolResult:
    """Says it again"""
    return CallToolResult(content=[TextContent(type="text", text=words)])


@server.tool()
def files() -> CallToolResult:
    """An image, a text and a link"""
    image = base64.b64encode(b"\x89PNG").decode()
    page = TextResourceContents(uri="note://tides/today.md", mime_type="text/markdown", text="# high")
    return CallToolResult(
        content=[
            ImageContent(type="image", data=image, mime_type="image/png"),
            EmbeddedResource(type="resource", resource=page),
            ResourceLink(type="resource_link", uri="https://tides.example/table.pdf", name="table.pdf"),
        ]
    )


@server.tool()
def sink() -> str:
    """Always fails"""
    raise ToolError("the harbour is dry")


@server.tool()
async def watch(ctx: Context, steps: int = 3) -> str:
    """Tells how far it is"""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "watched"


@server.tool()
async def wait(ctx: Context) -> str:
    """Waits until it is cancelled"""
    print("waiting", flush=True)
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        print("cancelled", flush=True)
        raise
    return "nobody cancelled it"


KEY = "tide-key"
application = server.streamable_http_app()


def more(place: str) -> str:
    """Came later"""
    return place


class Door:
    """Lets in who brings the key, and speaks the revisions that it was told to."""

    def __init__(self, binding: str) -> None:
        self._binding = binding
        for name in ("tide", "files", "sink", "watch", "wait") if binding == "single" else ():
            server.remove_tool(name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        answer = self._refusal(scope) if scope["type"] == "http" else None
        await (answer or application)(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = dict(scope["headers"])
        if scope["path"] == "/forget":
            server.session_manager._server_instances.clear()
            return PlainTextResponse("forgotten")
        if scope["path"] == "/more":
            server.add_tool(more)
            return PlainTextResponse("more")
        if self._binding == "locked" and headers.get(b"authorization") != f"Bearer {KEY}".encode():
            return PlainTextResponse("who is there?", 401, {"www-authenticate": "Bearer"})
        if (
            self._binding in ("sessions", "locked")
            and headers.get(b"mcp-protocol-version", b"").decode() in MODERN_PROTOCOL_VERSIONS
        ):
            return PlainTextResponse("no such revision", 400)
        return None


if __name__ == "__main__":
    serve("An MCP server", ("alone", "sessions", "locked", "single"), lambda _port, binding: Door(binding))
