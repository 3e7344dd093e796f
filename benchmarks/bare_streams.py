"""Streams on uvicorn and nothing else: the floor for idle streams and for one event to many readers.

Runs alone: `python -m benchmarks.bare_streams PORT`. A reader (`GET /stream`) is the task that uvicorn has anyway,
which waits for its client to leave; `POST /go?lines=N&per_s=R` sends each line to all of them, encoded once.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

import uvicorn

from benchmarks.telling import chunk, event, line

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
HEAD: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")],
}
PLAIN: Final = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
END: Final = {"type": "http.response.body", "body": b""}

readers: set[Send] = set()
telling: set[asyncio.Task[None]] = set()


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Serve one request."""
    if scope["type"] == "lifespan":
        return
    if scope["path"] == "/stream":
        await send(HEAD)
        await _say(send, event("start", b'{"status":"started"}', 1))
        readers.add(send)
        while (await receive())["type"] != "http.disconnect":
            pass
        readers.discard(send)
        return
    if scope["path"] == "/go":
        wanted = parse_qs(scope["query_string"].decode())
        task = asyncio.create_task(_tell(int(wanted["lines"][0]), float(wanted["per_s"][0])))
        telling.add(task)
        task.add_done_callback(telling.discard)
    await send(PLAIN)
    await send(END)


async def _tell(lines: int, per_s: float) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(1, lines + 1):
        piece = chunk(line(number), number + 1)
        for send in list(readers):
            await _say(send, piece)
        await asyncio.sleep(max(0.0, began + number / per_s - loop.time()))
    last = event("complete", b'{"status":"completed"}', lines + 2) + event("done", b"{}", lines + 2)
    for send in list(readers):
        await _say(send, last)
        await send(END)


async def _say(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


if __name__ == "__main__":
    uvicorn.run(
        app,  # type: ignore[arg-type]  # pyright: uvicorn's own names for the same shapes
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="error",
        access_log=False,
        lifespan="off",
        loop="uvloop",
        http="httptools",
        backlog=4096,
    )
