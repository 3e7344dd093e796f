"""The process of the demo agents: `python -m dragoman.cli.demo --data DIR`, started by `dragoman dev`.

Three of them listen, each registered in another dialect; the fourth connects to the hub. Once the hub is ready, its
parent says where it is; when they are all there, they say so; when their standard input closes, because the parent
ended in whatever way, so do they.

    stdin    {"hub": "http://127.0.0.1:8700", "token": "…"}
    stdout   {"agents": [{"id": "agt_archive", "dialect": "agentvault", "port": 8702, "wanted": 8702}, …]}
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

from dragoman.cli.demo.archive import archive
from dragoman.cli.demo.editor import editor
from dragoman.cli.demo.newsroom import newsroom
from dragoman.cli.demo.served import Served
from dragoman.cli.demo.terminal_bench import document_card, terminal_bench
from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.secret import Secret
from dragoman.observe import logs
from dragoman.ports.clock import SystemClock
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.client.client import A2AClient

ARCHIVE_PORT: Final = 8702
EDITOR_PORT: Final = 8703
TERMINAL_PORT: Final = 8001
JOIN_S: Final = 20.0


def main() -> int:
    """Serve until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m dragoman.cli.demo", description="The demo agents.")
    parser.add_argument("--data", type=Path, required=True, help="where they keep their calls")
    options = parser.parse_args()
    logs.configure("pretty" if sys.stderr.isatty() else "json", "error")
    try:
        asyncio.run(_live(options.data))
    except ExceptionGroup as several:
        print(f"the demo agents cannot run: {several.exceptions[0]}", file=sys.stderr)
        return 1
    return 0


async def _live(data: Path) -> None:
    clock = SystemClock()
    servers = [
        Served(archive(clock), "agentvault", ARCHIVE_PORT, data, clock),
        Served(editor(), "a2a-1.0", EDITOR_PORT, data, clock),
        Served(terminal_bench(), "dotted", TERMINAL_PORT, data, clock, card=document_card),
    ]
    connected = newsroom()
    parent = await _parent()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, parent.feed_eof)
    async with asyncio.TaskGroup() as group:
        for server in servers:
            group.create_task(server.run())
        told = _hub(await parent.readline())
        joining = None if told is None else group.create_task(_join(servers, connected, told))
        while await parent.read(1024):
            pass  # it has nothing more to say
        if joining is not None:
            joining.cancel()
            await connected.stop()
        for server in servers:
            await server.stop()


async def _join(servers: list[Served], connected: Agent, told: JsonObject) -> None:
    """Make all of them known to the hub, and report how that went."""
    hub, token = str(told["hub"]), told.get("token")
    connected.hub, connected.api_key = hub, Secret(str(token)) if token else None
    async with A2AClient(hub, connected.api_key) as client:
        outcomes = await asyncio.gather(
            _tried(connected.connect()),
            *(_tried(each.register(client)) for each in servers),
        )
    here: list[JsonObject] = [{"id": connected.id, "dialect": "platform"}]
    here += [
        {"id": each.agent.id, "dialect": each.dialect, "port": each.port, "wanted": each.wanted} for each in servers
    ]
    agents = [
        {**agent, **({} if error is None else {"error": error})} for agent, error in zip(here, outcomes, strict=True)
    ]
    print(json.dumps({"agents": agents}), flush=True)


async def _tried(joining: Awaitable[object]) -> str | None:
    """Why an agent could not be made known; None where it could."""
    try:
        async with asyncio.timeout(JOIN_S):
            await joining
    except DragomanError as error:
        return error.message
    except TimeoutError:
        return f"the hub did not take it within {JOIN_S:g} s"
    return None


async def _parent() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _hub(line: bytes) -> JsonObject | None:
    """What the parent said; None where it ended instead."""
    try:
        said: Json = json.loads(line)
    except ValueError:
        return None
    return said if is_object(said) else None


if __name__ == "__main__":
    sys.exit(main())
