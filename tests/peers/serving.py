"""How an agent on a published A2A SDK is served here: its options, and a word once it listens.

Programs beside this file import it; like them it runs in environments of their own.
"""

import argparse
import os
import sys
import threading
from collections.abc import Callable, Sequence

import uvicorn
from starlette.applications import Starlette

HOST = "127.0.0.1"


class AnnouncedServer(uvicorn.Server):
    """Prints `ready` when the socket listens."""

    async def startup(self, sockets: list | None = None) -> None:
        """Start listening, then say so."""
        await super().startup(sockets)
        if self.started:
            print("ready", flush=True)


def end_with_parent() -> None:
    """Leave when standard input closes: a killed test run leaves no agent behind."""
    sys.stdin.buffer.read()
    os._exit(0)


def serve(description: str, bindings: Sequence[str], application: Callable[[int, str], Starlette]) -> None:
    """Serve what `application` makes of a port and a binding, until stopped; the first binding is the default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--binding", choices=bindings, default=bindings[0])
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    app = application(asked.port, asked.binding)
    AnnouncedServer(uvicorn.Config(app, host=HOST, port=asked.port, log_level="warning")).run()
