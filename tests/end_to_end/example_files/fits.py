"""Whether an answer is what an example shows: the same members, of the same types, with the same values.

Only ids, times and addresses may be others, and of an id every mention must be the same other one.
"""

import re
from collections.abc import Collection
from typing import Any, Final

from dragoman.model.json import is_array, is_object
from tests.end_to_end.world import RFC_3339

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_URL: Final = re.compile(r"https?://[^ ]+")
_IDS: Final = frozenset(
    {"id", "call_id", "message_id", "task_id", "messageId", "taskId", "contextId", "artifactId"}
    | {"trace_id", "span_id", "from", "to"}
)


class Fit:
    """One comparison: what differs, and which id stands for which."""

    def __init__(self, varies: Collection[str], added: Collection[str]) -> None:
        self._varies = varies
        self._added = added
        self._ids: dict[str, str] = {}
        self.faults: list[str] = []

    def compare(self, found: Any, shown: Any, place: str = "") -> None:
        """Note every difference."""
        if is_object(shown) and is_object(found):
            self._members(found, shown, place)
        elif is_array(shown) and is_array(found):
            if len(shown) != len(found) and place not in self._varies:
                self.faults.append(f"{place} has {len(found)} members, shown are {len(shown)}")
            for index, each in enumerate(found):
                self.compare(each, shown[min(index, len(shown) - 1)], f"{place}[]")
        elif type(found) is not type(shown) or (
            found != shown and place not in self._varies and not self._may_differ(found, shown, place)
        ):
            self.faults.append(f"{place} is {found!r}, shown as {shown!r}")

    def _members(self, found: dict[str, Any], shown: dict[str, Any], place: str) -> None:
        for name in shown.keys() | found.keys():
            below = f"{place}.{name}" if place else name
            if name not in found:
                self.faults.append(f"{below} is missing")
            elif name in shown:
                self.compare(found[name], shown[name], below)
            elif below not in self._added:
                self.faults.append(f"{below} is not shown: {found[name]!r}")

    def _may_differ(self, found: Any, shown: Any, place: str) -> bool:
        if not isinstance(shown, str):
            return False
        if _TIME.fullmatch(shown):
            return RFC_3339.fullmatch(found) is not None
        if _UUID.fullmatch(shown) or place.rpartition(".")[2] in _IDS:
            return self._ids.setdefault(shown, found) == found
        return bool(_URL.fullmatch(shown) and _URL.fullmatch(found))


def differences(found: Any, shown: Any, *, varies: Collection[str] = (), added: Collection[str] = ()) -> list[str]:
    """Where an answer is not as shown.

    `varies`: places whose value is the answer's own, of the shown type. `added`: members that the example lacks.
    """
    fit = Fit(varies, added)
    fit.compare(found, shown)
    return sorted(fit.faults)
