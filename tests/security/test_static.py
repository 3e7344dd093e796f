"""What the source must not have in it, and what the lock must: read from the files, with a planted line for each rule.

Ruff looks for the same and more at each change (`S`, `TID251`); this is what holds whatever its configuration says.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.model.json import is_object
from tests.security.addresses import PLACES
from tests.support.security_figures import Figures

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "dragoman"
SQL: Final = re.compile(
    r"\s*(select|insert|update|delete|replace|create|alter|drop|pragma|vacuum|attach|with)\b.*",
    re.IGNORECASE | re.DOTALL,
)
# Commands that a person starts on their own machine, which start programs of ours.
MAY_START: Final = ("cli/reload.py", "cli/demo/child.py")
STARTS: Final = frozenset({"subprocess", "multiprocessing", "pty", "os.system", "os.popen", "pexpect", "sh"})
STARTING: Final = re.compile(r"create_subprocess_|posix_spawn|^spawn[lv]|^exec[lv]p?e?$|^fork(pty)?$|^system$|^popen$")
CONNECTS: Final = frozenset(
    {"urllib.request", "http.client", "httpx", "requests", "aiohttp", "urllib3", "ftplib", "smtplib", "telnetlib"}
)
CONNECTING: Final = frozenset(
    {
        "open_connection",
        "open_unix_connection",
        "create_connection",
        "create_datagram_endpoint",
        "sock_connect",
        "connect_ex",
    }
)
EVALUATES: Final = frozenset({"eval", "exec", "compile", "__import__"})
UNPICKLES: Final = frozenset({"pickle", "marshal", "shelve", "yaml", "dill"})
SECRETS: Final = re.compile(
    r"(token|secret|password|passwd|api_?key|root_key|private_key|credential)s?$", re.IGNORECASE
)

LOOKED_AT: Final = (
    ast.Import,
    ast.ImportFrom,
    ast.Call,
    ast.JoinedStr,
    ast.BinOp,
    ast.AnnAssign,
    ast.Assign,
    ast.arguments,
    ast.Constant,
)
Nodes = Sequence[ast.AST]
Rule = Callable[[str, Nodes], Iterator[str]]


def _imports(nodes: Nodes) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.lineno
            yield from ((f"{node.module}.{name.name}", node.lineno) for name in node.names)


def _calls(nodes: Nodes) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes:
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name, node
                case _:
                    pass


def no_made_up_sql(_: str, nodes: Nodes) -> Iterator[str]:
    """SQL is a constant: no value is written into it."""
    for node in nodes:
        text = ""
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(first)), *_]) if len(node.values) > 1:
                text = first
            case ast.BinOp(left=ast.Constant(value=str(first)), op=ast.Mod() | ast.Add()):
                text = first
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(first)), attr="format")):
                text = first
            case _:
                continue
        if SQL.fullmatch(text) and re.search(
            r"\b(from|into|table|where|set|pragma|values|attach)\b", text, re.IGNORECASE
        ):
            yield f"line {node.lineno}: {text[:60]!r} with a value in it"


def starts_nothing(place: str, nodes: Nodes) -> Iterator[str]:
    """No process is started."""
    if place in MAY_START:
        return
    yield from (
        f"line {line}: {name}" for name, line in _imports(nodes) if name in STARTS or name.split(".")[0] in STARTS
    )
    yield from (f"line {call.lineno}: {name}" for name, call in _calls(nodes) if STARTING.search(name))


def connects_nowhere(place: str, nodes: Nodes) -> Iterator[str]:
    """Connections are opened in one folder."""
    if place.startswith("net/"):
        return
    yield from (
        f"line {line}: {name}" for name, line in _imports(nodes) if name in CONNECTS or name.split(".")[0] in CONNECTS
    )
    for name, call in _calls(nodes):
        database = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        if name in CONNECTING and not (database and ast.unparse(call.func).startswith("sqlite3.")):
            yield f"line {call.lineno}: {name}"


def runs_no_text(_: str, nodes: Nodes) -> Iterator[str]:
    """No text becomes a program, and no bytes become objects of any class."""
    for name, call in _calls(nodes):
        if isinstance(call.func, ast.Name) and name in EVALUATES:
            yield f"line {call.lineno}: {name}"
    yield from (f"line {line}: {name}" for name, line in _imports(nodes) if name.split(".")[0] in UNPICKLES)


def has_no_default_secret(_: str, nodes: Nodes) -> Iterator[str]:
    """No name of a secret has a value in the source."""
    for node in nodes:
        named: list[tuple[str, ast.expr | None]] = []
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                named = [(name, value)]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                named = [(name, value)]
            case ast.arguments():
                names = [each.arg for each in (*node.posonlyargs, *node.args)]
                named = [*zip(names[len(names) - len(node.defaults) :], node.defaults, strict=True)]
                named += [(each.arg, value) for each, value in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
            case _:
                continue
        for name, value in named:
            if SECRETS.search(name) and isinstance(value, ast.Constant) and _looks_secret(value.value):
                yield f"{name} = {value.value!r}"


def _looks_secret(value: object) -> bool:
    """Whether a value could be one: the name of a header, which has a number in it too, could not."""
    if not isinstance(value, str | bytes):
        return False
    text = value if isinstance(value, str) else value.decode("latin-1")
    return len(text) >= 8 and re.search(r"[0-9]", text) is not None and re.fullmatch(r"x-[a-z0-9-]+", text) is None


RULES: Final[dict[str, tuple[Rule, str]]] = {
    "no made-up SQL": (
        no_made_up_sql,
        'def find(db, name):\n    return db.execute(f"SELECT * FROM key WHERE id = {name}")',
    ),
    "starts nothing": (starts_nothing, "import subprocess\n\nsubprocess.run(['true'])"),
    "connects nowhere": (
        connects_nowhere,
        "import asyncio\n\nasync def reach():\n    await asyncio.open_connection('h', 1)",
    ),
    "runs no text": (runs_no_text, "def run(text):\n    return eval(text)"),
    "no default secret": (has_no_default_secret, 'admin_token = "change-me-1234"'),
}


def broken(rule: Rule, files: Mapping[str, Nodes]) -> list[str]:
    """Where a rule is broken."""
    return [f"{place}: {fault}" for place, nodes in files.items() for fault in rule(place, nodes)]


@cache
def source() -> Mapping[str, Nodes]:
    """Every file of the package, by its place in it."""
    return {str(file.relative_to(SOURCE)): nodes_of(file.read_text()) for file in sorted(SOURCE.rglob("*.py"))}


def nodes_of(text: str) -> Nodes:
    """The parts of a program that some rule looks at."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, LOOKED_AT)]


