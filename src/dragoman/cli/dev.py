"""`dragoman dev`: a hub for trying things out, with four demo agents, on this machine only.

Data is kept in the folder `dev` of the data directory, apart from that of `dragoman serve`. The demo agents are a
process of their own (`demo/`); it ends when this one does.

    dev ── stdin pipe: where the hub is; closes with us ──▶ demo agents ── register, connect ──▶ hub (this process)
        ◀── one line: who is there ─────────────────────────
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
from dragoman.cli.session import confirm
from dragoman.sdk.client.settings import DEFAULT_HUB, DEV_FOLDER, data_directory

if TYPE_CHECKING:
    from dragoman.cli.banner import Facts
    from dragoman.cli.demo.child import DemoAgents
    from dragoman.config import Settings

AGENT_DATA: Final = "demo"
CHECKED: Final = "DRAGOMAN_HEALTH_EVERY_S"
CHECKED_S: Final = "5"  # Who tries things out restarts agents, and looks at once.
# Files that show that a folder is a hub's: nothing else is ever deleted.
OURS: Final = ("root.key", "admin-token", "hub.db")


@click.command("dev", epilog="Example: dragoman dev --port 8701")
@click.option("--port", metavar="PORT", help="The hub's port. [default: 8700]")
@click.option("--no-demo", is_flag=True, help="Without the demo agents.")
@click.option("--fresh", is_flag=True, help="Forget what was kept from earlier runs.")
@click.option("--reload", is_flag=True, help="Start hub and agents again when their files change.")
@click.option("--auth", type=click.Choice(["token", "none"]), default="none", show_default=True, help="Who may call.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(port: str | None, no_demo: bool, fresh: bool, reload: bool, auth: str, yes: bool) -> int:
    """Run a hub with demo agents on this machine."""
    require_server("dev")
    data = data_directory(os.environ) / DEV_FOLDER
    flags = {"host": "127.0.0.1", "auth": auth, "data": str(data), **({"port": port} if port else {})}
    if not os.environ.get(CHECKED):
        flags["health_every_s"] = CHECKED_S
    settings = settings_of(flags, None)
    require_free(settings.host, settings.port)
    if fresh:
        forget(data, yes=yes)
    if reload:
        return _reloading()
    # A folder that is made on the way to another has the mode of all: doctor would find it readable by others.
    data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if no_demo:
        return run("dev", settings, lambda facts: _tell(facts, None))
    # Threads and processes: not for --help.
    from dragoman.cli.demo.child import DemoAgents

    data.mkdir(mode=0o700, parents=True, exist_ok=True)  # before the agents make their own folder in it
    with DemoAgents(data / AGENT_DATA) as demo:
        return run("dev", settings, lambda facts: _join(settings, facts, demo))


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
    return f"{program()} call brief{_hub_flag(url)} --input topic=tides --stream"


def next_line(url: str) -> str:
    """What to do after that: an agent of one's own."""
    return f"{program()} new my-agent && {program()} run my-agent/agent.py{_hub_flag(url)}"


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


def _hub_flag(url: str) -> str:
    other = os.environ.get("DRAGOMAN_URL", DEFAULT_HUB).rstrip("/") != url
    return f" --hub {url}" if other else ""


def _join(settings: "Settings", facts: "Facts", demo: "DemoAgents") -> None:
    """Tell the agents where the hub is, and the operator, once they are there, what there is."""
    token = None
    if settings.auth == "token":
        given = settings.admin_token
        token = given.reveal() if given is not None else (settings.data / "admin-token").read_text().strip()
    demo.join(facts.url, token, lambda: _tell(facts, demo))


def _tell(facts: "Facts", demo: "DemoAgents | None") -> None:
    from dragoman.cli.banner import tell, token_line

    block: list[tuple[str, list[str]]] = []
    if facts.auth == "token":
        block.append(("admin token", [token_line(facts)]))
    block.append(("status", [f"{facts.url.replace('127.0.0.1', 'localhost')}/"]))
    if demo is not None:
        block.append(("agents", demo.lines()))
        if demo.ready:
            block.append(("try", [try_line(facts.url)]))
    block.append(("next", [next_line(facts.url)]))
    tell(facts, "dev", block)


def _reloading() -> int:
    """This command, without --reload and what was done already, again and again."""
    from dragoman.cli.reload import run_reloading, this_program

    words = [word for word in sys.argv[1:] if word not in ("--reload", "--fresh", "--yes")]
    sources = Path(__file__).parents[1]
    return run_reloading([*this_program(), *words], [sources])
