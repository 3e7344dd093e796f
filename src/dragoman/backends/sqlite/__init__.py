"""The store of a hub that is one process: one SQLite file, one writer thread, a few readers."""

from dragoman.backends.sqlite.lock import StoreInUse
from dragoman.backends.sqlite.schema import SchemaTooNew
from dragoman.backends.sqlite.store import SqliteStore

__all__ = ["SchemaTooNew", "SqliteStore", "StoreInUse"]
