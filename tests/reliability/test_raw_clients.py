import resource
import sys
import time
from collections.abc import Iterator

import pytest

from dragoman.server.limits import Limits as ServerLimits
from tests.end_to_end.world import eventually
from tests.support.raw_app import SMALL, WAYS, Running, running
from tests.support.rawhttp import (
    CASES,
    Case,
    Limits,
    Target,
    When,
    attempt,
    faults,
    good,
    never_read,
    reset_at_every_offset,
)

LIMITS = Limits(header_s=SMALL.header_s, body_s=SMALL.body_s, reader_s=SMALL.reader_s)
GROWTH_BYTES = 8 * 1024 * 1024


@pytest.fixture(scope="module", params=WAYS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    with running(request.param) as started:
        yield started


@pytest.fixture
def target(server: Running) -> Target:
    return Target.at(server.url)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_client_is_refused_within_its_limit_and_a_good_one_served_after_it(target: Target, case: Case) -> None:
    assert case.fault(target, attempt(target, case, LIMITS), LIMITS) is None
    assert good(target)


def test_there_are_eighteen_cases_with_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == 18


def test_a_reader_that_takes_nothing_is_dropped(server: Running) -> None:
    outcome = never_read(Target.at(server.url, path="/big", method="GET"), LIMITS)
    assert outcome.closed
    assert outcome.elapsed_s >= LIMITS.reader_s / 2
    assert good(Target.at(server.url))


def test_a_client_may_reset_after_every_byte(target: Target) -> None:
    assert reset_at_every_offset(target) == len(target.good()) + 1
    assert good(target)


def test_bad_clients_leave_neither_memory_nor_files_behind(server: Running, target: Target) -> None:
    quick = [case for case in CASES if case.when is When.AT_ONCE]

    def misbehave() -> None:
        assert faults(target, LIMITS, quick) == []
        reset_at_every_offset(target)
        assert good(target)

    files = server.open_files()
    misbehave()
    rss = server.rss_bytes()
    for _ in range(10):
        misbehave()
    assert server.rss_bytes() - rss < GROWTH_BYTES
    eventually(lambda: server.open_files() <= files, "those refused last have gone")


def test_the_cases_find_a_server_without_limits() -> None:
    with running("uvicorn") as started:
        found = {fault.split(": ")[0] for fault in faults(Target.at(started.url), LIMITS)}
    assert found >= {"idle", "partial header", "stalled body", "stalled chunk"}
    assert found >= {"1 MiB header", "10,000 header lines", "no Host", "two Hosts"}


@pytest.mark.full
def test_the_real_limits_hold() -> None:
    with running(limits=ServerLimits()) as started:
        target = Target.at(started.url)
        assert faults(target, Limits()) == []
        assert never_read(Target.at(started.url, path="/big", method="GET"), Limits()).closed
        assert good(target)


@pytest.mark.full
@pytest.mark.serial
def test_two_thousand_slow_clients_do_not_slow_a_good_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with running(limits=ServerLimits()) as started:
        target = Target.at(started.url)
        alone = _p99_s(target)
        slow = [target.connect() for _ in range(2_000)]
        for client in slow:
            client.sendall(target.head("X-Half: y")[:-5])
        beside = _p99_s(target)
        for client in slow:
            client.close()
    shown = f"p99 {alone * 1000:.2f} ms alone, {beside * 1000:.2f} ms beside 2,000 slow clients"
    with capsys.disabled():
        sys.stdout.write(f"\n{shown}")
    assert beside < 2 * alone, shown


def _p99_s(target: Target) -> float:
    times: list[float] = []
    for _ in range(1_000):
        started = time.perf_counter()
        assert good(target)
        times.append(time.perf_counter() - started)
    return sorted(times)[int(len(times) * 0.99)]
