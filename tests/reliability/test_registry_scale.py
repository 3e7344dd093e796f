"""Finding agents costs the same however many there are: in steps of SQLite's machine, and in time.

`scripts/bench registry` asks a hub with a million of them.
"""

import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from benchmarks import crowd
from dragoman.backends.sqlite import agents, search
from dragoman.backends.sqlite.connection import prepare
from dragoman.model.operations import Discover
from dragoman.ports.store import Scope

SCOPE: Final = Scope(tenant=crowd.TENANT, principal=None)
SOME: Final = 4000
MOST_STEPS: Final = 14_000  # counting to 1,001 takes up to 13,000 of them, looking at what half of 4,000 have 17,000
CROWD: Final = 250_000
ASKED: Final = 400
RATIO: Final = 3.0
FINE: Final = 20  # steps between two counts

Ask = Callable[[sqlite3.Connection, int, str | None], object]


def _discover(make: Callable[[int], Discover]) -> Ask:
    return lambda connection, number, _: search.search(connection, SCOPE, make(number))


def _deep(connection: sqlite3.Connection, _: int, cursor: str | None) -> object:
    return search.search(connection, SCOPE, Discover(skills=(crowd.COMMON_SKILL,), cursor=cursor))


def _by_id(connection: sqlite3.Connection, number: int, _: str | None) -> object:
    return agents.find(connection, crowd.TENANT, crowd.name_of(number), None)


QUESTIONS: Final[dict[str, Ask]] = {
    "rare skill": _discover(lambda number: Discover(skills=(crowd.rare_skill(number),))),
    "common skill": _discover(lambda _: Discover(skills=(crowd.COMMON_SKILL,))),
    "common skill, rated": _discover(lambda _: Discover(skills=(crowd.COMMON_SKILL,), min_rating=4.5)),
    "rare word": _discover(lambda number: Discover(text=crowd.rare_word(number))),
    "common word": _discover(lambda _: Discover(text=crowd.COMMON_WORD)),
    "common word and skill": _discover(lambda _: Discover(text=crowd.COMMON_WORD, skills=(crowd.COMMON_SKILL,))),
    "tag": _discover(lambda number: Discover(tags=(crowd.tag_of(number),))),
    "capability": _discover(lambda _: Discover(capability=crowd.COMMON_CAPABILITY)),
    "deep page": _deep,
    "by id": _by_id,
}


class Registry:
    """A file with so many agents, and a page that lies deep in it."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        path = folder / f"{size}.db"
        crowd.fill(path, size)
        self.connection = sqlite3.connect(path, isolation_level=None)
        prepare(self.connection, reads_only=False)
        cursor: str | None = None
        for _ in range(min(size // 100, 50)):
            page = search.search(
                self.connection, SCOPE, Discover(skills=(crowd.COMMON_SKILL,), cursor=cursor, limit=20)
            )
            cursor = page.cursor
        self.cursor = cursor

    def steps(self, ask: Ask) -> int:
        """How many steps the machine takes for a question."""
        taken = 0

        def step() -> int:
            nonlocal taken
            taken += FINE
            return 0

        self.connection.set_progress_handler(step, FINE)
        try:
            ask(self.connection, self.size // 2, self.cursor)
        finally:
            self.connection.set_progress_handler(None, 0)
        return taken

    def p99_ms(self, ask: Ask) -> float:
        """How long one answer of a hundred takes at least."""
        took: list[float] = []
        for number in range(ASKED):
            began = time.perf_counter()
            ask(self.connection, number * (self.size // ASKED), self.cursor)
            took.append((time.perf_counter() - began) * 1000)
        return statistics.quantiles(took, n=100)[98]


@pytest.mark.req("P-06", "P-07")
def test_no_question_is_answered_by_looking_at_all_agents(tmp_path: Path) -> None:
    registry = Registry(tmp_path, SOME)
    with closing(registry.connection):
        steps = {name: registry.steps(ask) for name, ask in QUESTIONS.items()}
    assert max(steps.values()) <= MOST_STEPS, steps


@pytest.mark.full
@pytest.mark.serial
@pytest.mark.req("P-06", "P-07")
def test_a_quarter_of_a_million_agents_are_searched_as_fast_as_a_thousand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few, many = Registry(tmp_path, 1000), Registry(tmp_path, CROWD)
    with closing(few.connection), closing(many.connection), capsys.disabled():
        for name, ask in QUESTIONS.items():
            usual, large = few.p99_ms(ask), many.p99_ms(ask)
            sys.stdout.write(f"\n{name}: p99 {usual:.2f} ms, {large:.2f} ms")
            assert large <= RATIO * max(usual, 1.0), name
