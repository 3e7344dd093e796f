"""`dragoman serve`: the hub. The only command file that imports the server.

Reads flags and settings, and turns what goes wrong into messages; everything else is the server's.
"""

import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dragoman.cli.config import wrong_setting
from dragoman.cli.fault import Exit, Fault
from dragoman.cli.listening import cannot_listen, require_free
from dragoman.cli.output import Output

if TYPE_CHECKING:
    from dragoman.cli.banner import Facts
    from dragoman.config import Settings

# What dragoman[hub] brings and the server imports at its top.
PACKAGES: Final = (
    "uvicorn",
    "starlette",
    "jsonschema_rs",
    "cryptography",
    "joserfc",
    "websockets",
)


@click.command("serve", epilog="Example: dragoman serve --host 0.0.0.0 --port 8700")
@click.option("--host", metavar="ADDRESS", help="Where to listen. [default: 127.0.0.1]")
@click.option("--port", metavar="PORT", help="The port. [default: 8700]")
@click.option("--data", metavar="DIR", help="The data directory. [default: the user's data folder]")
@click.option("--config", "config_file", type=click.Path(path_type=Path), metavar="FILE", help="A settings file.")
@click.option("--auth", metavar="token|none", help="Who may call; none only on loopback. [default: token]")
@click.option("--store", metavar="URL", help="Where calls are kept. [default: sqlite]")
@click.option("--bus", metavar="URL", help="How replicas talk. [default: local]")
@click.option("--log", metavar="json|pretty", help="The form of the log. [default: pretty on a terminal]")
def command(config_file: Path | None, **flags: str | None) -> int:
    """Run the hub.

    Every flag is also a setting of the environment (DRAGOMAN_PORT) and of the settings file (port).
    """
    # With its own time source: not for --help.
    from dragoman.cli.banner import show

    given = {name: value for name, value in flags.items() if value is not None}
    return run("serve", settings_of(given, config_file), show)


def settings_of(flags: Mapping[str, str], config_file: Path | None) -> "Settings":
    """The settings of this start; unknown variables are warned of. Raises Fault."""
    # Brings msgspec and the settings' types: not for --help.
    from dragoman.config import SettingError, load

    try:
        settings = load(flags, os.environ, config_file)
    except SettingError as error:
        raise wrong_setting(error.message, error.next) from error
    for warning in settings.warnings:
        Output().warning(warning)
    return settings


def run(name: str, settings: "Settings", banner: "Callable[[Facts], None]") -> int:
    """Serve until told to stop. Raises Fault when the hub cannot start."""
    require_server(name)
    require_free(settings.host, settings.port)
    # The server and its packages are an extra.
    from dragoman.security.private_files import SecretRefused
    from dragoman.server.app import StoreInUse, serve
    from dragoman.server.listen import CannotListen
    from dragoman.server.run import StartFailed

    try:
        return serve(settings, banner=banner)
    except StoreInUse as error:
        holder = "another process" if error.pid is None else f"pid {error.pid}"
        raise Fault(
            f"{error.path} is in use by {holder}",
            next="one process per SQLite file: stop it, or give this one another --data directory",
            exit_code=Exit.USAGE,
            code="STORE_IN_USE",
        ) from error
    except SecretRefused as error:
        raise Fault(error.message, next=error.next, exit_code=Exit.USAGE, code="WRONG_SETTING") from error
    except StartFailed as error:
        raise Fault("the hub could not start", next="the lines above say why", code="START_FAILED") from error
    except CannotListen as error:
        # Taken between our look and the server's own.
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else OSError(str(error))
        raise cannot_listen(settings.host, settings.port, cause) from error


def require_server(name: str) -> None:
    """Return if the server's packages are installed. Raises Fault."""
    missing = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise Fault(
            f"dragoman {name} needs the server",
            next='pip install "dragoman[hub]"',
            exit_code=Exit.USAGE,
            code="MISSING_EXTRA",
            details={"missing": missing},
        )
