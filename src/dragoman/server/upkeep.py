"""What an operator does to a hub's data beside it: back up, restore, bring the schema up to date.

Like `app.py` it names a backend: these are works on one kind of store, and need no hub.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from dragoman.backends.sqlite import upkeep
from dragoman.backends.sqlite.lock import StoreInUse
from dragoman.backends.sqlite.schema import Migration, SchemaTooNew
from dragoman.backends.sqlite.upkeep import NoDatabase
from dragoman.config import Settings
from dragoman.hub.signing_keys import NAME as SIGNING_KEY
from dragoman.ports.clock import Clock
from dragoman.security.private_files import private_directory, read_private
from dragoman.security.sealed import ROOT_KEY_FILE, CannotOpen, RootKey, Sealer
from dragoman.server.app import DATABASE

__all__ = ["NoDatabase", "NoRootKey", "SchemaTooNew", "StoreInUse", "backup", "bring_up", "pending", "restore"]

PRE: Final = "_pre_"

Progress = Callable[[int, int], None]


class NoRootKey(Exception):
    """The root key that a file was made with is not here; its text says what is."""


def backup(settings: Settings, target: Path, progress: Progress) -> Path:
    """Copy the database beside the running hub; where its root key lies, which no copy holds.

    Raises NoDatabase, FileExistsError, OSError.
    """
    upkeep.copy_out(settings.data / DATABASE, target, progress)
    return settings.data / ROOT_KEY_FILE


def restore(settings: Settings, copy: Path, progress: Progress) -> Path | None:
    """Put a copy in the place of the database; where the old one is kept. Raises what `may_restore` does, OSError."""
    may_restore(settings, copy)
    return upkeep.put_back(copy, settings.data / DATABASE, progress)


def may_restore(settings: Settings, copy: Path) -> None:
    """Return where a copy is whole and its root key is here. Raises NoDatabase, NoRootKey, SecretRefused."""
    upkeep.check(copy)
    private_directory(settings.data)
    place = settings.data / ROOT_KEY_FILE
    text = settings.root_key.reveal() if settings.root_key is not None else read_private(place)
    if text is None:
        raise NoRootKey(f"there is no {place}")
    sealed = upkeep.sealed_value(copy, SIGNING_KEY)
    if sealed is None:
        return
    try:
        Sealer(RootKey.from_text(text, source=str(place))).open(
            sealed, table="sealed", column="value", row=SIGNING_KEY, tenant=""
        )
    except CannotOpen as error:
        raise NoRootKey(f"{place} is not the one that {copy} was made with") from error


def pending(settings: Settings) -> Sequence[Migration]:
    """The migrations that the data lacks. Raises NoDatabase, SchemaTooNew."""
    return upkeep.pending(settings.data / DATABASE)


def bring_up(settings: Settings, clock: Clock, step: Migration) -> None:
    """Apply the migrations through this one. Raises StoreInUse, NoDatabase, SchemaTooNew."""
    upkeep.bring_up(settings.data / DATABASE, step.version, round(clock.now().timestamp() * 1_000_000))
