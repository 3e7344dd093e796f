"""Cells: where metrics are kept between two scrapes. Plain numbers, changed at a call's end, read by the exposition.

What a metric is told apart by is bounded: so many values of a label, so many combinations; whatever is beyond is
counted as `other`, so that sums stay exact. A combination that was idle for an hour gives its place back.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from dragoman.observe.names import Label, Metric

if TYPE_CHECKING:
    from datetime import datetime

OTHER: Final = "other"
IDLE_S: Final = 3600.0
COMBINATION: Final = "combination"  # as a value of `label`, where not one value but their combination is beyond


@final
class Histogram:
    """How often a figure was how large: a count for each bucket, not added up, and the sum of all figures."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, figure: float) -> None:
        """Count one figure."""
        self.counts[bisect_left(self.bounds, figure)] += 1
        self.sum += figure

    def observe_all(self, figures: Sequence[float]) -> None:
        """Count many."""
        bounds, counts = self.bounds, self.counts
        for figure in figures:
            counts[bisect_left(bounds, figure)] += 1
        self.sum += sum(figures)


@final
class Values:
    """The values of one label that have a place, by how many combinations use each."""

    __slots__ = ("_most", "_uses", "label", "overflowed")

    def __init__(self, label: str, most: int) -> None:
        self.label = label
        self.overflowed = 0
        self._most = most
        self._uses: dict[str, int] = {}

    def take(self, value: str, times: int = 1) -> str:
        """The value, if it has or gets a place; else `other`, which needs none. `times`: how often it is counted."""
        if value == OTHER:
            return OTHER
        uses = self._uses.get(value)
        if uses is None:
            if len(self._uses) >= self._most:
                self.overflowed += times
                return OTHER
            uses = 0
        self._uses[value] = uses + 1
        return value

    def give(self, value: str) -> None:
        """A combination no longer uses it."""
        uses = self._uses.get(value)
        if uses is not None:
            if uses > 1:
                self._uses[value] = uses - 1
            else:
                del self._uses[value]


def shown_labels(names: Sequence[str], values: Sequence[str]) -> str:
    """Labels as they stand in a line; whatever is in a value, it stays one value."""
    return ",".join(
        [f'{name}="{value if value.isalnum() else _escaped(value)}"' for name, value in zip(names, values, strict=True)]
    )


def _escaped(value: str) -> str:
    # What cannot be written as UTF-8 is shown as a question mark; a line ends at nothing but a line feed.
    text = value.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@final
class Counter:
    """One counter: what it is told apart by, how it stands, and when it last moved."""

    __slots__ = ("key", "last", "shown", "value")

    def __init__(self, key: tuple[str, ...], shown: str) -> None:
        self.key = key
        self.shown = shown
        self.value = 0.0
        self.last = 0.0


@final
class Timed:
    """One histogram: what it is told apart by, what it has seen, and when it last saw something."""

    __slots__ = ("key", "last", "shown", "took")

    def __init__(self, key: tuple[str, ...], shown: str, bounds: Sequence[float]) -> None:
        self.key = key
        self.shown = shown
        self.took = Histogram(bounds)
        self.last = 0.0


Cell = TypeVar("Cell", Counter, Timed)


class _Cells(ABC, Generic[Cell]):
    """The cells of one metric, told apart by labels. `bounded` are those labels whose values need a place."""

    __slots__ = ("_bounded", "_cells", "_most", "metric", "overflowed")

    def __init__(self, metric: Metric, bounded: Mapping[Label, Values] | None = None, most: int = 5000) -> None:
        self.metric = metric
        self.overflowed = 0
        self._bounded = tuple((bounded or {}).get(label) for label in metric.labels)
        self._most = most
        self._cells: dict[tuple[str, ...], Cell] = {}

    def cells(self) -> Iterator[Cell]:
        """Every cell."""
        yield from tuple(self._cells.values())

    def give_back(self, before: float) -> None:
        """Let go of what has not moved since then; what has no bound stays."""
        if any(self._bounded):
            for key, cell in tuple(self._cells.items()):
                if cell.last < before:
                    del self._cells[key]
                    self._give(cell.key)

    def _placed(self, values: tuple[str, ...]) -> Cell:
        key = tuple(
            value if bounded is None else bounded.take(value)
            for value, bounded in zip(values, self._bounded, strict=True)
        )
        known = self._cells.get(key)
        if known is None and len(self._cells) >= self._most:
            self.overflowed += 1
            self._give(key)
            key = (OTHER,) * len(values)
            known = self._cells.get(key)
        elif known is not None:
            self._give(key)
        if known is None:
            known = self._cells[key] = self._new(key, shown_labels(self.metric.labels, key))
        return known

    @abstractmethod
    def _new(self, key: tuple[str, ...], shown: str) -> Cell:
        """A cell that has counted nothing yet."""

    def _give(self, key: tuple[str, ...]) -> None:
        for value, bounded in zip(key, self._bounded, strict=True):
            if bounded is not None:
                bounded.give(value)


@final
class Counters(_Cells[Counter]):
    """A metric that counts."""

    __slots__ = ()

    def add(self, values: tuple[str, ...], now: float, by: float = 1) -> None:
        """Count something."""
        cell = self._cells.get(values)
        if cell is None:
            cell = self._placed(values)
        cell.value += by
        cell.last = now

    def _new(self, key: tuple[str, ...], shown: str) -> Counter:
        return Counter(key, shown)


@final
class Histograms(_Cells[Timed]):
    """A metric that says how often something took how long."""

    __slots__ = ()

    def observe(self, values: tuple[str, ...], now: float, figure: float) -> None:
        """Count one figure."""
        cell = self._cells.get(values)
        if cell is None:
            cell = self._placed(values)
        cell.took.observe(figure)
        cell.last = now

    def _new(self, key: tuple[str, ...], shown: str) -> Timed:
        return Timed(key, shown, self.metric.bounds)


@final
class CallCell:
    """What is known of the calls of one caller, target and skill: how they ended, and how long they took."""

    __slots__ = ("exemplar", "key", "last", "shown", "statuses", "took")

    def __init__(self, key: tuple[str, str, str], shown: str, statuses: int, bounds: Sequence[float]) -> None:
        self.key = key
        self.shown = shown
        self.statuses = [0] * statuses
        self.took = Histogram(bounds)
        self.exemplar: tuple[str, float, datetime] | None = None  # the last call: its trace, how long it took, when
        self.last = 0.0
