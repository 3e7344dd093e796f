"""A structural fuzzer over everything that reads what strangers send: every dialect, every URL, the shared ones too.

    python -m tests.reliability.fuzz --count 1000000       a run; the same seed makes the same messages
    python -m tests.reliability.fuzz --only 4711           one message of it, shown

A seed of `fuzz_seeds` is changed (`mutate`), read by what serves its URL, and answered or refused (`fuzz_answers`).
Nothing may raise, no reply may be 5xx, no body but JSON; a JSON-RPC reply has the request's id and either a result or
an error. What was understood can be stored, and sent on in some other dialect with headers that are headers.
"""

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from dragoman.backends.sqlite.codec import Blob, pack
from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Exchange
from dragoman.model.answers import Accepted, Answer, TaskPage
from dragoman.model.errors import DragomanError, NotJson
from dragoman.model.events import Remote
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_object
from dragoman.model.operations import SendTask, Unreadable
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.server.body import check_depth
from dragoman.server.exchange import DialectRoute
from dragoman.server.rpc import Batch
from tests.dialects.goldens import AT, HUB
from tests.dialects.loops import WIRES, opened, outgoing_of, without_files
from tests.reliability.fuzz_answers import answer_to, refusal
from tests.reliability.fuzz_seeds import Seed, seeds
from tests.reliability.mutate import filled, mutated, mutated_headers, queried
from tests.support.urls import Served, arrived, served_urls, url_table

SEED: Final = 20260701
WARM: Final = 5_000  # messages before memory is looked at: by then every decoder and cache is made
PAGE: Final = 4096
MOST_SHOWN: Final = 20
_STORED: Final = Blob(SendTask)


class Message(msgspec.Struct, frozen=True):
    """One message of a run: where it goes, what it says."""

    method: str
    url: str
    headers: Mapping[bytes, bytes]
    body: bytes

    def __str__(self) -> str:
        shown = "".join(f"{name!r}: {value!r}\n" for name, value in self.headers.items())
        return f"{self.method} {self.url}\n{shown}\n{self.body!r}"


class Report(msgspec.Struct):
    """What a run met."""

    count: int = 0
    understood: int = 0
    operations: Counter[str] = msgspec.field(default_factory=lambda: Counter[str]())
    found: list[str] = msgspec.field(default_factory=lambda: list[str]())
    growth_mib: float = 0.0
    seconds: float = 0.0

    def add(self, other: "Report") -> None:
        """Take in what another process met beside this one."""
        self.count += other.count
        self.understood += other.understood
        self.operations += other.operations
        self.found += other.found
        self.growth_mib = max(self.growth_mib, other.growth_mib)
        self.seconds = max(self.seconds, other.seconds)

    def __str__(self) -> str:
        rate = self.count / self.seconds if self.seconds else 0.0
        said = ", ".join(f"{name} {count:,}" for name, count in self.operations.most_common())
        return (
            f"{self.count:,} messages in {self.seconds:.0f} s, {rate:,.0f}/s; {self.understood:,} understood ({said}); "
            f"memory grew by {self.growth_mib:.1f} MiB at most; {len(self.found)} faults"
        )