@pytest.mark.parametrize("name", RULES)
def test_the_source_keeps_the_rule(name: str, figures: Figures) -> None:
    files = source()
    faults = broken(RULES[name][0], files)
    figures("S11", rules=1, files=len(files) if name == "no made-up SQL" else 0, faults=len(faults))
    assert faults == []


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("place", ["hub/planted.py", "server/pages/planted.py", "backends/sqlite/planted.py"])
def test_a_planted_line_is_found(name: str, place: str) -> None:
    rule, planted = RULES[name]
    assert broken(rule, {place: nodes_of(planted)})


# -- settings


def test_no_setting_has_a_secret_by_default() -> None:
    settings: dict[str, Any] = tomllib.loads((SOURCE / "config.default.toml").read_text())
    secret: dict[str, object] = {}
    for section, value in settings.items():
        keys = value if is_object(value) else {section: value}
        secret |= {name: given for name, given in keys.items() if SECRETS.search(name)}
    assert secret.keys() >= {"admin_token", "root_key"}
    assert set(secret.values()) == {""}


def test_every_example_listens_on_this_machine_alone() -> None:
    """What people copy is what they run."""
    wrong = [
        str(file.relative_to(ROOT))
        for folder in ("examples", "src/dragoman/cli/demo", "src/dragoman/sdk")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if re.search(r"""host\s*=\s*["'](0\.0\.0\.0|::)["']""", file.read_text())
    ]
    assert wrong == []
    settings: dict[str, Any] = tomllib.loads((SOURCE / "config.default.toml").read_text())
    assert (settings["host"], settings["auth"]) == ("127.0.0.1", "token")


