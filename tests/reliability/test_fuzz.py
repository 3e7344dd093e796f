"""Whatever strangers send, in every dialect and at every URL: it is understood or refused, and nothing falls over."""

from collections.abc import Callable

import msgspec
import pytest

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect, Exchange
from dragoman.model.answers import Answer
from dragoman.model.content import Data
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import is_object
from dragoman.model.operations import Operation, SendTask
from tests.reliability.fuzz import Fuzzer, Report, numbers_of, run

MOST_MIB = 20.0

Reader = Callable[[HttpRequest], Exchange]


def judge(report: Report, count: int) -> None:
    assert not report.found, "\n".join((*report.found, str(report)))
    assert report.growth_mib < MOST_MIB, str(report)
    # A run that was refused everywhere proves nothing.
    assert report.count == count, str(report)
    assert report.understood > count * 0.25, str(report)
    assert len(report.operations) >= 12, str(report)


def test_twenty_thousand_messages_break_nothing() -> None:
    judge(run(20_000), 20_000)


@pytest.mark.full
@pytest.mark.serial
def test_a_million_messages_break_nothing_and_fill_no_memory(capsys: pytest.CaptureFixture[str]) -> None:
    report = run(1_000_000, seed=1, processes=2)
    with capsys.disabled():
        print(f"\n{report}")  # noqa: T201 - the figure that the run is for
    judge(report, 1_000_000)
    assert report.seconds < 600


def test_the_same_seed_makes_the_same_messages_and_another_seed_others() -> None:
    one, other = Fuzzer(), Fuzzer()
    made = [one.message(numbers_of(7, number)) for number in range(200)]
    assert [other.message(numbers_of(7, number)) for number in range(200)] == made
    assert [other.message(numbers_of(8, number)) for number in range(200)] != made
    assert len({(message.url, message.body) for message in made}) > 190


def test_every_url_of_every_dialect_is_met() -> None:
    fuzzer, met = Fuzzer(), set[str]()
    for number in range(3_000):
        message = fuzzer.message(numbers_of(3, number))
        met |= {dialect.slug for dialect in DIALECTS.values() if f"/{dialect.slug}" in message.url}
    assert met == set(DIALECTS)


# -- planted bugs: a dialect with a fault in its reader is handed in, and must be found


class _FallsOver:
    """An exchange whose refusals are 500 where a field of one name was wrong."""

    def __init__(self, good: Exchange) -> None:
        self._good = good

    @property
    def operation(self) -> Operation:
        return self._good.operation

    def reply(self, answer: Answer) -> HttpReply:
        return self._good.reply(answer)

    def refuse(self, error: DragomanError) -> HttpReply:
        reply = self._good.refuse(error)
        return msgspec.structs.replace(reply, status=500) if "messageId" in error.message else reply


def _raising(good: Reader) -> Reader:
    def read(request: HttpRequest) -> Exchange:
        exchange = good(request)
        if isinstance(exchange.operation, SendTask):
            for part in exchange.operation.message.parts:
                if isinstance(part, Data) and is_object(part.value) and not part.value:
                    raise KeyError("an empty object")
        return exchange

    return read


def _falling_over(good: Reader) -> Reader:
    return lambda request: _FallsOver(good(request))


def _keeping(good: Reader) -> Reader:
    kept: list[bytes] = []

    def read(request: HttpRequest) -> Exchange:
        kept.append(request.body + b"x" * 20_000)
        return good(request)

    return read


def _with(slug: str, fault: Callable[[Reader], Reader]) -> list[Dialect]:
    good = DIALECTS[slug].read
    assert good is not None
    return list({**DIALECTS, slug: msgspec.structs.replace(DIALECTS[slug], read=fault(good))}.values())


@pytest.mark.planted
@pytest.mark.parametrize("slug", ["a2a-1.0", "a2a-0.3", "dotted"])
def test_a_reader_that_raises_on_one_odd_shape_is_found(slug: str) -> None:
    with pytest.raises(AssertionError, match="KeyError"):
        judge(Fuzzer(_with(slug, _raising)).run(range(20_000)), 20_000)


@pytest.mark.planted
def test_a_refusal_that_is_the_hubs_own_fault_is_found() -> None:
    with pytest.raises(AssertionError, match="HTTP 500"):
        judge(Fuzzer(_with("a2a-1.0", _falling_over)).run(range(20_000)), 20_000)


@pytest.mark.planted
def test_a_reader_that_keeps_what_it_read_is_found() -> None:
    with pytest.raises(AssertionError, match="memory grew"):
        judge(Fuzzer(_with("platform", _keeping)).run(range(20_000)), 20_000)
