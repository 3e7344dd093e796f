"""Free TCP ports on the loopback address."""

import socket


def free_port() -> int:
    """A port that nobody listens on now. Another process may take it before you do: bind soon."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
