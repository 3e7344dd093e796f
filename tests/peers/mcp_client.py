"""The official MCP client, as its users use it: it connects to a URL and carries out what it is told.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. Arguments: the URL, how
the revision is found (`auto`, or `legacy` for the handshake), and a bearer token, if there is one.
Standard input has one step per line, standard output one line for each:

    {"do": "hello"}                                  the server, and the revision that is spoken
    {"do": "list"}                                   every page of tools
    {"do": "call", "name": …, "arguments": {…}}      the result, and the progress that was told before it
    {"do": "cancel", "name": …, "arguments": {…}}    the same call, given up at its first progress
    {"do": "watch"}, {"do": "changed"}               listens; once the list of tools has changed

What the client raises is {"raised": its class, "code": …, "message": …}.
"""

import asyncio
import json
import sys

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ToolListChangedNotification

PATIENCE_S = 20.0


class Talk:
    """One connection, and what was told on it."""

    def __init__(self, client: Client, changed: anyio.Event, group: anyio.abc.TaskGroup) -> None:
        self.client = client
        self.changed = changed
        self.group = group

    async def step(self, step: dict) -> dict:
        """Carry out one step."""
        match step["do"]:
            case "hello":
                return {"server": self.client.server_info.name, "version": self.client.protocol_version}
            case "list":
                return {"tools": await self._tools()}
            case "call":
                return await self._call(step)
            case "cancel":
                return await self._cancel(step)
            case "watch":
                await self.group.start(self._watch)
                return {}
            case _:
                await self.changed.wait()
                return {"changed": True}

    async def _tools(self) -> list[dict]:
        tools, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor, cache_mode="bypass")
            tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return tools

    async def _call(self, step: dict) -> dict:
        told = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append([done, total, message])

        result = await self.client.call_tool(step["name"], step.get("arguments"), progress_callback=progress)
        return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True), "progress": told}

    async def _cancel(self, step: dict) -> dict:
        with anyio.CancelScope() as scope:

            async def progress(*_told: object) -> None:
                scope.cancel()

            await self.client.call_tool(step["name"], step.get("arguments"), progress_callback=progress)
        return {"cancelled": scope.cancelled_caught}

    async def _watch(self, *, task_status: anyio.abc.TaskStatus) -> None:
        if self.client.protocol_version < "2026":
            task_status.started()  # The stream of a session tells of it by itself.
            return
        async with self.client.listen(tools_list_changed=True) as events:
            task_status.started()
            async for _ in events:
                self.changed.set()


async def main(url: str, mode: str, token: str) -> None:
    """Steps from standard input until it ends."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    changed = anyio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, message_handler=heard) as client,
        anyio.create_task_group() as group,
    ):
        talk = Talk(client, changed, group)
        async for line in anyio.wrap_file(sys.stdin):
            try:
                with anyio.fail_after(PATIENCE_S):
                    said = await talk.step(json.loads(line))
            except MCPError as error:
                said = {"raised": "MCPError", "code": error.code, "message": str(error)}
            except (TimeoutError, httpx2.HTTPError) as error:
                said = {"raised": type(error).__name__, "message": str(error)}
            print(json.dumps(said), flush=True)
        group.cancel_scope.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4], *[""] * (4 - len(sys.argv))))
