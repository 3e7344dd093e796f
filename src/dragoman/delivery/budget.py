"""The retry budget: of all that goes to a target, so much may be retries; a target in trouble is not buried in them.

In the last ten seconds: at most a fifth of the first tries, and a hundred more. Nothing is kept of targets that need
no retries, so first tries count from the first retry on. Counted by the second, and rounded against the retries.
"""

from collections import OrderedDict, deque
from typing import Final, final

WINDOW_S: Final = 10
SHARE: Final = 0.2
MORE: Final = 100
MOST_TARGETS: Final = 10_000  # with retries at once; beyond it no further target gets any


@final
class RetryBudget:
    """What retries each target still gets."""

    __slots__ = ("targets",)

    def __init__(self) -> None:
        # By target: second, first tries, retries. The target that needed a retry longest ago is the first.
        self.targets: OrderedDict[str, deque[list[int]]] = OrderedDict()

    def tried(self, target: str, now: float) -> None:
        """A call goes to the target for the first time."""
        if (seconds := self.targets.get(target)) is not None:
            _second(seconds, now)[1] += 1

    def take(self, target: str, now: float) -> bool:
        """Whether the target may get one more retry, which then counts."""
        seconds = self.targets.get(target)
        if seconds is None:
            self._forget(now)
            if len(self.targets) >= MOST_TARGETS:
                return False
            seconds = self.targets[target] = deque()
        self.targets.move_to_end(target)
        last = _second(seconds, now)
        # What began up to a second too early: retries count with it, first tries without.
        oldest = int(now) - WINDOW_S
        tries = sum(first for second, first, _ in seconds if second > oldest)
        retries = sum(again for _, _, again in seconds)
        if retries + 1 > SHARE * tries + MORE:
            return False
        last[2] += 1
        return True

    def _forget(self, now: float) -> None:
        """Drop the targets that needed no retry for a while."""
        oldest = int(now) - WINDOW_S
        while self.targets and _last_retry(next(iter(self.targets.values()))) < oldest:
            self.targets.popitem(last=False)


def _last_retry(seconds: deque[list[int]]) -> int:
    return max((second for second, _, retries in seconds if retries), default=0)


def _second(seconds: deque[list[int]], now: float) -> list[int]:
    second = int(now)
    while seconds and seconds[0][0] < second - WINDOW_S:
        seconds.popleft()
    if not seconds or seconds[-1][0] != second:
        seconds.append([second, 0, 0])
    return seconds[-1]
