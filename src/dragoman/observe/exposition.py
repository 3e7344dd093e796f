"""Metrics as text: Prometheus 0.0.4, or OpenMetrics with exemplars where the reader asks for that.

Written by hand, because it is little: a line for each figure. The tests read it with the official parser.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from dragoman.observe.cells import Histogram, shown_labels
from dragoman.observe.names import Kind, Metric

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
END: Final = "# EOF"

Exemplar = tuple[str, float, datetime]  # a trace, the figure, and when that was


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One figure that somebody else keeps: read at the scrape."""

    metric: Metric
    values: tuple[str, ...]
    figure: float | Histogram


def wants_open(accept: bytes | None) -> bool:
    """Whether a reader asks for OpenMetrics."""
    return accept is not None and b"application/openmetrics-text" in accept


def head(metric: Metric, *, is_open: bool) -> str:
    """What stands before a metric's figures."""
    name = metric.name.removesuffix("_total") if is_open and metric.kind is Kind.COUNTER else metric.name
    return f"# HELP {name} {metric.says}\n# TYPE {name} {metric.kind}"


def line(name: str, labels: str, figure: float) -> str:
    """One figure."""
    return f"{name}{{{labels}}} {shown(figure)}" if labels else f"{name} {shown(figure)}"


def histogram(metric: Metric, labels: str, cells: Histogram, exemplar: Exemplar | None = None) -> Iterator[str]:
    """The lines of one histogram: what is at most so large, all, and their sum."""
    begin = f'{metric.name}_bucket{{{labels}{"," if labels else ""}le="'
    total, shown_at = 0, None
    if exemplar is not None:
        shown_at = next((bound for bound in cells.bounds if exemplar[1] <= bound), None)
    for bound, count in zip((*cells.bounds, None), cells.counts, strict=True):
        total += count
        text = f'{begin}{"+Inf" if bound is None else bound}"}} {total}'
        if exemplar is not None and bound == shown_at and count:
            text += f' # {{trace_id="{exemplar[0]}"}} {shown(exemplar[1])} {exemplar[2].timestamp():.3f}'
        yield text
    yield line(metric.name + "_count", labels, total)
    yield line(metric.name + "_sum", labels, cells.sum)


def family(metric: Metric, samples: Iterable[Sample], *, is_open: bool) -> Iterator[str]:
    """All lines of a metric whose figures somebody else keeps."""
    yield head(metric, is_open=is_open)
    for sample in samples:
        labels = shown_labels(metric.labels, sample.values)
        if isinstance(sample.figure, Histogram):
            yield from histogram(metric, labels, sample.figure)
        else:
            yield line(metric.name, labels, sample.figure)


def shown(figure: float) -> str:
    """A number as both forms take it."""
    return repr(int(figure)) if figure == int(figure) and abs(figure) < 1e15 else repr(figure)
