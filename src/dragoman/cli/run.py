"""`dragoman run FILE[:NAME]`: start the agent in a file, connected to a hub or listening itself."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.environment import add_environment
from dragoman.cli.fault import Exit, Fault, wrong_usage
from dragoman.model.secret import Secret

if TYPE_CHECKING:
    from dragoman.model.errors import DragomanError
    from dragoman.sdk.agent.agent import Agent


@click.command("run", epilog="Example: dragoman run my-agent/agent.py")
@click.argument("target", metavar="FILE[:NAME]")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen there, in every dialect; 0: on a free port.")
@click.option("--hub", metavar="URL", help="Connect to that hub; with --port, register there. [$DRAGOMAN_URL]")
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="A file that holds the token.")
@click.option("--reload", is_flag=True, help="Start again when a file in its folder changes; running calls finish.")
@click.option("--env-file", type=click.Path(path_type=Path), metavar="FILE", help="More settings, as NAME=value lines.")
def command(
    target: str, port: int | None, hub: str | None, token_file: Path | None, reload: bool, env_file: Path | None
) -> int:
    """Start the agent in a file: it connects to a hub, or listens.

    NAME may be left out where the file defines one agent; it may name an agent of another framework, or a function.
    Ctrl-C lets running calls finish; a second one ends at once.
    """
    if env_file is not None:
        add_environment(env_file)
    # What follows brings msgspec and the SDK: not for --help.
    from dragoman.cli.agent_file import load_agent, place_of

    if reload:
        from dragoman.cli.reload import run_reloading, this_program

        path, _ = place_of(target)
        words = [word for word in sys.argv[1:] if word != "--reload"]
        return run_reloading([*this_program(), *words], [path.resolve().parent])
    agent = load_agent(target)
    if token_file is not None:
        agent.api_key = _token(token_file)
    return _start(agent, port, hub)


def _start(agent: "Agent", port: int | None, hub: str | None) -> int:
    """Let it work until a signal. Raises Fault."""
    from dragoman.cli.serve import require_server
    from dragoman.model.errors import DragomanError
    from dragoman.observe import logs

    if port is not None:
        require_server("run --port")
    logs.configure("pretty" if sys.stderr.isatty() else "json")
    try:
        if port is not None:
            agent.serve(port=port, register=hub)
        else:
            agent.hub = hub or agent.hub
            agent.start()
    except DragomanError as error:
        raise _refused(error, agent) from error
    return Exit.DONE


def _refused(error: "DragomanError", agent: "Agent") -> Fault:
    from dragoman.cli.refusals import Refusal, fault_of, refused_token

    next_step = getattr(error, "next", None)
    if isinstance(next_step, str):
        return Fault(error.message, next=next_step, exit_code=Exit.USAGE, code=error.code)
    refusal = Refusal(error.http_status, error.code, error.message.rstrip("."), error.details, error.retryable)
    if error.http_status in (401, 403):
        shown = agent.api_key.reveal() if agent.api_key is not None else os.environ.get("DRAGOMAN_TOKEN")
        return refused_token(refusal, shown)
    return fault_of(refusal, agent=agent.id)


def _token(file: Path) -> Secret:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise wrong_usage(f"{file} cannot be read: {error}", next="--token-file FILE") from error
    if not text:
        raise wrong_usage(f"{file} is empty", next="--token-file FILE")
    return Secret(text)
