"""What the package offers, what importing it costs, and what it needs installed."""

import importlib
import json
import subprocess
import sys
from types import ModuleType

import pytest

import agentplatform
import agentplatform.a2a
import dragoman
from dragoman import errors, models, orchestrate, sync, testing
from dragoman.model.errors import DragomanError
from tests.support.hub import ROOT

# The line of the manual; `__all__` and this line are the same.
NAMES = "Agent, Context, tool, call_agent, A2AClient, Step, File, Text, Data, Message, KeyManager"
SUBMODULES: dict[ModuleType, set[str]] = {
    orchestrate: {"Step", "chain", "delegate", "fan_out"},
    sync: {"SyncClient", "SyncHandle", "call_agent"},
    testing: {"FakeAgent", "check", "hub", "record", "replay"},
}
HOMES = ("dragoman.model.errors", "dragoman.model.extras", "dragoman.sdk.errors")  # where errors of the tree are made
# What needs more than the base install: an agent that listens, a hub in process, and pytest's own.
SERVER_SIDE = ("agent_app", "agent_server", "hub_in_process", "local_link", "pytest_plugin", "resident")
EXTRAS = (
    "asyncpg", "cryptography", "google", "grpc", "joserfc", "jsonschema_rs", "keyring", "mcp", "nats", "opentelemetry",
    "prometheus_client", "rfc8785", "starlette", "uvicorn", "uvloop", "websockets", "yaml",
)  # fmt: skip
BLOCKED = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {EXTRAS!r} else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


def python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_package_offers_exactly_what_the_manual_lists() -> None:
    assert sorted(dragoman.__all__) == sorted(NAMES.split(", "))
    assert all(getattr(dragoman, name).__module__.startswith("dragoman.") for name in dragoman.__all__)
    assert set(dragoman.__all__) <= set(dir(dragoman))
    with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
        _ = dragoman.Agnet  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - there is none


@pytest.mark.parametrize("module", SUBMODULES, ids=lambda module: module.__name__)
def test_a_public_module_offers_exactly_what_it_re_exports(module: ModuleType) -> None:
    assert set(module.__all__) == SUBMODULES[module]
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_the_errors_are_the_whole_tree() -> None:
    def below(error: type[DragomanError]) -> set[str]:
        own = {error.__name__} if error.__module__ in HOMES else set[str]()
        return own.union(*map(below, error.__subclasses__()))

    assert {name for name in below(DragomanError) if not name.startswith("_")} == set(errors.__all__)


def test_the_models_are_those_of_the_sdk() -> None:
    assert set(models.__all__) == set(importlib.import_module("dragoman.sdk.run.models").__all__)


def test_the_alias_of_the_document_is_the_same_things() -> None:
    assert (set(agentplatform.__all__), set(agentplatform.a2a.__all__)) == (
        {"Agent", "tool"},
        {"A2AClient", "call_agent", "tool"},
    )
    assert agentplatform.Agent is dragoman.Agent
    assert agentplatform.tool is agentplatform.a2a.tool is dragoman.tool
    assert agentplatform.a2a.call_agent is dragoman.call_agent
    assert (agentplatform.__dragoman__, agentplatform.a2a.__dragoman__) == (True, True)


@pytest.mark.parametrize(
    "program",
    ["import dragoman", "import dragoman.sdk.client.settings, dragoman.sdk.client.reach"],
    ids=["package", "settings"],
)
def test_importing_it_imports_next_to_nothing(program: str) -> None:
    loaded = set(json.loads(python(f"{program}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))")))
    assert not loaded & {"asyncio", "msgspec", "ssl", "httptools", "logging", "dragoman.model.errors", "dragoman.net"}


def test_nothing_happens_at_import() -> None:
    """No socket, no thread, no look into the environment."""
    names = [*NAMES.split(", "), "errors", "models", "orchestrate", "sync", "testing"]
    watched = f"""
import os, sys, threading, socket
import asyncio, ssl, json, logging, tempfile, concurrent.futures, click, msgspec, httptools  # look for themselves

seen = []
ours = lambda: "/dragoman/" in sys._getframe(2).f_code.co_filename
class Environment(type(os.environ)):
    def __getitem__(self, key):
        seen.append(("environ", key)) if ours() else None
        return super().__getitem__(key)
    def get(self, key, default=None):
        seen.append(("environ", key)) if ours() else None
        return super().get(key, default)
os.environ.__class__ = Environment
sys.addaudithook(lambda event, args: seen.append((event, str(args))) if event.startswith("socket.") else None)
before = threading.active_count()
handlers = list(logging.root.handlers)
import dragoman
for name in {names!r}:
    getattr(dragoman, name)
assert seen == [], seen
assert threading.active_count() == before
assert logging.root.handlers == handlers
"""
    python(watched)


def test_everything_but_serving_imports_on_the_base_install() -> None:
    sources = ROOT / "src"
    files = sorted((sources / "dragoman/sdk").rglob("*.py"))
    modules = [
        ".".join(file.relative_to(sources).with_suffix("").parts)
        for file in files
        if file.stem not in (*SERVER_SIDE, "__init__")
    ]
    assert len(modules) > 50
    modules += [f"dragoman.{name}" for name in ("errors", "models", "orchestrate", "sync", "testing")]
    loaded = python(f"""{BLOCKED}
import {", ".join(modules)}
from dragoman import {NAMES}
places = {{name.partition(".")[0]: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}}
print(*sorted(name for name, place in places.items() if "site-packages" in place))
""")
    # The last two are no needs: msgspec looks whether the one is there, an environment's set-up brings the other.
    allowed = {"msgspec", "httptools", "click", "rich", "typing_extensions", "_distutils_hack"}
    assert set(loaded.split()) <= allowed


def test_what_needs_the_server_says_which_extra_brings_it() -> None:
    said = python(f"""{BLOCKED}
from dragoman import Agent
from dragoman.errors import MissingExtra
try:
    Agent("Hello").serve()
except MissingExtra as error:
    print(error)
""")
    assert said == 'agent.serve() needs the server: pip install "dragoman[hub]"\n'
