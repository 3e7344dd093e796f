"""`dragoman dev`: a hub for trying things out, with a demo agent, on this machine only.

Data is kept in the folder `dev` of the data directory, apart from that of `dragoman serve`. The demo agent is a
process of its own (`demo/editor.py`); it ends when this one does.

    dev ── stdin pipe, closes with us ──▶ editor ── POST /v1/a2a/registry ──▶ hub (this process)
        ◀── one line: registered ───────
"""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dragoman.cli.fault import wrong_usage
from dragoman.cli.listening import require_free
from dragoman.cli.serve import require_server, run, settings_of
from dragoman.cli.session import DEFAULT_HUB, DEV_FOLDER, confirm, data_directory

if TYPE_CHECKING:
    from dragoman.cli.banner import Facts
    from dragoman.cli.demo.child import DemoAgent

SAMPLE: Final = "Tides rise and fall twice a day. The moon pulls the sea. The sun helps a little."
# Files that show that a folder is a hub's: nothing else is ever deleted.
OURS: Final = ("root.key", "admin-token", "hub.db")


@click.command("dev", epilog="Example: dragoman dev --port 8701")
@click.option("--port", metavar="PORT", help="The hub's port. [default: 8700]")
@click.option("--no-demo", is_flag=True, help="Without the demo agent.")
@click.option("--fresh", is_flag=True, help="Forget what was kept from earlier runs.")
@click.option("--auth", type=click.Choice(["token", "none"]), default="none", show_default=True, help="Who may call.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(port: str | None, no_demo: bool, fresh: bool, auth: str, yes: bool) -> int:
    """Run a hub with a demo agent on this machine."""
    require_server("dev")
    data = data_directory(os.environ) / DEV_FOLDER
    flags = {"host": "127.0.0.1", "auth": auth, "data": str(data), **({"port": port} if port else {})}
    settings = settings_of(flags, None)
    require_free(settings.host, settings.port)
    if fresh:
        forget(data, yes=yes)
    # Threads and processes: not for --help.
    from dragoman.cli.demo.child import DemoAgent

    if no_demo:
        return run("dev", settings, lambda facts: _tell(facts, None))
    token_file = data / "admin-token" if auth == "token" else None
    with DemoAgent(f"http://127.0.0.1:{settings.port}", token_file) as demo:
        return run("dev", settings, lambda facts: demo.when_ready(lambda: _tell(facts, demo)))


def forget(data: Path, *, yes: bool) -> None:
    """Delete the folder of earlier runs, if there is one and it is a hub's. Raises Fault."""
    if not data.exists():
        return
    if any(data.iterdir()) and not any((data / name).exists() for name in OURS):
        raise wrong_usage(f"{data} holds no hub's data, so it is not deleted", next="check DRAGOMAN_DATA")
    confirm(f"Delete {data} with all its calls, agents and keys?", yes=yes)
    shutil.rmtree(data)


def try_line(url: str) -> str:
    """A command that works as it is printed, from where `dragoman dev` was started."""
    other = os.environ.get("DRAGOMAN_URL", DEFAULT_HUB).rstrip("/") != url
    hub = f" --hub {url}" if other else ""
    return f'{program()} call summarize{hub} --input content="{SAMPLE}" --input max_length=40'


def program() -> str:
    """How this program is called here: by its name where the shell finds it, else by its path."""
    started = Path(sys.argv[0])
    if started.name != "dragoman":
        return f"{shlex.quote(sys.executable)} -m dragoman"
    found = shutil.which("dragoman")
    if found is not None and Path(found).resolve() == started.resolve():
        return "dragoman"
    path = started.absolute()
    near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return shlex.quote(str(near))


def _tell(facts: "Facts", demo: "DemoAgent | None") -> None:
    from dragoman.cli.banner import tell, token_line

    block: list[tuple[str, list[str]]] = []
    if facts.auth == "token":
        block.append(("admin token", [token_line(facts)]))
    if demo is not None:
        block.append(("agents", demo.lines()))
        if demo.port is not None:
            block.append(("try", [try_line(facts.url)]))
    block.append(("next", [f"{program()} register http://HOST:PORT"]))
    tell(facts, "dev", block)
