"""Interleaved rounds: A B C, A B C …, so that what the machine does meanwhile happens to all of them.

A ratio is taken within each round; what is reported is the median of the rounds' ratios with the smallest and largest.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks import wrk
from benchmarks.calls import Call
from benchmarks.ledger import Answers, Ledger
from benchmarks.processes import cpu_s, thread_cpu_s, thread_split

WARM_UP_S: Final = 1.0
NOISE: Final = 1.5


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How much to measure, and which checkouts: name → folder; the first is this one."""

    rounds: int
    seconds: float
    hubs: Mapping[str, Path]
    quick: bool = False


class Contender(NamedTuple):
    """A server that takes part in a case, and the call it is sent."""

    name: str
    call: Call
    pid: int


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One round of one contender."""

    answered: int
    seconds: float
    cpu_s: float
    per_s: float
    per_cpu_s: float
    p50_ms: float
    p99_ms: float
    threads_s: dict[str, float]


class Spread(NamedTuple):
    """Median, smallest and largest of the rounds."""

    median: float
    smallest: float
    largest: float

    @property
    def noisy(self) -> bool:
        """Whether the rounds lie too far apart to be called a repetition."""
        return self.largest > NOISE * self.smallest

    def text(self, form: str = ".3g") -> str:
        """As it is printed."""
        return f"{self.median:{form}} ({self.smallest:{form}} to {self.largest:{form}})"


Rounds = dict[str, list[Measured]]
Tally = dict[str, Ledger]


def measure(contenders: Sequence[Contender], connections: int, options: Options, folder: Path, tally: Tally) -> Rounds:
    """All rounds of one case; Void at the first wrong answer."""
    found: Rounds = {each.name: [] for each in contenders}
    for _ in range(options.rounds):
        for each in contenders:
            ledger = tally.setdefault(each.name, Ledger())
            warm = wrk.run(each.call, connections, WARM_UP_S, folder)
            ledger.add(Answers(warm.answered, warm.names), connections)
            found[each.name].append(one_round(each, connections, options.seconds, folder, ledger))
    return found


def one_round(contender: Contender, connections: int, seconds: float, folder: Path, ledger: Ledger) -> Measured:
    """Load one contender for so long; what it did, and what that cost it."""
    before, threads = cpu_s(contender.pid), thread_cpu_s(contender.pid)
    load = wrk.run(contender.call, connections, seconds, folder)
    used = max(cpu_s(contender.pid) - before, 0.01)
    split = thread_split(threads, thread_cpu_s(contender.pid))
    ledger.add(Answers(load.answered, load.names), connections)
    return Measured(
        answered=load.answered,
        seconds=load.seconds,
        cpu_s=used,
        per_s=load.per_s,
        per_cpu_s=load.answered / used,
        p50_ms=load.p50_ms,
        p99_ms=load.p99_ms,
        threads_s=split,
    )


def spread(values: Sequence[float]) -> Spread:
    """The three numbers of a row of rounds."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(
    rounds: Rounds, one: str, other: str, figure: Callable[[Measured], float] = lambda measured: measured.per_cpu_s
) -> Spread | None:
    """One contender's figure beside another's, round by round; None when either did not take part."""
    if one not in rounds or other not in rounds:
        return None
    return spread([figure(a) / figure(b) for a, b in zip(rounds[one], rounds[other], strict=True)])


def plain(rounds: Rounds) -> dict[str, Any]:
    """For the results file."""
    return {name: [msgspec.to_builtins(each) for each in measured] for name, measured in rounds.items()}
