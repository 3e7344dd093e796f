"""Run the real command: into pipes, or on a pseudo-terminal of a given width."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

COMMAND = str(Path(sys.executable).with_name("dragoman"))
LIMIT_S = 30.0
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Ran(NamedTuple):
    """How a command ended and what it said; on a terminal `out` is all of it."""

    code: int
    out: str
    err: str


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a fresh user has: a home of their own and no setting of ours."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV")}
    return {**kept, "HOME": str(home), "TERM": "xterm-256color", "PYTHONUTF8": "1", **more}


def piped(*words: str, env: Mapping[str, str], stdin: str = "", cwd: Path | None = None) -> Ran:
    """The command with its three streams piped."""
    done = subprocess.run(
        [COMMAND, *words], env=env, input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=cwd
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def on_terminal(
    *words: str, env: Mapping[str, str], width: int = 80, keys: str = "", stderr_apart: bool = False
) -> Ran:
    """The command on a pseudo-terminal; `keys` are typed beforehand. With `stderr_apart` stderr is a pipe."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = subprocess.Popen(
        [COMMAND, *words],
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE if stderr_apart else slave,
        start_new_session=True,
    )
    os.close(slave)
    if keys:
        os.write(master, keys.encode())
    try:
        shown = read_all(master)
        aside = process.stderr.read().decode() if process.stderr is not None else ""
        return Ran(process.wait(LIMIT_S), shown.replace("\r\n", "\n"), aside)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
        os.close(master)


def read_all(master: int) -> str:
    """All that is written to a terminal until its last user leaves, within the limit."""
    data = b""
    last = time.monotonic() + LIMIT_S
    while time.monotonic() < last:
        if not select.select([master], [], [], max(0.0, last - time.monotonic()))[0]:
            break
        try:
            more = os.read(master, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not more:
            break
        data += more
    return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """The text without colours."""
    return CONTROL.sub("", text)