class Fuzzer:
    """The dialects under test, their URLs, and the messages to begin with."""

    def __init__(self, dialects: Iterable[Dialect] = tuple(DIALECTS.values())) -> None:
        self._dialects = tuple(dialects)
        self._table = url_table(self._dialects)
        self._paths = sorted({(method, path) for method, path, _ in served_urls(self._dialects)})
        self._seeds = seeds()
        asked = [(seed, self._asks(seed)) for seed in self._seeds]
        self._good = [seed for seed, kinds in asked if kinds and Unreadable not in kinds]
        calls: dict[str, list[Seed]] = {}
        for seed, kinds in asked:
            if SendTask in kinds:
                calls.setdefault(seed.wire, []).append(seed)
        self._calls = list(calls.values())

    def run(self, numbers: range, seed: int = SEED) -> Report:
        """Send these messages, one after the other."""
        report = Report()
        began, held = time.perf_counter(), 0
        for number in numbers:
            fault = self.try_one(number, seed, report)
            if fault is not None and len(report.found) < MOST_SHOWN:
                report.found.append(f"--seed {seed} --only {number}: {fault}")
            if report.count == WARM:
                held = _held_bytes()
        report.seconds = time.perf_counter() - began
        if report.count > WARM:
            report.growth_mib = (_held_bytes() - held) / 2**20
        return report

    def try_one(self, number: int, seed: int, report: Report) -> str | None:
        """Send one message: what is wrong with what came of it."""
        random = numbers_of(seed, number)
        message = self.message(random)
        report.count += 1
        try:
            return self._judged(random, message, report)
        except Exception:  # noqa: BLE001 - any exception at all is what is looked for
            return traceback.format_exc(limit=-4)

    def message(self, random: Random) -> Message:
        """The message that these random numbers make."""
        # Most begin with what is understood, half of them with a call: what is nearly right finds more than rubbish.
        kind = random.random()
        chosen = random.choice(random.choice(self._calls) if kind < 0.5 else self._good if kind < 0.9 else self._seeds)
        other = random.choice(self._seeds)
        method, url = chosen.method, chosen.url
        if random.random() < 0.08:
            method, path = random.choice(self._paths)
            url = filled(random, path)
        body = chosen.body if random.random() < 0.05 else mutated(random, chosen.body, other.body)
        return Message(method, queried(random, url), mutated_headers(random, chosen.headers), body)

    def _asks(self, seed: Seed) -> set[type]:
        """What a seed asks for, as it is."""
        path = seed.url.partition("?")[0]
        found = self._table.find(seed.method, path, path.encode())
        if found is None:
            return set()
        request = arrived(found, seed.method, seed.url, headers=dict(seed.headers), body=seed.body, at=AT, hub=HUB)
        return {type(exchange.operation) for exchange, _ in _exchanges(found.target, request)}

    def _judged(self, random: Random, message: Message, report: Report) -> str | None:
        path = message.url.partition("?")[0]
        found = self._table.find(message.method, path, path.encode())
        if found is None:
            return None  # Nobody serves that; the server says so itself.
        body, deep = message.body, None
        try:
            check_depth(body)
        except NotJson as error:
            body, deep = b"", error  # As the server does it.
        request = arrived(found, message.method, message.url, headers=message.headers, body=body, at=AT, hub=HUB)
        exchanges = _exchanges(found.target, request)
        for exchange, inline in exchanges:
            operation = exchange.operation
            report.operations[type(operation).__name__] += 1
            said = deep or answer_to(random, operation)
            if isinstance(said, DragomanError):
                reply = exchange.refuse(said)
            else:
                reply = exchange.reply(said if inline else _linked(said))
            # That an agent rejects a call or asks back is its failure to a caller who cannot be asked: 502.
            agents_fault = isinstance(said, Task) and said.state is not TaskState.COMPLETED
            fault = _wrong_reply(reply, (502,) if agents_fault else ())
            fault = fault or _wrong_reply(exchange.refuse(refusal(random)))
            if fault is None and isinstance(operation, SendTask):
                fault = self._carried(random, operation)
            if fault is not None:
                return fault
        report.understood += not any(isinstance(exchange.operation, Unreadable) for exchange, _ in exchanges)
        return None

    def _carried(self, random: Random, asked: SendTask) -> str | None:
        """What was understood is stored, and sent to an agent of some dialect."""
        if _STORED.unpack(pack(asked)) != asked:
            return f"stored, it is another: {asked}"
        wire = random.choice(WIRES)
        task = msgspec.structs.replace(opened(asked), remote=Remote(task_id="task-7"))
        if random.random() < 0.3:
            asked = msgspec.structs.replace(asked, continues="task-7")
        try:
            request = wire.dialect.ask(outgoing_of(wire, asked, task=task))
        except DragomanError:
            return None  # What a wire cannot carry is refused.
        for name, value in request.headers.items() if request is not None else ():
            if not value.isascii() or any(byte < 0x20 or byte == 0x7F for byte in value):
                return f"{wire.name} sends {name!r}: {value!r}"
        return None


def run(count: int, *, seed: int = SEED, processes: int = 1, start: int = 0) -> Report:
    """Send so many messages, on so many processes at once."""
    if processes == 1:
        return Fuzzer().run(range(start, start + count), seed)
    report = Report()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        parts = [range(start + each, start + count, processes) for each in range(processes)]
        for part in pool.map(_part, parts, [seed] * processes):
            report.add(part)
    return report


def _part(numbers: range, seed: int) -> Report:
    return Fuzzer().run(numbers, seed)


def _exchanges(served: Served, request: HttpRequest) -> list[tuple[Exchange, bool]]:
    """What a request asks, one by one, each with whether its dialect takes files inside."""
    if isinstance(served, DialectRoute):
        exchange = served.read(request)
        return [(exchange, served.said(exchange)[1].inline)]
    asked = served.read(request)
    members = asked.members if isinstance(asked, Batch) else (asked,)
    return [(member.exchange, member.spoken.inline) for member in members]


def _linked(answer: Answer) -> Answer:
    """The answer with links in place of files, as the server gives it to dialects that take none inside."""
    match answer:
        case Task():
            return without_files(answer)
        case Accepted(task=task):
            return msgspec.structs.replace(answer, task=without_files(task))
        case TaskPage(tasks=tasks):
            return msgspec.structs.replace(answer, tasks=tuple(without_files(task) for task in tasks))
        case _:
            return answer


def _wrong_reply(reply: HttpReply, allowed: tuple[int, ...] = ()) -> str | None:
    if not 200 <= reply.status < 500 and reply.status not in allowed:
        return f"HTTP {reply.status}: {reply.body[:300]!r}"
    if reply.status in (204, 304):
        return None if not reply.body else f"HTTP {reply.status} with a body"
    body: Json = msgspec.json.decode(reply.body)
    if is_object(body) and body.get("jsonrpc") == "2.0":
        told = [name for name in ("error", "result") if name in body]
        if len(told) != 1 or body[told[0]] is None or "id" not in body:
            return f"not an id and one of error and result: {reply.body[:300]!r}"
    return None


def _held_bytes() -> int:
    """The memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.fuzz")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, help="show one message, and what comes of it")
    chosen = parser.parse_args(arguments)
    if chosen.only is not None:
        fuzzer = Fuzzer()
        fault = fuzzer.try_one(chosen.only, chosen.seed, Report())
        sys.stdout.write(f"{fuzzer.message(numbers_of(chosen.seed, chosen.only))}\n\n{fault or 'nothing wrong'}\n")
        return int(fault is not None)
    report = run(chosen.count, seed=chosen.seed, processes=chosen.processes)
    sys.stdout.write("\n".join((*report.found, str(report), "")))
    return int(bool(report.found))


def numbers_of(seed: int, number: int) -> Random:
    """The random numbers of one message: its own, so that it can be made again without those before it."""
    return Random(f"{seed}/{number}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
