"""What a starting hub tells its operator: a block for people on a terminal, one JSON line per fact for logs.

The line `dragoman is listening on …`, which scripts wait for, is the server's own. The admin token is shown when it
was made just now, and never again.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from dragoman.cli.output import DIM, Output, say
from dragoman.model.secret import Secret

LABEL_WIDTH: Final = 11


class Facts(Protocol):
    """What the server knows once it listens."""

    @property
    def version(self) -> str:
        """The hub's version."""
        ...

    @property
    def url(self) -> str:
        """Where it listens, such as http://127.0.0.1:8700."""
        ...

    @property
    def data(self) -> Path:
        """Its data directory."""
        ...

    @property
    def auth(self) -> str:
        """`token` or `none`."""
        ...

    @property
    def admin_token(self) -> Secret | None:
        """The admin token, if it was made just now."""
        ...

    @property
    def admin_token_file(self) -> Path | None:
        """Where the admin token is kept, unless the operator gave it."""
        ...


# A label and its lines; a label may be "" for a line that stands alone.
Block = Sequence[tuple[str, Sequence[str]]]


def show(facts: Facts) -> None:
    """Tell what `dragoman serve` started."""
    block: list[tuple[str, Sequence[str]]] = []
    if facts.auth == "token":
        block.append(("admin token", [token_line(facts)]))
    block.append(("register", [f"{facts.url}/v1/a2a/registry"]))
    block.append(("call", [f"{facts.url}/v1/a2a/call"]))
    if facts.auth == "none":
        block.append(("try", ["dragoman register http://HOST:PORT"]))
    tell(facts, "", block)


def tell(facts: Facts, kind: str, block: Block) -> None:
    """Print the block."""
    auth = "none (this machine only)" if facts.auth == "none" else facts.auth
    if sys.stderr.isatty():
        title = f"dragoman {facts.version}{kind and ' ' + kind}"
        say(f"{title} · data {tilde(facts.data)} · auth {auth}\n")
        output = Output()
        for label, lines in block:
            for number, line in enumerate(lines):
                name = (label if number == 0 else "").ljust(LABEL_WIDTH)
                say(f"  {output.paint(name, DIM)}  {line}")
        say("")
    else:
        log_line("starting", {"version": facts.version, "data": str(facts.data), "auth": facts.auth})
        for label, lines in block:
            for line in lines:
                log_line(label, {"value": line})


def token_line(facts: Facts) -> str:
    """The admin token this once, or where it is kept."""
    if facts.admin_token is not None:
        place = f"; also in {tilde(facts.admin_token_file)} (0600)" if facts.admin_token_file else ""
        return f"{facts.admin_token.reveal()}  shown this once{place}"
    return f"in {tilde(facts.admin_token_file)}" if facts.admin_token_file else "as set in DRAGOMAN_ADMIN_TOKEN"


def log_line(message: str, fields: Mapping[str, str]) -> None:
    """One fact as a line of JSON."""
    # Only a starting server needs the time of day here.
    from dragoman.ports.clock import SystemClock

    at = SystemClock().now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
    say(json.dumps({"timestamp": at, "level": "info", "message": message, **fields}, ensure_ascii=False))


def tilde(path: Path | None) -> str:
    """The path as people write it."""
    home = os.environ.get("HOME", "")
    text = str(path)
    return "~" + text[len(home) :] if home and text.startswith(home + "/") else text