# -- what is installed


def _lock() -> dict[str, dict[str, Any]]:
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return {package["name"]: package for package in packages}


def unpinned(packages: dict[str, dict[str, Any]]) -> list[str]:
    """Packages of which some file has no digest."""
    return [
        name
        for name, package in packages.items()
        if "editable" not in package["source"]
        and ("registry" not in package["source"] or not _files(package) or not all(map(_hashed, _files(package))))
    ]


def _files(package: dict[str, Any]) -> list[dict[str, Any]]:
    return [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]


def _hashed(file: dict[str, Any]) -> bool:
    return re.fullmatch(r"sha256:[0-9a-f]{64}", file.get("hash", "")) is not None


def test_every_package_is_pinned_by_its_digest(figures: Figures) -> None:
    packages = _lock()
    figures("S11", locked_packages=len(packages), unpinned=len(unpinned(packages)))
    assert unpinned(packages) == []
    planted = {**packages, "planted": {"source": {"registry": "r"}, "wheels": [{"url": "u"}]}}
    assert unpinned(planted) == ["planted"]


def _floors() -> dict[str, str]:
    """The table of SECURITY.md."""
    section = (ROOT / "SECURITY.md").read_text().partition("## Minimum versions")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| ([a-z0-9-]+) \| ([0-9.]+) \|", section, re.MULTILINE))


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def test_no_package_is_older_than_its_known_holes() -> None:
    floors, packages = _floors(), _lock()
    assert len(floors) >= 5
    named: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    written = [*named["tool"]["uv"]["constraint-dependencies"]]
    written += [each for group in named["project"]["optional-dependencies"].values() for each in group]
    for name, floor in floors.items():
        # An extra that nobody locked is held by its own requirement.
        held = [each for each in written if re.match(rf"{name}[>=<]", each)]
        assert held, f"{name}: no requirement holds the floor"
        assert all(_number(each.partition(">=")[2]) >= _number(floor) for each in held), held
        if name in packages:
            assert _number(packages[name]["version"]) >= _number(floor), name


def test_nothing_is_installed_that_never_may_be() -> None:
    never = {"python-jose", "jwcrypto", "pyjwt", "requests", "a2a-sdk"}
    extras: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = [*extras["dependencies"], *(each for group in extras["optional-dependencies"].values() for each in group)]
    assert {re.split(r"[>=<;\[ ]", each)[0].lower() for each in direct} & never == set()


# -- names of URLs on the wire

URL_NAME: Final = re.compile(r"[A-Za-z_]*?(?:[uU]r[li]|[eE]ndpoint|jku|x5u|[wW]ebhook_?[uU]rl)")
WIRE: Final = ("dialects", "security", "delivery")
# Names that no stranger's URL stands under: our own answers, our own addresses, or what is never read.
_OURS: Final = """
    base_url hub_url agent_card_url registered_endpoint token_endpoint jwks_uri _jku
    authorizationUrl deviceAuthorizationUrl refreshUrl openIdConnectUrl x5u file_url
"""


def test_every_name_under_which_a_url_comes_in_is_attacked() -> None:
    """A name that is new here belongs into a place of `tests/security/addresses.py`, or among our own."""
    known = {field for place in PLACES for field in place.fields} | set(_OURS.split())
    found: set[str] = set()
    for place, nodes in source().items():
        if place.split("/")[0] in WIRE:
            for node in nodes:
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and URL_NAME.fullmatch(node.value):
                    found.add(node.value)
    assert {name for name in found - known if not name.startswith("_")} == set()
