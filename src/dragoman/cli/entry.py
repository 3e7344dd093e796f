"""The group of all commands, and the one place where failures become messages and exit codes.

A command's module is imported when the command is called: `dragoman --help` needs neither the hub, the HTTP client,
rich nor msgspec. What each command does is in the file of its name.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Final

import click

from dragoman import __version__
from dragoman.cli.fault import Exit, Fault, wrong_usage
from dragoman.cli.output import Output

# Name, module under dragoman.cli, and the line in --help; a test compares the line with the command's own first one.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "dev": ("dev", "Run a hub with demo agents on this machine."),
    "new": ("new", "Make a folder with an agent, a test and a README."),
    "run": ("run", "Start the agent in a file: it connects to a hub, or listens."),
    "serve": ("serve", "Run the hub."),
    "register": ("register", "Register an agent: by its URL, or by a card file."),
    "discover": ("discover", "Find agents, best first."),
    "call": ("calls.call", "Call a skill and print its answer."),
    "tasks": ("tasks", "List, show and cancel calls of every dialect."),
    "trace": ("trace", "Show a trace: every call in it, its attempts, and how long each took."),
    "tail": ("tail", "Follow calls live, one line each, until Ctrl-C."),
    "agents": ("agents", "List, show, pause, resume, limit and remove agents."),
    "deliveries": ("deliveries", "List callbacks and webhooks, and send them once more."),
    "doctor": ("doctor.doctor", "Check an agent by its URL, or this installation and its hub."),
    "translate": ("translate", "Put a message, answer, event or card into another dialect."),
    "keys": ("keys", "Create, list, rotate and revoke keys."),
    "audit": ("audit", "Check that nobody changed what was done and written."),
    "forget": ("forget", "Remove what was written in calls; ids, times and the audit stay."),
    "bench": ("bench", "Put load on a hub of this machine and measure it."),
    "backup": ("upkeep.backup", "Copy a hub's database, running or not, into a file."),
    "restore": ("upkeep.restore", "Put a backup in the place of a stopped hub's database."),
    "migrate": ("upkeep.migrate", "Bring the schema of a hub's data up to date."),
    "config": ("config", "Show settings and where each comes from."),
    "version": ("version", "Show the versions of what is installed."),
}


class Commands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        known = COMMANDS.get(cmd_name)
        if known is None:
            return None
        command: object = importlib.import_module(f"dragoman.cli.{known[0]}").command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in --help, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _install_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    if shell is None or ctx.resilient_parsing:
        return
    # Rarely needed, so not for every start.
    from dragoman.cli.completion import install

    install(shell)
    ctx.exit()


@click.group(
    cls=Commands,
    epilog="Example: dragoman call summarize --input content=@article.txt",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="dragoman", message="%(prog)s %(version)s")
@click.option(
    "--install-completion",
    metavar="[SHELL]",
    is_flag=False,
    flag_value="",
    expose_value=False,
    is_eager=True,
    callback=_install_completion,
    help="Install completion for this shell, or for the one named.",
)
def dragoman() -> None:
    """Any agent calls any other, whatever protocol each speaks."""


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        result: object = dragoman.main(prog_name="dragoman", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else Exit.DONE
    except Fault as fault:
        return _failed(fault)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # A command that has commands, without one: what there is, on stderr.
        return Exit.USAGE
    except click.UsageError as error:
        return _failed(_usage(error))
    except click.ClickException as error:
        return _failed(wrong_usage(_sentence(error.format_message()), next="dragoman --help"))
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has enough. Python flushes stdout once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception:  # noqa: BLE001 - the one place where surprises are told; everything expected is a Fault
        return _surprised()


def _failed(fault: Fault) -> int:
    # Of the options nothing may have been parsed yet: the words of the command line decide.
    words = sys.argv[1:]
    Output(json="--json" in words, color="--no-color" not in words).fault(fault)
    return fault.exit_code


def _surprised() -> int:
    # Rare, and slow to import.
    import traceback

    traceback.print_exc()
    fault = Fault(f"this is a fault of dragoman {__version__} itself", next="report it with the lines above")
    return _failed(fault)


def _usage(error: click.UsageError) -> Fault:
    path = error.ctx.command_path if error.ctx is not None else "dragoman"
    return wrong_usage(_sentence(error.format_message()), next=f"{path} --help")


def _sentence(text: str) -> str:
    """Click's message in the form of ours: no capital, no full stop."""
    text = " ".join(text.split())
    return text[:1].lower() + text[1:].rstrip(".")
