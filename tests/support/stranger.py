"""A client that says exactly what it is told to, byte for byte, each time from another address of the loopback network.

Wrong credentials are counted by address, and after twenty of them an address has to wait: a walk over all paths would.
"""

import itertools
import json
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

_numbers = itertools.count(2)
TIMEOUT_S: Final = 15.0
_KEY: Final = "dGhlIHNhbXBsZSBub25jZQ=="


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered; of a stream its head, and of the rest what came with it."""

    status: int
    head: str
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def ask(
    port: int,
    method: str,
    path: str,
    lines: Sequence[str] = (),
    body: bytes = b"",
    *,
    host: str | None = None,
    trusted: Path | None = None,
    source: str | None = None,
) -> Said:
    """One request on a connection of its own, with these header lines; WS is the handshake of a WebSocket.

    `host`: None is the hub's own, "" none at all. `trusted`: over TLS, by that certificate.
    """
    head = [f"{'GET' if method == 'WS' else method} {path} HTTP/1.1"]
    if host != "":
        head.append(f"Host: {host or f'127.0.0.1:{port}'}")
    if method == "WS":
        head += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {_KEY}", "Sec-WebSocket-Version: 13"]
    else:
        head += ["Connection: close", f"Content-Length: {len(body)}"]
    if body:
        head.append("Content-Type: application/json")
    raw = "\r\n".join((*head, *lines, "", "")).encode("latin-1") + body
    wire: socket.socket = socket.create_connection(
        ("127.0.0.1", port), timeout=TIMEOUT_S, source_address=(source or _next_address(), 0)
    )
    with wire:
        if trusted is not None:
            wire = ssl.create_default_context(cafile=str(trusted)).wrap_socket(wire, server_hostname="127.0.0.1")
        wire.sendall(raw)
        said = _read(wire)
        wire.close()
        return said


def _next_address() -> str:
    number = next(_numbers) % 60_000 + 2
    return f"127.{1 + number // 16_384}.{number // 128 % 128}.{2 + number % 128}"


def _read(wire: socket.socket) -> Said:
    seen = b""
    while b"\r\n\r\n" not in seen:
        got = wire.recv(65536)
        if not got:
            raise AssertionError(f"closed without an answer: {seen[:200]!r}")
        seen += got
    head, _, body = seen.partition(b"\r\n\r\n")
    text = head.decode("latin-1").lower()
    length = next((int(line[16:]) for line in text.split("\r\n") if line.startswith("content-length: ")), None)
    while length is not None and len(body) < length and (got := wire.recv(65536)):
        body += got
    return Said(status=int(text.split(" ", 2)[1]), head=text, body=body)
