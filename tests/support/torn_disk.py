"""A disk as a power cut would leave it: every file as it was at its last sync, with none, some or all writes since."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

SECTOR: Final = 512


class Write(msgspec.Struct, frozen=True):
    """One write, or without data a truncation, that may not have reached the disk."""

    offset: int
    data: bytes | None


class _File(msgspec.Struct):
    synced: bytes = b""
    later: list[Write] = msgspec.field(default_factory=list[Write])


def replay(synced: bytes, writes: Iterable[Write]) -> bytes:
    """The bytes after these writes."""
    content = bytearray(synced)
    for write in writes:
        if write.data is None:
            del content[write.offset :]
            continue
        content.extend(bytes(max(0, write.offset - len(content))))
        content[write.offset : write.offset + len(write.data)] = write.data
    return bytes(content)


class Disk:
    """What would be found after a cut at this moment."""

    def __init__(self, chance: random.Random) -> None:
        self._files: dict[str, _File] = {}
        self._chance = chance

    def wrote(self, name: str, write: Write) -> None:
        """Not on the disk yet, perhaps."""
        self._file(name).later.append(write)

    def synced(self, name: str) -> None:
        """All of it is on the disk."""
        file = self._file(name)
        file.synced = replay(file.synced, file.later)
        file.later = []

    def deleted(self, name: str) -> None:
        """It is gone, at once."""
        self._files.pop(name, None)

    def after_cut(self, folder: Path) -> None:
        """Lay the files out as a restart would find them."""
        for name, file in self._files.items():
            (folder / Path(name).name).write_bytes(replay(file.synced, self._surviving(file.later)))

    def _file(self, name: str) -> _File:
        return self._files.setdefault(name, _File())

    def _surviving(self, writes: list[Write]) -> list[Write]:
        match self._chance.choice(("none", "all", "half", "torn")):
            case "none":
                return []
            case "all":
                return writes
            case "half":
                return [write for write in writes if self._chance.random() < 0.5]
            case _:
                pieces = (piece for write in writes for piece in _sectors(write))
                return [piece for piece in pieces if self._chance.random() < 0.5]


def _sectors(write: Write) -> list[Write]:
    if write.data is None:
        return [write]
    cuts = range(0, len(write.data), SECTOR)
    return [Write(write.offset + start, write.data[start : start + SECTOR]) for start in cuts]
