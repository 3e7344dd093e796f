"""The sockets to listen on, and enough file descriptors for them."""

import errno
import logging
import resource
import socket

from dragoman.model.loopback import is_loopback_address


class CannotListen(Exception):
    """The address cannot be used; the message says which and why."""


class AddressInUse(CannotListen):
    """Something else listens there."""


def bind(host: str, port: int) -> list[socket.socket]:
    """One bound socket per address of `host`, all on one port; port 0 takes a free one.

    Raises AddressInUse, or CannotListen for any other reason.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"Cannot listen on {host}: {error.strerror}. Name an address of this machine.") from error
    bound: list[socket.socket] = []
    try:
        for family, kind, number, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, number)
            bound.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], port, *address[2:]))
            port = port_of(listener)  # port 0: the other addresses take the one that the first was given
    except OSError as error:
        for listener in bound:
            listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(
                f"Port {port} on {host} is in use. Stop what listens there, or choose another with --port."
            ) from error
        raise CannotListen(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    return bound


def port_of(listener: socket.socket) -> int:
    """The port that a bound socket has."""
    port: int = listener.getsockname()[1]
    return port


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    address: str = listener.getsockname()[0]
    return is_loopback_address(address)


def raise_file_limit(wanted: int, log: logging.Logger) -> int:
    """Allow as many open files as the system lets us; warn where that is fewer than `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, wanted)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    if hard < wanted:
        log.warning("Only %d files may be open; %d connections need more. Raise it with ulimit -n.", hard, wanted)
    return hard
