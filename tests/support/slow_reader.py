"""A reader of a stream that takes nothing until it is told to: a bare socket with a small buffer."""

import contextlib
import re
import socket
from collections.abc import Generator
from typing import Final

from tests.support.hub import HubProcess

BUFFER_BYTES: Final = 4096
SEGMENT_BYTES: Final = 536  # of which the sender's system keeps a few on the way: with large ones that is a megabyte
PATIENCE_S: Final = 3.0
EVENT: Final = re.compile(rb"id: (\d+)\nevent: \w+\n[^\n]*\n\n")


class SlowReader:
    """What a slow reader has at last."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._got = b""
        self.over = False  # the connection has ended

    def take_all(self) -> list[int]:
        """The numbers of the events, as they came, up to where the stream ends or breaks off, or falls silent."""
        try:
            while piece := self._client.recv(1 << 20):
                self._got += piece
        except ConnectionResetError:
            self.over = True
        except TimeoutError:
            pass  # It goes on, and has nothing to say.
        else:
            self.over = True
        return [int(number) for number in EVENT.findall(self._got)]


@contextlib.contextmanager
def slow_reader(hub: HubProcess, path: str, after: int) -> Generator[SlowReader]:
    """A stream that is asked for and not read, open within the block."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
        client.settimeout(PATIENCE_S)
        client.connect(("127.0.0.1", hub.port))
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nAuthorization: Bearer {hub.token}\r\n"
            f"Last-Event-ID: {after}\r\n\r\n".encode()
        )
        # The head of the answer: from here on it hears all that is said.
        assert client.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200"
        yield SlowReader(client)
