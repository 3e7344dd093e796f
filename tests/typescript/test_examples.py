"""Every example of the TypeScript SDK runs as it stands."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.world import eventually
from tests.support.hub import HubProcess
from tests.typescript.building import SOURCE
from tests.typescript.running import environment, ran, started

RUN_HERE = {"hello.ts", "call.ts", "librarian.ts", "client.ts", "model.ts", "callback.ts"}


@pytest.fixture(scope="module", autouse=True)
def agents(hub: HubProcess, sdk: Path) -> Iterator[None]:
    """Both agents of the examples, until SIGTERM ends them well."""
    with started(example(sdk, "hello"), environment(hub)), started(example(sdk, "librarian"), environment(hub)):
        eventually(lambda: _is_there(hub, "agt_hello") and _is_there(hub, "agt_ts_librarian"), "both are connected")
        yield


def example(sdk: Path, name: str) -> Path:
    return sdk / "dist" / "examples" / f"{name}.js"


def test_the_agent_of_three_lines_answers_the_call_of_one(hub: HubProcess, sdk: Path) -> None:
    assert ran(example(sdk, "call"), env=environment(hub), cwd=sdk) == "{ text: 'Hello, Ada!' }\n"


def test_the_client_finds_calls_hears_and_answers(hub: HubProcess, sdk: Path) -> None:
    said = ran(example(sdk, "client"), env=environment(hub), cwd=sdk)
    assert "agt_ts_librarian platform" in said
    assert "[ 'tides, volume 1', 'tides, volume 2' ] a2a_call_" in said
    assert "The sea comes and goes." in said
    assert "AGENT_NOT_FOUND false\nHow many words?\n" in said
    assert "rivers, volume 3" in said


def test_the_model_uses_its_tools(hub: HubProcess, sdk: Path) -> None:
    said = ran(example(sdk, "model"), env=environment(hub), cwd=sdk)
    assert said == '{"text":"Hello, Oslo!"} 709000 people live here.\n'


def test_the_callback_of_a_real_hub_is_verified(hub: HubProcess, sdk: Path) -> None:
    key = hub.post("/v1/keys", {"name": "ts", "scopes": ["a2a:call"]}).json
    secrets = {"DRAGOMAN_TOKEN": key["key"], "SIGNING_SECRET": key["signing_secret"]}
    said = ran(example(sdk, "callback"), env={**environment(hub), **secrets}, cwd=sdk)
    assert said == "completed { text: 'Hello, Ada!' }\n"


def test_every_example_is_run_here() -> None:
    assert {path.name for path in (SOURCE / "examples").glob("*.ts")} == RUN_HERE


def test_the_readme_shows_what_the_first_examples_do() -> None:
    shown = (SOURCE / "README.md").read_text()
    skill = re.search(r"^agent\.skill.*$", (SOURCE / "examples" / "hello.ts").read_text(), re.MULTILINE)
    assert skill is not None
    assert skill[0] in shown
    assert json.loads((SOURCE / "package.json").read_text())["license"] in shown


def _is_there(hub: HubProcess, agent: str) -> bool:
    return hub.get(f"/v1/a2a/agents/{agent}/card").status == 200
