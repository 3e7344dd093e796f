"""What an install brings, and beside which frameworks it fits. Asks the package index, so it runs with --full."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.install import BOUNDS, VARIANTS, build_wheel, install
from tests.support.peers import ROOT

pytestmark = pytest.mark.full

FRAMEWORKS = ("a2a-sdk", "a2a-sdk<1", "pydantic-ai", "langgraph", "langchain", "openai-agents", "crewai", "google-adk")
# Calls an agent without a hub, and says what the base install must be able to say without any extra.
SELF_SUFFICIENT = """
import asyncio, sys
from dragoman import A2AClient, Agent, Context, Data, File, KeyManager, Message, Step, Text, call_agent, tool

agent = Agent("Hello")

@agent.skill
def greet(name: str) -> str:
    return f"Hello, {name}!"

print(asyncio.run(agent.test.call("greet", {"name": "Ada"})).result)
try:
    agent.serve()
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_install_stays_within_its_bounds(variant: str, wheel: Path, tmp_path: Path) -> None:
    found = install(wheel, VARIANTS[variant], tmp_path / "place")
    packages, megabytes = BOUNDS[variant]
    assert found.packages <= packages
    assert found.megabytes <= megabytes
    assert found.help_ms < 200


def test_the_base_install_carries_the_sdk_and_names_the_extra_that_serving_needs(wheel: Path, tmp_path: Path) -> None:
    install(wheel, "", tmp_path / "place")
    done = subprocess.run(
        [tmp_path / "place" / "bin" / "python", "-c", SELF_SUFFICIENT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "Hello, Ada!",
        'MissingExtra agent.serve() needs the server: pip install "dragoman[hub]"',
    ]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_gets_the_version_beside_dragoman_that_it_would_get_alone(
    framework: str, wheel: Path, tmp_path: Path
) -> None:
    alone = _resolved([framework], tmp_path)
    beside = _resolved([framework, f"dragoman @ {wheel.as_uri()}"], tmp_path)
    name = framework.partition("<")[0]
    assert beside[name] == alone[name]


def _resolved(wanted: list[str], folder: Path) -> dict[str, str]:
    asked = folder / "wanted.in"
    asked.write_text("\n".join(wanted))
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    done = subprocess.run(
        [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", sys.executable, str(asked)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pins = (line.split(" ")[0].partition("==") for line in done.stdout.splitlines() if "==" in line)
    return {name: version for name, _, version in pins}
