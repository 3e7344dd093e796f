"""Latency of one caller: requests one after another on one connection, each answer checked, each timed exactly."""

import statistics
import time
from typing import NamedTuple

from benchmarks.calls import Call, new_prefix, numbered
from benchmarks.http import Connection
from benchmarks.ledger import Answers
from benchmarks.place import Void


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


def follow(call: Call, seconds: float) -> Latency:
    """Ask for so long; Void at the first wrong answer."""
    prefix, number, times, names = new_prefix(), 0, list[float](), list[str]()
    with Connection(call.endpoint) as connection:
        begun = time.perf_counter()
        ends = begun + seconds
        while (began := time.perf_counter()) < ends or number < 100:
            id_ = numbered(prefix, number)
            request = call.with_id(id_)
            began = time.perf_counter()
            reply = connection.exchange(request)
            times.append((time.perf_counter() - began) * 1e3)
            number += 1
            if fault := call.wanted.fault(reply, id_):
                raise Void(f"A wrong answer of {call.endpoint.url}: {fault}")
            names += call.wanted.named(reply)
        every_ms = (time.perf_counter() - begun) / number * 1e3
    cuts = statistics.quantiles(times, n=100)
    return Latency(cuts[49], cuts[98], every_ms, Answers(number, names))
