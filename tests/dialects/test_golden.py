from pathlib import Path

import pytest

from dragoman.dialects import DIALECTS
from tests.dialects.goldens import FOLDER, golden_files, outcome, parted


@pytest.mark.parametrize("path", golden_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_dialect_says_exactly_what_the_golden_file_has(path: Path) -> None:
    given, expected = parted(path)
    assert outcome(path, given) == expected


def test_every_dialect_has_golden_files_and_every_folder_a_dialect() -> None:
    assert {folder.name for folder in FOLDER.iterdir()} == {dialect.name for dialect in DIALECTS.values()}
    for dialect in DIALECTS.values():
        kinds = {path.stem.partition("-")[0] for path in (FOLDER / dialect.name).glob("*.txt")}
        assert kinds >= {"ask", "hear", "card"}
        if dialect.read is not None:
            assert kinds >= {"read", "answer"}
