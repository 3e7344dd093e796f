"""A blocking HTTP/1.1 client on bare sockets: what it costs itself is small, and the same for every peer.

Knows Content-Length only: every peer here sends it, and anything else is an error.
"""

import json
import socket
from typing import Any, Final, NamedTuple, Self

TIMEOUT_S: Final = 10.0


class Reply(NamedTuple):
    """Status and body of one answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class Endpoint(NamedTuple):
    """Where a server listens."""

    port: int
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """Its address, with the final slash."""
        return f"http://{self.host}:{self.port}/"

    def ask(self, method: str, path: str, *, token: str | None = None, body: object = None) -> Reply:
        """One request on a connection of its own; OSError when nobody answers."""
        payload = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Connection": "close"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        with Connection(self) as connection:
            return connection.exchange(self.request(method, path, headers, payload))

    def request(self, method: str, path: str, headers: dict[str, str], payload: bytes) -> bytes:
        """The bytes of a request."""
        sent = {"Host": f"{self.host}:{self.port}", "Content-Type": "application/json", **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        lines.append(f"Content-Length: {len(payload)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + payload


class Connection:
    """One connection, one request on it at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._socket = socket.create_connection((endpoint.host, endpoint.port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, request: bytes) -> Reply:
        """Send a request and read its answer."""
        self.send(request)
        return self.receive()

    def send(self, request: bytes) -> None:
        """Send a request; `receive` reads the answer."""
        self._socket.sendall(request)

    def receive(self) -> Reply:
        """Read one answer; OSError when it is cut short or has no length."""
        held = b""
        while (end := held.find(b"\r\n\r\n")) < 0:
            held += self._more()
        head = held[:end].lower()
        start = head.find(b"\r\ncontent-length:")
        if start < 0:
            raise OSError(f"An answer without Content-Length: {head!r}")
        length = int(head[start + 17 :].split(b"\r\n", 1)[0])
        body = held[end + 4 :]
        while len(body) < length:
            body += self._more()
        return Reply(int(head[9:12]), body)

    def _more(self) -> bytes:
        chunk = self._socket.recv(65536)
        if not chunk:
            raise OSError("The connection ended within an answer.")
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._socket.close()
