"""Ports of this machine: whether one can be listened on, and who holds it."""

import errno
import socket

from dragoman.cli.fault import Fault, wrong_usage


def require_free(host: str, port: int) -> None:
    """Return if the address can be listened on. Raises Fault that names who listens there, where it can be read."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, number) as probe:
            # As servers do: a port whose last connections are just closing is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise cannot_listen(host, port, error) from error


def cannot_listen(host: str, port: int, error: OSError) -> Fault:
    """Why nothing can be listened for there."""
    if error.errno == errno.EADDRINUSE:
        # A part of the server: not for --help.
        from dragoman.server.holders import holder_of

        other = port + 1 if port < 65535 else port - 1
        return wrong_usage(f"port {port} is in use{holder_of(port)}", next=f"--port {other}, or stop it")
    if error.errno == errno.EACCES:
        return wrong_usage(f"port {port} needs more rights than this user has", next="--port 8700")
    return wrong_usage(f"{host} is no address of this machine ({error.strerror})", next="--host 127.0.0.1")
