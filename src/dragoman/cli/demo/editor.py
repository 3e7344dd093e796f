"""The demo agent `agt_editor`: one skill, `summarize`, in the platform dialect over HTTP.

Needs no model, key or network. Run as `python -m dragoman.cli.demo.editor`; it registers itself at the hub once that
is ready, says so on stdout in one JSON line, and ends when its standard input closes: when the process that started
it ends, in whatever way, so does the agent.
"""

import argparse
import asyncio
import json
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import uvicorn

from dragoman.model.http import HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.net import AddressRule, Client, NetError
from dragoman.ports.clock import Clock, SystemClock

AGENT_ID: Final = "agt_editor"
PORT: Final = 8703
LARGEST_BODY: Final = 10 * 1024 * 1024
READY_S: Final = 30.0
AGAIN_S: Final = 0.05
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?]+[\"')\]]*|\n|$)")

Scope = Mapping[str, Json]
Receive = Callable[[], Awaitable[Mapping[str, Json]]]
Send = Callable[[Mapping[str, Json]], Awaitable[None]]


def card(port: int) -> JsonObject:
    """The agent's platform card."""
    return {
        "$schema": "https://agentplatform.com/schemas/agent-card/v1",
        "id": AGENT_ID,
        "name": "Editor",
        "description": "Shortens texts to their first sentences",
        "version": "1.0.0",
        "capabilities": {"streaming": False, "a2a": True, "memory": False},
        "skills": [
            {
                "name": "summarize",
                "description": "Summarize text content",
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string", "description": "The text"},
                        "max_length": {"type": "integer", "default": 500, "minimum": 1},
                    },
                    "required": ["content"],
                },
                "output_schema": {"type": "object", "properties": {"summary": {"type": "string"}}},
            }
        ],
        "authentication": {"type": "bearer", "scopes_required": ["a2a:call"]},
        "endpoint": f"http://localhost:{port}/a2a",
    }


def summarize(content: str, max_length: int) -> str:
    """The first sentences that fit; of a first one that does not, the words that do."""
    kept = ""
    for sentence in (" ".join(found.split()) for found in _SENTENCE.findall(content)):
        if not sentence:
            continue
        longer = f"{kept} {sentence}" if kept else sentence
        if len(longer) > max_length:
            break
        kept = longer
    if kept or not content.strip():
        return kept
    text = " ".join(content.split())[: max(0, max_length - 1)]
    whole = text.rpartition(" ")[0] or text
    return f"{whole}…"[:max_length]


def answer(call: Json) -> tuple[int, JsonObject]:
    """The HTTP status and body that answer one call of the hub."""
    if not is_object(call):
        return 400, _refusal("VALIDATION_ERROR", "The call is not a JSON object")
    if call.get("skill") != "summarize":
        return 404, _refusal("SKILL_NOT_FOUND", "The editor has one skill: summarize")
    given = call.get("input")
    value: JsonObject = given if is_object(given) else {}
    content, longest = value.get("content"), value.get("max_length", 500)
    if not isinstance(content, str):
        return 400, _refusal("VALIDATION_ERROR", "content: required, a text")
    if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
        return 400, _refusal("VALIDATION_ERROR", "max_length: expected an integer, at least 1")
    summary = summarize(content, longest)
    tokens = len(content.split()) + len(summary.split())
    return 200, {"status": "completed", "result": {"summary": summary}, "usage": {"tokens": tokens}}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application: calls at /a2a, cancellations at /a2a/cancel, a sign of life at /health."""
    if scope["type"] != "http":
        return
    match scope["method"], scope["path"]:
        case "POST", "/a2a":
            status, body = answer(await _read(receive))
        case "POST", "/a2a/cancel":
            await _read(receive)
            status, body = 200, {}  # every call ends at once: there is nothing left to cancel
        case "GET", "/health":
            status, body = 200, {"status": "healthy"}
        case _:
            status, body = 404, _refusal("NOT_FOUND", "There is nothing here")
    data = json.dumps(body, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def main() -> int:
    """Serve until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m dragoman.cli.demo.editor", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--hub", help="register there")
    parser.add_argument("--token-file", type=Path, help="the token for that, read when the hub is ready")
    options = parser.parse_args()
    listener = listen(options.port)
    asyncio.run(_serve(listener, options.hub, options.token_file))
    return 0


def listen(port: int) -> socket.socket:
    """A socket on that port of the loopback address, or on a free one when it is taken."""
    for wanted in (port, 0):
        # Named as TCP: asyncio turns off Nagle for such sockets only, and an answer of two writes would wait 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
        except OSError:
            listener.close()
            continue
        return listener
    raise OSError("no free port on 127.0.0.1")


async def _serve(listener: socket.socket, hub: str | None, token_file: Path | None) -> None:
    port: int = listener.getsockname()[1]
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve(sockets=[listener]))
        watching = group.create_task(_watch_parent(server))
        if hub is None:
            _report({"port": port})
        else:
            registering = group.create_task(_register(SystemClock(), hub, token_file, port))
            serving.add_done_callback(lambda _: registering.cancel())
        serving.add_done_callback(lambda _: watching.cancel())


async def _watch_parent(server: uvicorn.Server) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
    server.should_exit = True


async def _register(clock: Clock, hub: str, token_file: Path | None, port: int) -> None:
    """Register at the hub as soon as it is ready, and report how that went."""
    client = Client(clock=clock, rule=AddressRule.of(["loopback"]))
    last = clock.monotonic() + READY_S
    try:
        while not await _is_ready(client, clock, hub):
            if clock.monotonic() > last:
                _report({"port": port, "error": "the hub did not get ready"})
                return
            await clock.sleep(AGAIN_S)
        headers = {b"content-type": b"application/json"}
        if token_file is not None:
            headers[b"authorization"] = _bearer(token_file)
        body = json.dumps({"agent_card": card(port)}).encode()
        request = HttpRequest(method="POST", url=f"{hub}/v1/a2a/registry", headers=headers, body=body)
        reply = await client.send(request, deadline=clock.monotonic() + READY_S)
        failed = {} if reply.status in (200, 201) else {"error": reply.body.decode("utf-8", "replace")[:500]}
        _report({"port": port, **failed})
    except (NetError, OSError) as error:
        _report({"port": port, "error": str(error)})
    finally:
        await client.close()


def _bearer(token_file: Path) -> bytes:
    return b"Bearer " + token_file.read_bytes().strip()


async def _is_ready(client: Client, clock: Clock, hub: str) -> bool:
    try:
        request = HttpRequest(method="GET", url=f"{hub}/readyz")
        return (await client.send(request, deadline=clock.monotonic() + 1.0)).status == 200
    except NetError:
        return False


async def _read(receive: Receive) -> Json:
    """The JSON of the request's body; None for what is not JSON or too large."""
    data = b""
    while True:
        message = await receive()
        data += message.get("body", b"")
        if len(data) > LARGEST_BODY:
            return None
        if not message.get("more_body"):
            break
    try:
        return json.loads(data)
    except ValueError:
        return None


def _refusal(code: str, message: str) -> JsonObject:
    return {"status": "failed", "error": {"code": code, "message": message, "retryable": False}}


def _report(fact: JsonObject) -> None:
    print(json.dumps(fact), flush=True)


if __name__ == "__main__":
    sys.exit(main())
