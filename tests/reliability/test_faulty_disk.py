"""R18: whatever call of the database breaks, each command ends with an error or a success, and neither is a lie.

Commands are given to the store, one after the other, on a disk whose n-th call breaks. What was acknowledged is in the
file afterwards; what was refused is not there, or is answered as if it had not been when it is repeated with its key;
and once the disk is mended the same store serves again.
"""

import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.model.errors import DragomanError
from dragoman.ports.store import Duplicate, Opened, Opening
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import chunk, completed, new_task, once, opening, step
from tests.support.faultdisk import KINDS, FaultyFiles
from tests.support.run import run

if TYPE_CHECKING:
    from dragoman.model.task import Task

SHORT_COMMANDS, COMMANDS = 12, 40
SHORT, FULL = 50, 500
WAL_MIB = 0.1  # so that checkpoints are among the calls that break


class Script:
    """The commands on one store, and what was answered."""

    def __init__(self, path: Path, commands: int, *, swallows: bool = False) -> None:
        self.commands = commands
        self.clock = ManualClock()
        self.files = FaultyFiles(swallows=swallows)
        self.path = path
        self.acknowledged: dict[str, Task] = {}
        self.sealed: set[str] = set()
        self.refused: list[Opening] = []
        self.errors = 0
        self._open: list[Task] = []
        self._store = SqliteStore(
            path, clock=self.clock, bus=LocalBus(), wal_mib=WAL_MIB, inline=True, connect=self.files.connect
        )

    async def go_through(self, at: int, kind: str, *, lasts: bool) -> None:
        """All commands with that fault, the proof that the store serves again, and a look at its file."""
        await self._store.start()
        try:
            self.files.faults.arm(at, kind, lasts=lasts)
            for number in range(self.commands):
                await self._command(number)
            self.files.faults.mend()
            await self._repeat_what_was_refused()
            await self._command(0)
            await self._command(1)
            assert not self._open or self._open[-1].id in self.acknowledged, "it does not serve again"
        finally:
            self.files.faults.mend()
            with suppress(sqlite3.Error):
                await self._store.close()
            self.files.put_away()
        self._look()

    async def _command(self, number: int) -> None:
        try:
            match number % 4:
                case 0:
                    await self._begin()
                case 1 | 3 if self._open:
                    await self._grow(ends=number % 4 == 3)
                case _:
                    name = self.clock.new_id("secret_")
                    await self._store.put_sealed(name, b"sealed")
                    self.sealed.add(name)
        except (sqlite3.Error, DragomanError, MemoryError):
            self.errors += 1

    async def _begin(self) -> None:
        task = new_task(self.clock)
        asked = opening(task, durable=True, once=once(self.clock, task.id))
        try:
            assert isinstance(await self._store.open(asked), Opened)
        except BaseException:
            self.refused.append(asked)
            raise
        self.acknowledged[task.id] = task
        self._open.append(task)

    async def _grow(self, *, ends: bool) -> None:
        task = self._open.pop()
        events = [chunk(self.clock, "a word")] + ([completed(self.clock)] if ends else [])
        growth = step(task, *events)
        raced = await self._store.append(growth)
        assert raced is None, "a step that was refused is there, or one that was acknowledged is not"
        self.acknowledged[task.id] = growth.task
        if not ends:
            self._open.append(growth.task)

    async def _repeat_what_was_refused(self) -> None:
        for asked in self.refused:
            answer = await self._store.open(asked)
            known = isinstance(answer, Duplicate) and answer.same and answer.task_id == asked.task.id
            assert isinstance(answer, Opened) or known, f"{answer} to a repeat"
            self.acknowledged[asked.task.id] = asked.task

    def _look(self) -> None:
        with closing(sqlite3.connect(self.path)) as found:
            assert found.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the file is corrupt"
            rows = {row[0]: row for row in found.execute("SELECT id, last_seq, state FROM task")}
            sealed = {row[0] for row in found.execute("SELECT name FROM sealed")}
        for task_id, task in self.acknowledged.items():
            assert task_id in rows, f"{task_id} was acknowledged and is lost"
            assert rows[task_id][1] >= task.last_seq, f"a step of {task_id} was acknowledged and is lost"
            assert not task.ended or rows[task_id][2] >= 4, f"the end of {task_id} was acknowledged and is lost"
        assert self.sealed <= sealed, "a secret was acknowledged and is lost"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as it is after the first start: to be copied, not made again for each fault."""

    async def make() -> None:
        store = SqliteStore(path, clock=ManualClock(), bus=LocalBus(), inline=True)
        await store.start()
        await store.close()

    path = tmp_path_factory.mktemp("fresh") / "hub.db"
    run(make())
    return path


def test_no_answer_is_a_lie_when_one_of_the_first_50_calls_of_the_database_breaks(
    fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _show(
        capsys,
        _broken_at(fresh, tmp_path, ((n, KINDS[n % 4], n % 8 >= 4) for n in range(1, SHORT + 1)), SHORT_COMMANDS),
    )


@pytest.mark.full
def test_no_answer_is_a_lie_when_any_of_the_first_500_calls_of_the_database_breaks(
    fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = ((n, kind, lasts) for n in range(1, FULL + 1) for kind in KINDS for lasts in (False, True))
    _show(capsys, _broken_at(fresh, tmp_path, every))


@pytest.mark.planted
def test_an_error_of_the_database_that_is_swallowed_is_found(fresh: Path, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, IndexError)):
        _broken_at(fresh, tmp_path, ((n, kind, True) for n in range(1, 10) for kind in KINDS), swallows=True)


def _broken_at(
    fresh: Path,
    folder: Path,
    faults: Iterable[tuple[int, str, bool]],
    commands: int = COMMANDS,
    *,
    swallows: bool = False,
) -> Counter[str]:
    done: Counter[str] = Counter()
    for at, kind, lasts in faults:
        path = folder / f"{at}-{kind}-{lasts}" / "hub.db"
        path.parent.mkdir()
        shutil.copy(fresh, path)
        script = Script(path, commands, swallows=swallows)
        try:
            run(script.go_through(at, kind, lasts=lasts))
        except AssertionError as error:
            raise AssertionError(f"call {at} broke ({kind}, {'for ever' if lasts else 'once'}): {error}") from error
        assert script.files.faults.broken, f"call {at} was never made: that proves nothing"
        done.update(faults=1, errors=script.errors, acknowledged=len(script.acknowledged))
    return done


def _show(capsys: pytest.CaptureFixture[str], done: Counter[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(
            f"\n{done['faults']} faults of the disk: {done['errors']} commands refused, "
            f"{done['acknowledged']} calls acknowledged, no answer a lie"
        )
