"""An MCP server of the official package, over streamable HTTP: a few tools that answer, fail, tell and wait.

    --era sessions | alone     which revisions it takes: those of a handshake, or the one whose requests stand alone
    --key KEY                  a bearer token that every request has to bring
"""

import argparse
import base64

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent, TextResourceContents
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from serving import serve

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
    raise ValueError("the harbour is dry")


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


class Locked:
    """Lets in who brings the key, and speaks the revisions that it was told to."""

    def __init__(self, app: ASGIApp, key: str, era: str) -> None:
        self._app = app
        self._key = key
        self._era = era

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        headers = dict(scope.get("headers", ()))
        version = headers.get(b"mcp-protocol-version", b"").decode()
        if scope["type"] == "http" and self._key and headers.get(b"authorization") != f"Bearer {self._key}".encode():
            await PlainTextResponse("who is there?", 401, {"www-authenticate": "Bearer"})(scope, receive, send)
        elif scope["type"] == "http" and self._era == "sessions" and version in MODERN_PROTOCOL_VERSIONS:
            await PlainTextResponse("no such revision", 400)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def main() -> None:
    """Serve until the parent is gone."""
    options = argparse.ArgumentParser()
    options.add_argument("--era", default="alone")
    options.add_argument("--key", default="")
    serve(lambda given: Locked(server.streamable_http_app(), given.key, given.era), options)


if __name__ == "__main__":
    main()
