"""`dragoman version`: what is installed here, and which version the hub has."""

import platform
import sqlite3
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Final

import click

from dragoman import __version__
from dragoman.cli.fault import Fault
from dragoman.cli.session import common, current_hub, current_output
from dragoman.cli.table import show_facts

# One package tells whether an extra is there.
EXTRAS: Final = {
    "hub": "uvicorn", "postgres": "asyncpg", "nats": "nats-py", "keyring": "keyring", "grpc": "grpcio",
}  # fmt: skip
HUB_S: Final = 2.0


@click.command("version", epilog="Example: dragoman version --json")
@common
def command() -> None:
    """Show the versions of what is installed."""
    output = current_output()
    hub = current_hub(output)
    try:
        found = str(hub.get("/", timeout_s=HUB_S).get("version") or "unknown")
    except Fault as fault:
        found = None
        output.note(f"{fault.message}")
    facts = {
        "dragoman": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "extras": [name for name, package in EXTRAS.items() if is_there(package)],
        "hub": found,
    }
    if output.json:
        output.document(facts)
    else:
        show_facts(output, facts)


def is_there(package: str) -> bool:
    """Whether a package is installed."""
    try:
        installed(package)
    except PackageNotFoundError:
        return False
    return True
