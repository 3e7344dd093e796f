"""An eighth dialect: a folder of its own, one line that names it, and it is spoken with all the others.

The hub is the same program; the folder lies in `tests/dialects/eighth`. Its row and its column of the any-to-any matrix
are computed as all the others are.
"""

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from tests.dialects.eighth import DIALECT as EIGHTH
from tests.end_to_end import test_matrix
from tests.end_to_end.test_matrix import World
from tests.support.hub import HubProcess
from tests.support.matrix import OPERATIONS

THE_LINE = "eighth = tests.dialects.eighth:DIALECT"
CELLS = [
    *((EIGHTH, target, operation) for target in (*DIALECTS.values(), EIGHTH) for operation in OPERATIONS),
    *((caller, EIGHTH, operation) for caller in DIALECTS.values() for operation in OPERATIONS),
]


def install(folder: Path, line: str) -> Path:
    """What an installer leaves of a package that brings a dialect."""
    about = folder / "dragoman_eighth-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-eighth\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[dragoman.dialects]\n{line}\n")
    return folder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    folder = tmp_path_factory.mktemp("eighth")
    installed = install(folder / "installed", THE_LINE)
    hub = HubProcess(folder / "data", auth="none").start(environ={"PYTHONPATH": str(installed)})
    with ExitStack() as stack:
        stack.callback(hub.stop)
        yield World(hub, stack)


def _name(value: object) -> str:
    return value.slug if isinstance(value, Dialect) else str(value)


@pytest.mark.req("X-01")
@pytest.mark.parametrize(("caller", "target", "operation"), CELLS, ids=_name)
def test_the_eighth_dialect_calls_all_others_and_is_called_by_them(
    world: World, caller: Dialect, target: Dialect, operation: str
) -> None:
    test_matrix.test_a_caller_of_any_dialect_and_an_agent_of_any_other(world, caller, target, operation)


def test_without_the_line_nobody_speaks_it(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data", auth="none").start()
    try:
        assert hub.post("/eighth", {"do": "get", "task": "x"}).status == 404
        card = {"eighth": 1, "id": "x", "name": "X", "skills": ["s"], "at": "http://127.0.0.1:9/"}
        assert hub.post("/v1/a2a/registry", {"agent_card": card, "dialect": "eighth"}).status == 400
    finally:
        hub.stop()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("eighth = tests.dialects.eighth:FEATURES", "is no Dialect"),
        ("eighth = dragoman.dialects.platform:DIALECT", "two dialects 'platform'"),
        ("eighth = nowhere.at_all:DIALECT", "nowhere"),
    ],
)
def test_a_line_that_leads_nowhere_keeps_the_hub_from_starting_and_says_why(
    tmp_path: Path, line: str, said: str
) -> None:
    installed = install(tmp_path / "installed", line)
    with pytest.raises(AssertionError, match="did not get ready"):
        HubProcess(tmp_path / "data", auth="none").start(environ={"PYTHONPATH": str(installed)})
    assert said in (tmp_path / "data.log").read_text()
