"""A credential towards an agent, read from a file: never from the command line, where others could see it.

The file is a JSON object as the hub takes it. In place of `certificate`, `key` and `ca`, `certificate_file`, `key_file`
and `ca_file` may name PEM files, from where the file itself is.
"""

import json
import sys
from pathlib import Path
from typing import Final

import click

from dragoman.cli.fault import wrong_usage
from dragoman.model.json import JsonObject, is_object

PEMS: Final = ("certificate", "key", "ca")
EXAMPLE: Final = '{"type": "bearer", "token": "…"}'

key_file = click.option(
    "--key-file", metavar="FILE", help="A file with the credential to show to the agent, as JSON; - reads stdin."
)


def read_credential_file(name: str) -> JsonObject:
    """The credential in a file. Raises Fault, which never quotes the file."""
    given = _object(name)
    folder = Path() if name == "-" else Path(name).parent
    for field in PEMS:
        beside = given.pop(f"{field}_file", None)
        if isinstance(beside, str):
            given[field] = _text(str(folder / beside))
    return given


def _object(name: str) -> JsonObject:
    try:
        given = json.loads(_text(name))
    except ValueError:
        given = None
    if not is_object(given):
        raise wrong_usage(f"{name} holds no credential: one is a JSON object", next=f"write it as {EXAMPLE}")
    return given


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise wrong_usage(f"{name} is no text", next=f"write it as {EXAMPLE}") from None
    except OSError as error:
        raise wrong_usage(f"{name} cannot be read: {error.strerror}", next="check the name of the file") from error
