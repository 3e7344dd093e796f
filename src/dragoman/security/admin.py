"""The admin token: given by the operator and then judged, or made on first start and kept in the data directory.

Does not compare tokens with requests; `hub/authenticate.py` does. Nothing here has a default value.
"""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

from dragoman.model.secret import Secret
from dragoman.security.keys import new_key, parse_key
from dragoman.security.private_files import SecretRefused, create_private, private_directory, read_private

ADMIN_TOKEN_FILE: Final = "admin-token"  # noqa: S105 - a file name
SETTING: Final = "DRAGOMAN_ADMIN_TOKEN"
SHORTEST: Final = 32
SHORTEST_ON_LOOPBACK: Final = 16
FEWEST_DISTINCT: Final = 8
# Words of manuals and compose files, compared without case and without - _ and dots. None is shorter than six
# characters: random tokens would contain it now and then.
EXAMPLE_WORDS: Final = (
    "changeme", "changethis", "replaceme", "replacethis", "insertyour", "yourtoken", "yoursecret", "youradmin",
    "example", "placeholder", "password", "passw0rd", "secret", "letmein", "default", "admintoken", "dragoman",
    "qwerty", "xxxxxx",
)  # fmt: skip


def load_admin_token(
    data: Path, given: Secret | None, *, loopback: bool, token_bytes: Callable[[int], bytes] = os.urandom
) -> tuple[Secret, bool]:
    """The admin token and whether it was made just now; raises SecretRefused for a weak or exposed one."""
    if given is not None:
        _judge(given.reveal(), source=SETTING, loopback=loopback)
        return given, False
    private_directory(data)
    path = data / ADMIN_TOKEN_FILE
    # In the form of an API key, so that secret scanners and our own redaction know it.
    created = read_private(path) is None and create_private(path, new_key(token_bytes).key.reveal())
    # Read back even when just made: where two processes started at once, both must use the one that won.
    text = read_private(path) or ""
    _judge(text, source=str(path), loopback=loopback)
    return Secret(text), created


def _judge(text: str, *, source: str, loopback: bool) -> None:
    shortest = SHORTEST_ON_LOOPBACK if loopback else SHORTEST
    if not all("!" <= character <= "~" for character in text):
        problem = "must be visible ASCII without blanks"
    elif len(text) < shortest:
        problem = f"must have at least {shortest} characters, got {len(text)}"
    elif parse_key(text) is None and _is_example(text):  # a random key may hold such a word by chance
        problem = "looks like an example value"
    elif _is_regular(text):
        problem = "is too regular to be random"
    else:
        return
    raise SecretRefused(
        f"the admin token in {source} {problem}", next=f"set {SETTING} to what openssl rand -hex 32 prints"
    )


def _is_example(text: str) -> bool:
    plain = "".join(character for character in text.lower() if character not in "-_.")
    return any(word in plain for word in EXAMPLE_WORDS)


def _is_regular(text: str) -> bool:
    if len(set(text)) < FEWEST_DISTINCT or text in (text + text)[1:-1]:  # the second: one piece, repeated
        return True
    steps = [ord(b) - ord(a) for a, b in pairwise(text)]
    return sum(-1 <= step <= 1 for step in steps) * 4 > len(steps) * 3  # abcdef, 987654, aaabbb
