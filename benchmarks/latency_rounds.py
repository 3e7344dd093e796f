"""Latency of one caller: wrk on one connection, which asks anew as soon as it has its answer; every answer is checked.

Not a client in Python: while a server works its caller's core rests, and Python that wakes there may take its time
before it has sent, or seen what came. That would be counted as the server's.
"""

from pathlib import Path
from typing import NamedTuple

from benchmarks import wrk
from benchmarks.calls import Call
from benchmarks.ledger import Answers


class Latency(NamedTuple):
    """Median and 99th percentile in milliseconds, how often a call came, and the answers they were taken from."""

    p50_ms: float
    p99_ms: float
    every_ms: float
    answers: Answers

    def plain(self) -> dict[str, float]:
        """For the results file."""
        figures = {"p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "every_ms": self.every_ms}
        return {**figures, "answered": self.answers.count}


def follow(call: Call, seconds: float, folder: Path) -> Latency:
    """Ask for so long; Void at a wrong answer. The last request may have been cut off."""
    load = wrk.run(call, 1, seconds, folder)
    return Latency(load.p50_ms, load.p99_ms, load.seconds / load.answered * 1e3, Answers(load.answered, load.names))
