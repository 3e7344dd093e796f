"""How much memory this process holds, and how much it may: as the kernel says.

Where nobody has set a limit there is none: how much a machine has tells nothing of who else needs it.
"""

import resource
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = resource.getpagesize()
UNLIMITED: Final = 1 << 62  # what the first version of control groups says where nothing is set, and a bit less
_SELF: Final = Path("/proc/self")
_GROUPS: Final = Path("/sys/fs/cgroup")
_RLIMITS: Final = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


def held_bytes() -> int:
    """The memory that this process holds now; 0 where the kernel does not say."""
    try:
        return int((_SELF / "statm").read_bytes().split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def limit_bytes(groups: Path = _GROUPS, own: Path = _SELF / "cgroup") -> int | None:
    """The least of the limits of this process and of the control groups that it is in; None without one."""
    limits = [soft for soft, _ in map(resource.getrlimit, _RLIMITS) if soft != resource.RLIM_INFINITY]
    limits += _group_limits(groups, own)
    return min((limit for limit in limits if 0 < limit < UNLIMITED), default=None)


def _group_limits(groups: Path, own: Path) -> list[int]:
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    found: list[int] = []
    for line in lines:
        _, _, named = line.partition(":")
        kinds, _, path = named.partition(":")
        if kinds == "":  # the second version: one tree for all
            found += _limits_above(groups, path, "memory.max")
        elif "memory" in kinds.split(","):
            found += _limits_above(groups / "memory", path, "memory.limit_in_bytes")
    return found


def _limits_above(root: Path, path: str, name: str) -> list[int]:
    """Of the group and of all that it is in: inside a container its own path may not be visible, its root is."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    found: list[int] = []
    for depth in range(len(parts) + 1):
        try:
            found.append(int((root.joinpath(*parts[:depth]) / name).read_text()))
        except (OSError, ValueError):
            continue  # not there, or "max"
    return found
