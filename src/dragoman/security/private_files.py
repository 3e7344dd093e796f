"""Files that only the hub's own user may read: made whole or not at all, refused when others could read them.

Holds no policy about what is inside; `sealed.py` keeps the root key here, `admin.py` the admin token.
"""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SecretRefused(Exception):
    """A secret of this installation is weak, damaged or readable by others; `next` says what to do."""

    def __init__(self, message: str, *, next: str) -> None:
        super().__init__(message)
        self.message = message
        self.next = next


def private_directory(path: Path) -> None:
    """Make the directory with mode 0700, or raise SecretRefused if it exists and others may enter it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_if_shared(path, path.stat(), want="700")


def read_private(path: Path) -> str | None:
    """The text of a private file without its last line end; None if there is no such file."""
    try:
        # Not through a link: whoever may write the directory could otherwise choose which file is read.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SecretRefused(
            f"{path} cannot be read: {error.strerror}",
            next=f"make it a plain file of the hub's own user, or move {path.name} away",
        ) from error
    with os.fdopen(handle, "rb") as file:
        # The open file is judged, not the path: no time lies between the check and the reading.
        _refuse_if_shared(path, os.fstat(file.fileno()), want="600")
        return file.read(4096).decode("utf-8", "replace").rstrip("\r\n")


def create_private(path: Path, text: str) -> bool:
    """Write a new file with mode 0600, on disk when this returns; False if one was there already."""
    # Written beside and linked into place: a crash in between leaves no half-written secret under the real name.
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        Path(beside).unlink()
    _sync_directory(path.parent)
    return True


def replace_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 in place of the one there, whole or not at all; on disk when this returns.

    Raises SecretRefused where the file in place may be read by others: whoever may read it now would miss it.
    """
    with contextlib.suppress(FileNotFoundError):
        _refuse_if_shared(path, path.stat(), want="600")
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _refuse_if_shared(path: Path, status: os.stat_result, *, want: str) -> None:
    if status.st_mode & OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise SecretRefused(f"{path} may be read by others (mode {mode:03o})", next=f"chmod {want} {path}")


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
