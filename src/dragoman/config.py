"""Settings: typed, from four places, each value knowing where it came from.

    flag  >  environment  >  --config FILE  >  config.default.toml, which is default and manual in one

Reads nothing but the two files and what it is handed; opens, makes and checks no directory, key or certificate.
"""

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from types import NoneType
from typing import Annotated, Final, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, inspect

from dragoman.model.issuer import Issuer
from dragoman.model.json import Json, JsonObject
from dragoman.model.loopback import is_loopback_address
from dragoman.model.secret import Secret

DEFAULT_FILE: Final = Path(__file__).with_name("config.default.toml")
PREFIX: Final = "DRAGOMAN_"
# Variables that are no settings of the hub: keys and models of agents, the test suite, the client commands.
OTHER_VARIABLES: Final = re.compile(r"DRAGOMAN_(?:(?:KEY|OAUTH|MODEL|TEST)_.+|URL|TOKEN)")

Port = Annotated[int, Meta(ge=1, le=65535)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Mib = Annotated[int, Meta(ge=1, le=1024)]
Kib = Annotated[int, Meta(ge=1, le=16_384)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Days = Annotated[int, Meta(ge=1, le=36_500)]
Texts = tuple[str, ...]
Issuers = tuple[Issuer, ...]


class SettingError(Exception):
    """A setting is unknown or wrong; the message is one sentence, `next` says what to do."""

    def __init__(self, message: str, *, next: str) -> None:
        super().__init__(message)
        self.message = message
        self.next = next


class Sourced(msgspec.Struct, frozen=True, kw_only=True):
    """A setting's value as it may be shown (secrets masked), and where it came from."""

    value: Json
    source: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope dialect."""

    ids: Literal["strict", "lenient"]


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """The log."""

    form: Literal["auto", "json", "pretty"]
    level: Literal["debug", "info", "warning", "error"]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP server."""

    shortcut: bool


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one request or client may cost."""

    call_body_mib: Mib
    admin_body_mib: Mib
    card_kib: Kib
    depth: Annotated[int, Meta(ge=8, le=512)]
    header_lines: Annotated[int, Meta(ge=10, le=10_000)]
    header_kib: Kib
    url_kib: Kib
    header_s: Seconds
    body_s: Seconds
    keepalive_s: Seconds
    stalled_reader_s: Seconds
    connections: Count
    connections_per_address: Count


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines of calls."""

    timeout_s: Seconds
    max_timeout_s: Seconds
    hold_ms: Annotated[int, Meta(ge=0, le=10_000)]
    drain_s: Annotated[float, Meta(ge=0, le=3600)]
    queued_at_once: Count
    queued_per_agent: Count
    retries: Annotated[int, Meta(ge=0, le=3)]
    breakers: bool
    per_agent: Count
    max_depth: Count
    per_conversation: Count


class Callbacks(msgspec.Struct, frozen=True, kw_only=True):
    """Reports and callbacks to callers."""

    at_once: Count


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """Agents that connect to the hub."""

    lease_s: Seconds


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Checks whether agents answer."""

    every_s: Annotated[float, Meta(ge=0, le=86_400)]
    timeout_s: Seconds
    longest_s: Seconds
    per_s: Count


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the hub hosts."""

    link_h: Annotated[int, Meta(ge=1, le=8760)]


class Sqlite(msgspec.Struct, frozen=True, kw_only=True):
    """The SQLite store."""

    wal_mib: Annotated[int, Meta(ge=4, le=4096)]
    ballast_mib: Annotated[int, Meta(ge=0, le=4096)]
    readers: Annotated[int, Meta(ge=1, le=16)]


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The outgoing client."""

    connections_per_origin: Count
    connections: Count
    idle_s: Seconds
    age_s: Seconds
    connect_s: Seconds
    answer_mib: Mib


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated requests."""

    keep_h: Annotated[int, Meta(ge=1, le=8760)]


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that have ended."""

    keep_d: Days | None


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The audit."""

    keep_d: Days | None


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """From where on the hub refuses what can wait, and new calls."""

    lag_ms: Annotated[int, Meta(ge=1, le=60_000)]
    full_lag_ms: Annotated[int, Meta(ge=1, le=60_000)]
    turn_ms: Annotated[int, Meta(ge=1, le=1_000)]
    waiting: Count
    full_waiting: Count
    waited_s: Seconds
    full_waited_s: Seconds
    memory_mib: Count | None


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What the hub counts."""

    open: bool
    max_values: Annotated[int, Meta(ge=10, le=10_000)]


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """What each tenant may have; none: as much as there is room for."""

    agents: Count | None
    open_calls: Annotated[int, Meta(ge=1, le=100_000_000)] | None
    stored_mib: Annotated[int, Meta(ge=1, le=100_000_000)] | None
    requests_per_minute: Count | None
    requests_per_hour: Count | None
    concurrent_requests: Count | None


class Signing(msgspec.Struct, frozen=True, kw_only=True):
    """Signatures of requests."""

    strict: bool
    required: bool


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a hub; `sources` and `warnings` tell how they came about."""

    host: str
    port: Port
    data: Path
    auth: Literal["token", "none"]
    admin_token: Secret | None
    root_key: Secret | None
    store: str
    bus: str
    public_url: str
    allow_networks: Texts
    hosts: Texts
    trusted_proxies: Texts
    tls_cert: Path | None
    tls_key: Path | None
    grpc_port: Port | None
    default_agent: str | None
    key_file: Path | None
    issuers: Issuers
    envelope: Envelope
    log: Log
    metrics: Metrics
    server: Server
    limits: Limits
    calls: Calls
    callbacks: Callbacks
    connect: Connect
    health: Health
    files: Files
    sqlite: Sqlite
    client: Client
    idempotency: Idempotency
    tasks: Tasks
    audit: Audit
    signing: Signing
    quotas: Quotas
    pressure: Pressure
    sources: Mapping[str, Sourced] = {}
    warnings: tuple[str, ...] = ()

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the hub."""
        return is_loopback(self.host)

    @property
    def here_alone(self) -> bool:
        """Whether it is there for this machine only: a public address means that a proxy brings others."""
        return _is_here_alone(self.host, self.public_url)


def _hints() -> dict[str, Json]:
    hints: dict[str, Json] = {}
    for field, hint in get_type_hints(Settings, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            hints.update({f"{field}.{key}": kind for key, kind in get_type_hints(hint, include_extras=True).items()})
        elif field not in ("sources", "warnings"):
            hints[field] = hint
    return hints


HINTS: Final = _hints()  # every setting by its full name, and its type


def load(flags: Mapping[str, str], environ: Mapping[str, str], config_file: Path | None) -> Settings:
    """Settings from all four places; raises SettingError. A flag is named as its variable, in small letters."""
    given = dict(_from_file(DEFAULT_FILE, source="default"))
    if config_file is not None:
        given.update(_from_file(config_file))
    given.update(_from_environment(environ))
    given.update(_from_flags(flags))
    chosen: JsonObject = {}
    nested: JsonObject = {}
    for name, (value, source) in given.items():
        chosen[name] = _checked(name, _resolved(name, value, given, environ), source)
        section, _, key = name.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[key] = chosen[name]
    settings = msgspec.structs.replace(
        msgspec.convert(nested, Settings, strict=False, dec_hook=_made),
        sources={name: Sourced(value=_masked(name, chosen[name]), source=given[name][1]) for name in given},
        warnings=tuple(_unknown_variables(environ)),
    )
    _check_together(settings)
    return settings


def is_loopback(host: str) -> bool:
    """Whether a bind address is reached from this machine only."""
    try:
        return is_loopback_address(host)
    except ValueError:
        return host.lower() == "localhost"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    # The one short name inside a section: a TOML file cannot hold both a key `log` and a section `log`.
    return "DRAGOMAN_LOG" if name == "log.form" else PREFIX + name.replace(".", "_").upper()


# --- where values come from

Given = tuple[Json, str]  # a value and its source


def _from_file(path: Path, source: str | None = None) -> Iterator[tuple[str, Given]]:
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingError(
            f"wrong settings file {path}: {reason}", next="correct the file, or leave --config out"
        ) from error
    for name, value in _flat(document):
        where = source or _line(path, text, name)
        if name not in HINTS:
            raise SettingError(f"unknown setting {name} ({where}){_nearest(name, HINTS)}", next=f"correct {where}")
        yield name, (value, where)


def _flat(document: JsonObject) -> Iterator[tuple[str, Json]]:
    for name, value in document.items():
        if isinstance(value, dict):
            section: JsonObject = document[name]
            yield from ((f"{name}.{key}", item) for key, item in section.items())
        else:
            yield name, value


def _line(path: Path, text: str, name: str) -> str:
    """The place of a setting in the file; without the line where it is written in an unusual way."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            section = header[1] + "."
        elif (key := re.match(r"\s*([\w.-]+)\s*=", line)) and section + key[1] == name:
            return f"{path}:{number}"
    return str(path)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    # An empty variable counts as not set: that is how compose files and shells pass on what they lack.
    return ((name, (environ[variable(name)], variable(name))) for name in HINTS if environ.get(variable(name)))


def _from_flags(flags: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    names = {variable(name).removeprefix(PREFIX).lower(): name for name in HINTS}
    for flag, value in flags.items():
        shown = "--" + flag.replace("_", "-")
        if flag not in names:
            raise SettingError(f"unknown setting {shown}{_nearest(flag, names)}", next="dragoman serve --help")
        yield names[flag], (value, f"flag {shown}")


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    known = [variable(name) for name in HINTS]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and not OTHER_VARIABLES.fullmatch(name):
            yield f"unknown setting {name}{_nearest(name, known)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    # Without the prefix: it would make any two variables resemble each other.
    plain = {each.removeprefix(PREFIX): each for each in known}
    inside = [each for each in plain if each.startswith(name + ".")]  # a section, given a value as if it were a setting
    near = inside or get_close_matches(name.removeprefix(PREFIX), plain, n=1)
    return f": did you mean {plain[near[0]]}?" if near else ""


# --- what a value may be


def _resolved(name: str, value: Json, given: Mapping[str, Given], environ: Mapping[str, str]) -> Json:
    match name, value:
        case "data", "auto":
            return str(user_data(environ, sys.platform))
        case "bus", "auto":
            return "local"
        case "public_url", "auto":
            return f"{'https' if given['tls_cert'][0] else 'http'}://localhost:{given['port'][0]}"
        case "public_url", str():
            return value.rstrip("/")
        case "allow_networks", "auto":
            return ["loopback"] if _is_here_alone(str(given["host"][0]), str(given["public_url"][0])) else []
        case _:
            return value


def _is_here_alone(host: str, public_url: str) -> bool:
    return is_loopback(host) and (public_url == "auto" or is_loopback(urlsplit(public_url).hostname or ""))


def user_data(environ: Mapping[str, str], platform: str) -> Path:
    """Where this user's programs keep their data on this platform."""
    home = Path(environ.get("HOME") or Path.home())
    if platform == "darwin":
        return home / "Library/Application Support/dragoman"
    given = environ.get("XDG_DATA_HOME", "")
    # The XDG specification: a relative path there is to be ignored.
    return (Path(given) if given.startswith("/") else home / ".local/share") / "dragoman"


def _checked(name: str, value: Json, source: str) -> Json:
    hint = HINTS[name]
    if value == "" and NoneType in get_args(hint):
        return None
    if hint == Texts and isinstance(value, str):
        value = [item.strip() for item in value.split(",") if item.strip()]
    if hint == Issuers and isinstance(value, str):
        value = _json(value)
    shape, expected = SHAPES.get(name, (None, None))
    try:
        msgspec.convert(value, hint, strict=False, dec_hook=_made)
        right = shape is None or all(map(shape, value if hint == Texts else [value]))
    except msgspec.ValidationError:
        right = False
    if not right:
        shown = msgspec.json.encode(_masked(name, value)).decode()
        raise SettingError(
            f"wrong setting: {name} = {shown} ({source}): expected {expected or _expected(hint)}",
            next=f"correct {source}",
        )
    return value


def _made(kind: type, value: Json) -> Secret | Path:
    if not isinstance(value, str) or not value:
        raise ValueError
    return Secret(value) if kind is Secret else Path.home() / value[2:] if value.startswith("~/") else Path(value)


def _json(text: str) -> Json:
    """What a variable says in JSON; the text itself where it is none."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _expected(hint: Json) -> str:
    if hint == Issuers:
        return "a list of tables, each with issuer, jwks_uri and what else the manual names"
    if get_origin(hint) is Literal:
        *first, last = get_args(hint)
        return ", ".join(first) + f" or {last}"
    kind = inspect.type_info(hint)
    if isinstance(kind, inspect.UnionType):
        kind = kind.types[0]
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return f"{kind.ge} to {kind.le}" if kind.ge is not None else f"more than {kind.gt}, at most {kind.le}"
        case inspect.CustomType(cls=cls) if cls is Path:
            return "a path"
        case _:
            return "text"


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        # A name whose last label is a number is a mistyped address: resolvers read such in surprising ways.
        return bool(re.fullmatch(r"(?!.*\.\d*$)[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", text))
    return "%" not in text


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _is_base_url(text: str) -> bool:
    # Before urlsplit, which silently drops tabs and line ends.
    if not text.isprintable() or any(sign in text for sign in " ?#@\\"):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and _is_host(parts.hostname or "") and parts.port != 0
    except ValueError:
        return False


# Settings whose type does not say enough; for lists the test is of each item.
SHAPES: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "host": (_is_host, "an address or a host name"),
    "public_url": (_is_base_url, "http:// or https:// with a host, without user, query or fragment"),
    "allow_networks": (
        lambda text: text in ("loopback", "private") or _is_network(text),
        "CIDRs such as 10.0.0.0/8, loopback or private",
    ),
    "hosts": (_is_host, "host names or addresses without port"),
    # A network that holds every address is "*" in other words.
    "trusted_proxies": (
        lambda text: _is_network(text) and not text.endswith("/0"),
        "addresses or CIDRs of proxies, never all addresses",
    ),
    "key_file": (lambda text: text.lower().endswith((".env", ".json")), "a path that ends in .env or .json"),
    "default_agent": (
        lambda text: re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", text) is not None,
        "an agent's id",
    ),
}


def _check_together(settings: Settings) -> None:
    def wrong(name: str, problem: str, next: str) -> SettingError:
        given = settings.sources[name]
        shown = msgspec.json.encode(given.value).decode()
        return SettingError(f"wrong setting: {name} = {shown} ({given.source}): {problem}", next=next)

    if settings.auth == "none" and not settings.on_loopback:
        message = f"wrong setting: auth = none needs a loopback host, got {settings.host}"
        raise SettingError(message, next="--auth token")
    if settings.auth == "none" and not settings.here_alone:
        raise wrong("public_url", "auth = none is for this machine alone, not for others", "--auth token")
    if settings.store.startswith(("postgresql:", "postgres:")):
        raise wrong(
            "store", "PostgreSQL comes with a later version, this one keeps its data in sqlite", "--store sqlite"
        )
    if settings.store != "sqlite":
        raise wrong("store", "expected sqlite", "--store sqlite")
    if settings.bus != "local":
        raise wrong("bus", "with the sqlite store only local works", "--bus local")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        lone = "tls_key" if settings.tls_cert is None else "tls_cert"
        raise wrong(lone, "tls_cert and tls_key belong together", "set both or none")
    if settings.public_url in (each.issuer for each in settings.issuers):
        raise wrong("issuers", "the hub itself is among them", "leave it out: its own tokens always count")
    prefixes = [each.prefix for each in settings.issuers]
    if len(prefixes) != len(set(prefixes)) or not all(prefixes):
        raise wrong("issuers", "each needs a name of its own", "give each a name")
    if settings.calls.timeout_s > settings.calls.max_timeout_s:
        raise wrong("calls.timeout_s", "expected at most calls.max_timeout_s", "raise calls.max_timeout_s")
    if settings.client.connections_per_origin > settings.client.connections:
        raise wrong("client.connections_per_origin", "expected at most client.connections", "raise client.connections")
    _check_kept(settings, wrong)


def _check_kept(settings: Settings, wrong: Callable[[str, str, str], SettingError]) -> None:
    """A key that outlives its call would find nothing."""
    calls_d = settings.tasks.keep_d
    if calls_d is not None and settings.idempotency.keep_h > 24 * calls_d:
        raise wrong("idempotency.keep_h", f"calls are kept for {calls_d} days only", "raise tasks.keep_d")


# --- what may be shown


def _masked(name: str, value: Json) -> Json:
    if Secret in get_args(HINTS[name]):
        return "***" if value else value
    return mask_url(value) if isinstance(value, str) else value


def mask_url(text: str) -> str:
    """A URL without its password, or without its user part where that has no password."""
    text = re.sub(r"://([^/?#\s:@]*):[^/?#\s]*@", r"://\1:***@", text)
    text = re.sub(r"://[^/?#\s:@]*@", "://***@", text)
    return re.sub(r"(?i)([?&][a-z]*(?:password|token|secret)=)[^&#]*", r"\1***", text)
