"""A bug in how data is copied: what is in the log is left behind."""

import shutil
from pathlib import Path

from dragoman.backends.sqlite import upkeep
from dragoman.backends.sqlite.upkeep import Progress
from tests.support.planting import put_in_place


def backup_without_log(_: int) -> None:
    """A backup is the file alone, without the log beside it."""

    def copied(source: Path, target: Path, progress: Progress) -> None:
        shutil.copyfile(source, target)
        target.chmod(0o600)
        progress(1, 1)

    put_in_place(upkeep, "copy_out", copied)
