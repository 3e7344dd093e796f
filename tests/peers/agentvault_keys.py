"""AgentVault's own KeyManager and ours at the same keyring and key files: each reads what the other wrote.

Run with PYTHONPATH naming our sources and a folder for key files; prints what each side saw, as JSON. The keyring is
the published package with a store that ends with this process.
"""

import json
import logging
import sys
from pathlib import Path

import keyring
import keyring.backend
from agentvault import KeyManager as Theirs

from dragoman.security.key_manager import KeyManager as Ours


class Passing(keyring.backend.KeyringBackend):
    """A store of this process."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


def of_ours(keys: Ours, service: str) -> list[str | None]:
    key, client = keys.get_key(service), keys.get_oauth(service)
    shown = [None, None] if client is None else [client.client_id.reveal(), client.client_secret.reveal()]
    return [None if key is None else key.reveal(), *shown]


def of_theirs(keys: Theirs, service: str) -> list[str | None]:
    return [keys.get_key(service), keys.get_oauth_client_id(service), keys.get_oauth_client_secret(service)]


def main() -> None:
    folder = Path(sys.argv[1])
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    keyring.set_keyring(Passing())
    theirs = Theirs(use_keyring=True)
    theirs.set_key_in_keyring("Org/Agent", "of-them")
    theirs.set_oauth_creds_in_keyring("Org/Agent", "them", "their-secret")
    ours = Ours(use_keyring=True)
    ours.set_key("our-org/agent", "of-us")
    ours.set_oauth("our-org/agent", "us", "our-secret")
    seen = {
        "keyring, theirs read by us": of_ours(ours, "org/agent"),
        "keyring, ours read by them": of_theirs(theirs, "OUR-ORG/agent"),
    }
    for name in ("keys.env", "keys.json"):
        written = Ours(folder / name)
        written.set_key("our-org/agent", "of-us")
        written.set_oauth("our-org/agent", "us", "our-secret")
        seen[f"{name}, ours read by them"] = of_theirs(Theirs(key_file_path=folder / name), "our-org/agent")
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
