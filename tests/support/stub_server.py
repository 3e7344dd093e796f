"""The HTTP server of a stub: a handler on a free port of the loopback address, in threads of the test."""

import contextlib
import json
import threading
from collections.abc import Generator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StubHandler(BaseHTTPRequestHandler):
    """How a stub reads a request and answers it; what it answers is its own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def read_body(self) -> bytes:
        """The request's body."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def read_headers(self) -> dict[str, str]:
        """The request's headers, their names in small letters."""
        return {name.lower(): value for name, value in self.headers.items()}

    def say(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Answer with bytes: JSON, where the headers name nothing else."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def say_json(self, status: int, said: Any) -> None:
        """Answer with JSON."""
        self.say(status, {}, json.dumps(said).encode())

    def begin_stream(self, content_type: str = "text/event-stream") -> None:
        """Begin an answer that ends with its connection; what is written to `wfile` leaves at once."""
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def on_free_port(handler: type[BaseHTTPRequestHandler]) -> Generator[str]:
    """Serve with that handler within the block, whose value is the URL, without a slash at its end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
