"""Every example file behaves as its line of the index says: sent, or produced and compared.

The index is the list: a file that it does not name, a line without a file, and a file that no check here takes care of
are failures, so that nothing can be forgotten.
"""

import importlib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.end_to_end.example_files.index import EXAMPLES, Line, read_index
from tests.end_to_end.example_files.stage import CHECKS, Stage

LINES, COUNTS = read_index()
for _dialect in COUNTS:
    pytest.register_assert_rewrite(f"tests.end_to_end.example_files.{_dialect}")
    importlib.import_module(f"tests.end_to_end.example_files.{_dialect}")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(tmp_path_factory.mktemp("examples"), stack, full=bool(pytestconfig.getoption("--full")))


def test_every_file_is_in_the_index_once_and_every_line_has_its_file() -> None:
    keys = [line.key for line in LINES]
    assert len(keys) == len(set(keys))
    assert set(keys) == {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*")}
    assert {dialect: sum(line.dialect == dialect for line in LINES) for dialect in COUNTS} == COUNTS


def test_every_file_is_checked_here() -> None:
    assert CHECKS.keys() == {line.key for line in LINES}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.key)
def test_a_file_behaves_as_its_line_says(stage: Stage, line: Line) -> None:
    CHECKS[line.key](stage, line)
