"""Ports of this machine: whether one can be listened on, and who holds it."""

import errno
import socket
from pathlib import Path

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
        other = port + 1 if port < 65535 else port - 1
        return wrong_usage(f"port {port} is in use{_holder(port)}", next=f"--port {other}, or stop it")
    if error.errno == errno.EACCES:
        return wrong_usage(f"port {port} needs more rights than this user has", next="--port 8700")
    return wrong_usage(f"{host} is no address of this machine ({error.strerror})", next="--host 127.0.0.1")


def _holder(port: int) -> str:
    """` by pid 4711 (python)`, or nothing where the system does not tell."""
    try:
        sockets = _listeners(port)
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and sockets and _holds(folder, sockets):
                return f" by pid {folder.name} ({(folder / 'comm').read_text().strip()})"
    except OSError:
        pass
    return ""


def _listeners(port: int) -> set[str]:
    """The sockets that listen on a port, as /proc names them in a process's open files."""
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        if not path.exists():
            continue
        for line in path.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _holds(folder: Path, sockets: set[str]) -> bool:
    try:
        return any(str(file.readlink()) in sockets for file in (folder / "fd").iterdir())
    except OSError:
        return False  # another user's process, or one that has ended meanwhile
