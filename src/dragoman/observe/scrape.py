"""One scrape: the cells and the figures of others as text, made in slices, so that no call waits for it.

A figure that cannot be read is left out and said so: observing fails nothing. Gauges by target are bounded like all
else: the largest have a line, what is left is one line of `other`.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from dragoman.observe import names
from dragoman.observe.cells import OTHER, Histogram
from dragoman.observe.exposition import END, Sample, family, head, histogram, line
from dragoman.observe.metrics import STATUSES, Metrics
from dragoman.observe.names import Label, Metric
from dragoman.ports.clock import Clock

LOG: Final = logging.getLogger("dragoman.observe")
SLICE: Final = 200  # combinations that are put into text before other work gets a turn

Reader = Callable[[], Iterable[Sample]]  # figures of others that are at hand
Asking = Callable[[], Awaitable[Iterable[Sample]]]  # those that have to be looked up

_SAID_ALWAYS: Final = (names.CALL_QUEUE, names.CALLS_ACTIVE, names.BREAKER)
# What the rest of a gauge comes to: all of it, or the worst of it.
_REST: Final[dict[Metric, Callable[[list[float]], float]]] = {names.AGENT_UP: min, names.BREAKER: max}


class Scrape:
    """Reads everything there is to know of one process."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        clock: Clock,
        readers: Iterable[Reader] = (),
        asking: Iterable[Asking] = (),
        catch_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._metrics = metrics
        self._catch_up = catch_up  # has the metrics told of every call that has ended
        self._clock = clock
        self._readers = (metrics.samples, *readers)
        self._asking = tuple(asking)

    async def text(self, *, is_open: bool) -> bytes:
        """Everything, as text; other work gets its turn while it is made."""
        self._catch_up()
        self._metrics.give_back()
        read = await self._read()
        lines: list[str] = []
        for many in self._slices(is_open):
            lines += many
            await self._clock.sleep(0)
        for metric, samples in read.items():
            lines += family(metric, samples, is_open=is_open)
        if is_open:
            lines.append(END)
        return ("\n".join(lines) + "\n").encode("utf-8", "replace")

    def _slices(self, is_open: bool) -> Iterator[list[str]]:
        cells = [*self._metrics.calls.values()]
        slices = [cells[at : at + SLICE] for at in range(0, len(cells), SLICE)]
        yield [head(names.CALLS, is_open=is_open)]
        for some in slices:
            yield [
                line(names.CALLS.name, f'{cell.shown},{Label.STATUS}="{status}"', count)
                for cell in some
                for status, count in zip(STATUSES, cell.statuses, strict=True)
                if count
            ]
        yield [head(names.CALL_DURATION, is_open=is_open)]
        for some in slices:
            yield [
                each
                for cell in some
                for each in histogram(names.CALL_DURATION, cell.shown, cell.took, cell.exemplar if is_open else None)
            ]
        for counters in self._metrics.counters():
            name = counters.metric.name
            yield [
                head(counters.metric, is_open=is_open),
                *(line(name, cell.shown, cell.value) for cell in counters.cells()),
            ]
        for histograms in self._metrics.histograms():
            yield [
                head(histograms.metric, is_open=is_open),
                *(each for cell in histograms.cells() for each in histogram(histograms.metric, cell.shown, cell.took)),
            ]

    async def _read(self) -> dict[Metric, list[Sample]]:
        samples: list[Sample] = []
        for reader in self._readers:
            try:
                samples += reader()
            except Exception:
                LOG.warning(names.UNREAD, exc_info=True)
        for asking in self._asking:
            try:
                samples += await asking()
            except Exception:
                LOG.warning(names.UNREAD, exc_info=True)
        # Where nothing waits, runs or is broken, that is said too.
        samples += [Sample(metric, (target,), 0) for metric in _SAID_ALWAYS for target in self._metrics.targets()]
        found: dict[Metric, list[Sample]] = {}
        for sample in samples:
            found.setdefault(sample.metric, []).append(sample)
        return {metric: self._bounded(metric, many) for metric, many in found.items()}

    def _bounded(self, metric: Metric, samples: list[Sample]) -> list[Sample]:
        if metric.labels[:1] != (Label.TARGET,):
            return samples
        most, together = self._metrics.max_values, _REST.get(metric, sum)
        figures = [(each.figure, each.values) for each in samples if not isinstance(each.figure, Histogram)]
        figures.sort(reverse=metric is not names.AGENT_UP)
        # Agents of two tenants may have the same id: they are one line, too.
        merged: dict[tuple[str, ...], list[float]] = {}
        for figure, values in figures:
            shown = values if len(merged) < most or values in merged else (OTHER, *values[1:])
            merged.setdefault(shown, []).append(figure)
        return [Sample(metric, values, together(many)) for values, many in merged.items()]
