"""How an agent that brings its own server is run here: it listens by itself, and this says when it does.

Programs beside this file import it; like them it runs in environments of their own.
"""

import argparse
import os
import socket
import sys
import threading
import time

HOST = "127.0.0.1"
PAUSE_S = 0.05


def port_to_serve(description: str) -> int:
    """The port that was asked for. From now on `ready` is said once it is listened on, and nothing else is."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    # Servers print as they like, and nobody reads standard output after `ready`.
    out = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=announce, args=(asked.port, out), daemon=True).start()
    return asked.port


def announce(port: int, out: int) -> None:
    """Say `ready` as soon as somebody accepts connections there."""
    while True:
        try:
            socket.create_connection((HOST, port), 1).close()
        except OSError:
            time.sleep(PAUSE_S)
        else:
            os.write(out, b"ready\n")
            return


def end_with_parent() -> None:
    """Leave when standard input closes: a killed test run leaves no agent behind."""
    sys.stdin.buffer.read()
    os._exit(0)
