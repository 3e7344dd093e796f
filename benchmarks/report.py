"""How figures are shown and kept: ratios with their spread first, bare numbers only beside them."""

import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.place import RESULTS
from benchmarks.rounds import Measured, Rounds, Spread, spread

Row = Sequence[object]


def table(headings: Row, rows: Sequence[Row]) -> None:
    """Print columns, the first to the left, the others to the right."""
    lines = [[str(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        first, *rest = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  " + "  ".join((first, *rest)).rstrip())


def show_rounds(rounds: Rounds) -> None:
    """Print what each contender did: medians, with the spread of the unit that survives a busy machine."""
    rows = [
        (
            name,
            spread([each.per_cpu_s for each in measured]).text(",.0f"),
            f"{1e6 / _median(measured, 'per_cpu_s'):,.0f}",
            f"{_median(measured, 'per_s'):,.0f}",
            f"{_median(measured, 'p50_ms'):.2f}",
            f"{_median(measured, 'p99_ms'):.2f}",
        )
        for name, measured in rounds.items()
    ]
    table(("peer", "R/CPU-s", "CPU µs", "R/s", "p50 ms", "p99 ms"), rows)


def show_ratio(label: str, ratio: Spread | None, goal: str = "") -> None:
    """Print one ratio, and what it should be."""
    if ratio is not None:
        print(f"  {label}: {ratio.text()}x" + (f"   [{goal}]" if goal else ""))


def thread_shares(measured: Sequence[Measured]) -> dict[str, float]:
    """CPU µs per call of the loop's thread, the writer's and the rest, medians of the rounds."""
    names = measured[0].threads_s
    return {name: spread([each.threads_s[name] / each.answered * 1e6 for each in measured]).median for name in names}


def keep(name: str, result: dict[str, Any]) -> None:
    """Write a result beside the earlier ones."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    print(f"  kept in {file.relative_to(RESULTS.parents[1])}")


def _median(measured: Sequence[Measured], figure: str) -> float:
    return spread([getattr(each, figure) for each in measured]).median
