"""What `backup`, `restore` and `migrate` share: whose data, and what may keep them from it."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.fault import Exit, Fault, wrong_usage
from dragoman.cli.output import Output
from dragoman.cli.serve import require_server, settings_of

if TYPE_CHECKING:
    from dragoman.config import Settings


def data_settings(name: str, data: Path | None) -> "Settings":
    """The settings that say where the data is. Raises Fault: no server here, or a store that is no file."""
    require_server(name)
    store = os.environ.get("DRAGOMAN_STORE", "")
    if store.startswith(("postgres:", "postgresql:")):
        raise wrong_usage(
            f"{name} is for SQLite; this hub keeps its data in PostgreSQL",
            next="use pg_dump and pg_restore: docs/operations.md",
        )
    return settings_of({} if data is None else {"data": str(data)}, None)


@contextmanager
def told() -> Generator[None]:
    """What goes wrong with a file, as a fault."""
    from dragoman.security.private_files import SecretRefused
    from dragoman.server.upkeep import NoDatabase, NoRootKey, SchemaTooNew, StoreInUse

    try:
        yield
    except StoreInUse as error:
        holder = "another process" if error.pid is None else f"pid {error.pid}"
        raise _refused(f"{error.path} is in use by {holder}", "stop the hub first", "STORE_IN_USE") from error
    except NoRootKey as error:
        raise _refused(str(error), "put the root.key that the file was made with there", "NO_ROOT_KEY") from error
    except SecretRefused as error:
        raise _refused(error.message, error.next, "WRONG_SETTING") from error
    except SchemaTooNew as error:
        raise _refused(str(error), "install the version that wrote it", "SCHEMA_TOO_NEW") from error
    except NoDatabase as error:
        raise Fault(str(error), next="name another file, or --data DIR", code="NO_DATABASE") from error
    except FileExistsError as error:
        raise wrong_usage(f"{error.filename2 or error.filename} exists", next="name another file") from error
    except OSError as error:
        raise Fault(f"{error.filename}: {error.strerror}", next="check the folder and its free space") from error


@contextmanager
def bar(output: Output, label: str) -> Generator[Callable[[int, int], None]]:
    """A bar on stderr, for people only: it takes how much is done, and of how much.

    It is drawn from the first report on: what fails before leaves no empty bar above its message.
    """
    hidden = output.quiet or output.json or not sys.stderr.isatty()
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=True) as drawn:

        def progress(done: int, total: int) -> None:
            drawn.hidden = hidden
            drawn.length = max(total, 1)
            drawn.update(done - drawn.pos)

        yield progress


def _refused(message: str, next_step: str, code: str) -> Fault:
    return Fault(message, next=next_step, exit_code=Exit.USAGE, code=code)
