"""Where callbacks arrive: a server in a thread of the test that says what it is told to, and keeps the bytes it got."""

import contextlib
import json
import threading
import time
from collections.abc import Generator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

PATIENCE_S = 20.0


class Arrived(msgspec.Struct, frozen=True):
    """One notice, as it came."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    at_ns: int = msgspec.field(default_factory=time.time_ns)

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class CallbackReceiver:
    """Answers with the next of `statuses`, then with 200."""

    def __init__(self) -> None:
        self.url = ""
        self.statuses: list[int] = []
        self.got: list[Arrived] = []
        self._changed = threading.Condition()

    def take(self, arrived: Arrived) -> int:
        with self._changed:
            self.got.append(arrived)
            self._changed.notify_all()
            return self.statuses.pop(0) if self.statuses else 200

    def wait_for(self, count: int) -> list[Arrived]:
        """The first so many, as soon as they are there."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= count, PATIENCE_S), self.got
            return self.got[:count]


@contextlib.contextmanager
def callback_receiver() -> Generator[CallbackReceiver]:
    """A receiver that runs within the block."""
    receiver = CallbackReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(receiver.take(Arrived(self.path, headers, raw)))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
