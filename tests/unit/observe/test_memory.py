"""The memory that a process may hold: the least limit of the groups that it is in, whichever version they are of."""

from pathlib import Path

import pytest

from dragoman.observe.memory import UNLIMITED, held_bytes, limit_bytes


def _group(root: Path, path: str, name: str, value: str) -> None:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(value)


@pytest.mark.parametrize(
    ("own", "expected"),
    [("0::/a/b\n", 300), ("0::/\n", None), ("5:cpu,memory:/c\n0::/\n", 200), ("3:cpu:/a\n", None), ("", None)],
)
def test_the_least_limit_above_the_process_counts(tmp_path: Path, own: str, expected: int | None) -> None:
    _group(tmp_path, "a/b", "memory.max", "max\n")
    _group(tmp_path, "a", "memory.max", "300\n")
    _group(tmp_path, "memory", "memory.limit_in_bytes", f"{UNLIMITED * 2}\n")
    _group(tmp_path, "memory/c", "memory.limit_in_bytes", "200\n")
    (tmp_path / "own").write_text(own)
    assert limit_bytes(tmp_path, tmp_path / "own") == expected


def test_where_nobody_says_anything_there_is_no_limit(tmp_path: Path) -> None:
    assert limit_bytes(tmp_path, tmp_path / "missing") is None


def test_a_process_holds_something() -> None:
    assert held_bytes() > 1024 * 1024
