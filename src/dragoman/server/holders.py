"""Who listens on a port of this machine, where the system tells."""

from pathlib import Path


def holder_of(port: int) -> str:
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
