"""Credentials towards agents, by the name of the service: key file, then environment, then (on demand) OS keyring.

The names are those of AgentVault's tools, so that what they stored is found; our own go first. Nothing is kept in
memory: each question looks again, and what is found is a `Secret`. Both may block: a loop asks from a thread.
"""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast, final

import msgspec

from dragoman.model.extras import MissingExtra
from dragoman.model.secret import Secret
from dragoman.security.key_files import KeyFile, KeysRefused, key_file_at
from dragoman.security.key_names import Client, client_in, key_in

__all__ = ["KeyManager", "KeysRefused", "OAuthClient"]

LONGEST: Final = 4096

Found = TypeVar("Found")


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """What an OAuth2 client shows to get a token."""

    client_id: Secret
    client_secret: Secret


@final
class KeyManager:
    """Finds and keeps the keys and OAuth2 clients by which agents are called.

    An id is the `service_identifier` of an agent's card, or else its humanReadableId, in any case.
    """

    __slots__ = ("_file", "_keyring")

    def __init__(self, key_file: str | os.PathLike[str] | None = None, use_keyring: bool = False) -> None:
        """Look at nothing yet. Raises KeysRefused for a name of no known kind, MissingExtra without keyring."""
        self._file: KeyFile | None = None if key_file is None else key_file_at(Path(key_file))
        self._keyring = _Keyring() if use_keyring else None

    def get_key(self, id: str) -> Secret | None:
        """The key or token of that service, if there is one. Raises KeysRefused."""
        id = _id(id)
        key = self._file.key(id) if self._file else None
        key = key or key_in(_environment(), id)
        if key is None and self._keyring is not None:
            key = self._keyring.key(id)
        return Secret(key) if key else None

    def get_oauth(self, id: str) -> OAuthClient | None:
        """The OAuth2 client of that service, if there is one; both halves are of one place. Raises KeysRefused."""
        id = _id(id)
        client = self._file.client(id) if self._file else None
        client = client or client_in(_environment(), id)
        if client is None and self._keyring is not None:
            client = self._keyring.client(id)
        return OAuthClient(client_id=Secret(client[0]), client_secret=Secret(client[1])) if client else None

    def set_key(self, id: str, key: str | Secret) -> None:
        """Keep a key in the key file, else in the keyring. Raises KeysRefused."""
        self._store().put_key(_id(id), _value(key, "key"))

    def set_oauth(self, id: str, client_id: str | Secret, client_secret: str | Secret) -> None:
        """Keep an OAuth2 client in the key file, else in the keyring. Raises KeysRefused."""
        self._store().put_client(_id(id), (_value(client_id, "client id"), _value(client_secret, "client secret")))

    def _store(self) -> "KeyFile | _Keyring":
        store = self._file or self._keyring
        if store is None:
            raise KeysRefused("There is nowhere to keep it: KeyManager(key_file=…) or KeyManager(use_keyring=True).")
        return store


class _KeyringModule(Protocol):
    def get_password(self, service_name: str, username: str) -> str | None: ...

    def set_password(self, service_name: str, username: str, password: str) -> None: ...


class _Keyring:
    """The operating system's own store, under AgentVault's names."""

    def __init__(self) -> None:
        try:
            # An extra, and only for those who ask for it.
            self._module = cast("_KeyringModule", importlib.import_module("keyring"))
        except ImportError:
            raise MissingExtra(
                "The OS keyring needs the package keyring", next='Install it: pip install "dragoman[keyring]"'
            ) from None

    def key(self, id: str) -> str | None:
        return self._asked(lambda: self._module.get_password(f"agentvault:{id}", id))

    def client(self, id: str) -> Client | None:
        place = f"agentvault:oauth:{id}"
        client_id = self._asked(lambda: self._module.get_password(place, "clientId"))
        client_secret = self._asked(lambda: self._module.get_password(place, "clientSecret"))
        return (client_id, client_secret) if client_id and client_secret else None

    def put_key(self, id: str, key: str) -> None:
        self._asked(lambda: self._module.set_password(f"agentvault:{id}", id, key))

    def put_client(self, id: str, client: Client) -> None:
        place = f"agentvault:oauth:{id}"
        self._asked(lambda: self._module.set_password(place, "clientId", client[0]))
        self._asked(lambda: self._module.set_password(place, "clientSecret", client[1]))

    def _asked(self, question: Callable[[], Found]) -> Found:
        try:
            return question()
        except Exception as error:  # noqa: BLE001 - each system's store has errors of its own
            # Their text is not ours to show: it may quote what was to be stored.
            raise KeysRefused(
                f"The OS keyring failed ({type(error).__name__}): unlock it, or use a key file."
            ) from None


def _environment() -> dict[str, str]:
    # A hub's setting, not the key of a service called `file`.
    return {name.lower(): value for name, value in os.environ.items() if name != "DRAGOMAN_KEY_FILE"}


def _id(id: str) -> str:
    if not id.strip() or not id.isprintable():
        raise KeysRefused("The id of a service is a word, such as the service_identifier of an agent's card.")
    return id.lower()


def _value(value: str | Secret, what: str) -> str:
    text = value.reveal() if isinstance(value, Secret) else value
    if not text or not text.isprintable() or len(text) > LONGEST:
        raise KeysRefused(f"A {what} is one line of at most {LONGEST} characters.")
    return text
