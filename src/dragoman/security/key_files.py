"""Key files as AgentVault's tools read them: `.env` lines and `.json` objects. Written whole, for their owner alone.

A `.env` file is what python-dotenv reads, save that a value stays on its line and nothing in it is replaced. Errors
name the file, never what stands in it.
"""

import re
from pathlib import Path
from typing import Final, Protocol

import msgspec

from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.security.key_names import Client, client_in, key_in
from dragoman.security.private_files import SecretRefused, replace_private

MOST_BYTES: Final = 1024 * 1024

_LINE: Final = re.compile(
    r"\s*(?:export\s+)?(?:'(?P<quoted>[^']+)'|(?P<plain>[^=#\s]+))\s*=\s*"
    r"(?:'(?P<single>(?:\\.|[^'\\])*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"|(?P<bare>[^'\"].*?)?)(?:\s+#.*)?\s*"
)
_ESCAPED: Final = {"double": re.compile(r"\\([\\'\"abfnrtv])"), "single": re.compile(r"\\([\\'])")}
_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_ENV_NAME: Final = re.compile(r"[^=#\s'\"\\]+")
_NEEDS_NO_QUOTES: Final = re.compile(r"[A-Za-z0-9_./+=:@~,-]+")


class KeysRefused(DragomanError):
    """The credential cannot be read or stored."""

    code = "KEYS_REFUSED"
    retry = False


class KeyFile(Protocol):
    """A file of credentials by service id (in lower case)."""

    def key(self, id: str) -> str | None:
        """The key of a service."""
        ...

    def client(self, id: str) -> Client | None:
        """The OAuth2 client of a service."""
        ...

    def put_key(self, id: str, key: str) -> None:
        """Write a key in place of what stands there."""
        ...

    def put_client(self, id: str, client: Client) -> None:
        """Write an OAuth2 client in place of what stands there."""
        ...


def key_file_at(path: Path) -> KeyFile:
    """The file, of the kind that its name says. Raises KeysRefused."""
    # Links are followed here: what is written later takes the place of the file, not of the link.
    path = path.expanduser().resolve()
    match path.suffix.lower() or path.name.lower():
        case ".env":
            return _EnvFile(path)
        case ".json":
            return _JsonFile(path)
        case _:
            raise KeysRefused(f"{path}: a key file's name ends in .env or .json.")


class _EnvFile:
    """`id=key` lines, and lines named as in an environment; the last of a name counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def key(self, id: str) -> str | None:
        values = self._values()
        return values.get(id) or key_in(values, id)

    def client(self, id: str) -> Client | None:
        return client_in(self._values(), id)

    def put_key(self, id: str, key: str) -> None:
        self._put({id: key})

    def put_client(self, id: str, client: Client) -> None:
        # AgentVault's own names: its tools read the line, and ours find it too.
        name = f"AGENTVAULT_OAUTH_{id}"
        self._put({f"{name}_CLIENT_ID": client[0], f"{name}_CLIENT_SECRET": client[1]})

    def _values(self) -> dict[str, str]:
        lines = map(_read_line, _text(self._path).splitlines())
        return {name.lower(): value for name, value in filter(None, lines) if value}

    def _put(self, values: dict[str, str]) -> None:
        for name in values:
            if _ENV_NAME.fullmatch(name) is None:
                raise KeysRefused(f"A .env file cannot hold a key for {name!r}: use a .json file.")
        given = {name.lower() for name in values}
        lines = _text(self._path).splitlines()
        kept = [line for line in lines if (read := _read_line(line)) is None or read[0].lower() not in given]
        _write(self._path, "".join(f"{line}\n" for line in (*kept, *map(_line_of, values.items()))))


class _JsonFile:
    """`{"id": "key"}`, or `{"id": {"apiKey": …, "oauth": {"clientId": …, "clientSecret": …}}}`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def key(self, id: str) -> str | None:
        entry = _entry(self._entries(), id)[1]
        key = entry.get("apiKey") if is_object(entry) else entry
        return key if isinstance(key, str) and key else None

    def client(self, id: str) -> Client | None:
        entry = _entry(self._entries(), id)[1]
        oauth: Json = entry.get("oauth") if is_object(entry) else None
        match oauth:
            case {"clientId": str(client_id), "clientSecret": str(client_secret)} if client_id and client_secret:
                return client_id, client_secret
            case _:
                return None

    def put_key(self, id: str, key: str) -> None:
        self._put(id, {"apiKey": key})

    def put_client(self, id: str, client: Client) -> None:
        self._put(id, {"oauth": {"clientId": client[0], "clientSecret": client[1]}})

    def _entries(self) -> JsonObject:
        text = _text(self._path)
        try:
            entries: Json = msgspec.json.decode(text) if text.strip() else {}
        except (msgspec.DecodeError, RecursionError):
            entries = None
        if not is_object(entries):
            raise KeysRefused(f"{self._path} is not a JSON object: mend it, or name another key file.")
        return entries

    def _put(self, id: str, change: JsonObject) -> None:
        entries = self._entries()
        name, entry = _entry(entries, id)
        known: JsonObject = entry if is_object(entry) else {"apiKey": entry} if isinstance(entry, str) else {}
        entries[name] = known | change
        _write(self._path, msgspec.json.format(msgspec.json.encode(entries), indent=2).decode() + "\n")


def _entry(entries: JsonObject, id: str) -> tuple[str, Json]:
    """The entry whose name is that id in any case, by its own spelling; the last one counts."""
    for name in reversed(entries):
        if name.lower() == id:
            return name, entries[name]
    return id, None


def _text(path: Path) -> str:
    """The file's text; none where there is no such file."""
    try:
        with path.open("rb") as file:
            read = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise KeysRefused(f"{path} cannot be read: {error.strerror}.") from None
    if len(read) > MOST_BYTES:
        raise KeysRefused(f"{path} is larger than 1 MiB: that is no key file.")
    return read.decode("utf-8-sig", "replace")


def _write(path: Path, text: str) -> None:
    try:
        replace_private(path, text)
    except SecretRefused as error:
        raise KeysRefused(f"{error.message}: {error.next}.") from None
    except OSError as error:
        raise KeysRefused(f"{path} cannot be written: {error.strerror}.") from None


def _read_line(line: str) -> tuple[str, str] | None:
    """The name and the value of a line; None for what is neither."""
    read = _LINE.fullmatch(line)
    if read is None:
        return None
    for quotes, escaped in _ESCAPED.items():
        if (text := read[quotes]) is not None:
            return read["quoted"] or read["plain"], escaped.sub(lambda one: _CONTROLS.get(one[1], one[1]), text)
    return read["quoted"] or read["plain"], read["bare"] or ""


def _line_of(named: tuple[str, str]) -> str:
    name, value = named
    if _NEEDS_NO_QUOTES.fullmatch(value):
        return f"{name}={value}"
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name}='{quoted}'"
