"""R15: whatever is done to the wall clock, no timer is early or late; the windows of signatures follow it."""

import logging
import sys
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from dragoman.hub.flow.breaker import OPEN_S, Breaker
from dragoman.hub.flow.limits import Limits
from dragoman.hub.flow.pressure import Pressure, Thresholds
from dragoman.hub.outbox import WAITS_S
from dragoman.hub.time_left import TimeLeft
from dragoman.model.agent import RateLimits
from dragoman.model.call import Caller
from dragoman.model.circuit import Circuit
from dragoman.model.errors import RateLimited
from dragoman.model.secret import Secret
from dragoman.observe.wall_watch import WallWatch
from dragoman.ports.clock import SteadyClock
from dragoman.ports.store import Lane
from dragoman.security.signing import SignatureProblem, check, sign_headers
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task, once, opening
from tests.support.outbox import Post, post_office, receiving
from tests.support.run import run

HOUR_S = 3600.0
YEARS_S = 5 * 365 * 24 * HOUR_S
JUMPS_S = (HOUR_S, -HOUR_S, YEARS_S, -YEARS_S)


class JumpingClock(ManualClock):
    """A clock whose wall time somebody moves; the other one goes on as ever."""

    def __init__(self) -> None:
        super().__init__()
        self._moved = timedelta()

    def now(self) -> datetime:
        return super().now() + self._moved

    def jump(self, seconds: float) -> None:
        """Move the wall clock."""
        self._moved += timedelta(seconds=seconds)


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_callbacks_keys_and_queued_calls_keep_their_time(
    jump_s: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(_kept(jump_s, tmp_path, capsys))


@pytest.mark.planted
@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_timers_on_wall_time_are_found_out(jump_s: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def wall(self: SteadyClock) -> datetime:
        return self._clock.now()  # pyright: ignore[reportPrivateUsage] - there is no seam

    with mock.patch.object(SteadyClock, "now", wall), pytest.raises(AssertionError):
        run(_kept(jump_s, tmp_path, capsys))


async def _kept(jump_s: float, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = JumpingClock()
    async with post_office(folder, clock)() as post, receiving(clock) as receiver:
        receiver.always = (500, {})
        await post.owe(receiver.url)
        waits = await _attempts(post, clock, jump_s)
        assert waits == list(WAITS_S), f"attempts after {waits}"
        await _known_for_a_day(post, clock, jump_s)
        left = TimeLeft(clock)
        task = msgspec.structs.replace(new_task(clock), deadline=clock.now() + timedelta(hours=24))
        assert task.deadline is not None
        left.note(task.id, clock.monotonic() + 24 * HOUR_S)
        clock.jump(jump_s)
        clock.advance(HOUR_S)
        assert left.of(task, task.deadline) == 23 * HOUR_S
        # One of an earlier life has its stored time, and never more than it was given.
        assert TimeLeft(clock).of(task, task.deadline) <= 24 * HOUR_S
    with capsys.disabled():
        sys.stdout.write(f"\n{jump_s / HOUR_S:+.0f} h before each of {len(waits)} waits: none early, none late")


async def _attempts(post: Post, clock: JumpingClock, jump_s: float) -> list[float]:
    """The waits between the attempts at a callback, by the clock that never jumps; the other jumps before each."""
    await post.work()
    waits: list[float] = []
    for expected in WAITS_S:
        clock.jump(jump_s)
        assert await post.work() == 0, f"an attempt came {expected:.0f} s early"
        waited_s = 0.0
        while not await post.work():
            step_s = expected - 1.0 if waited_s == 0 and expected > 1 else 1.0
            clock.advance(step_s)
            waited_s += step_s
            assert waited_s <= expected, f"an attempt is late: none after {waited_s:.0f} s of {expected:.0f}"
        waits.append(waited_s)
    return waits


async def _known_for_a_day(post: Post, clock: JumpingClock, jump_s: float) -> None:
    await post.store.open(opening(new_task(clock), durable=True, once=once(post.steady, "key")))
    clock.jump(jump_s)
    clock.advance(24 * HOUR_S - 1)
    assert await post.store.find_once("acme", "alice", "key", "key") is not None, "the key was forgotten too early"
    clock.advance(2)
    assert await post.store.find_once("acme", "alice", "key", "key") is None, "the key was kept too long"


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_limits_breakers_and_pressure_do_not_see_a_jump(jump_s: float) -> None:
    clock = JumpingClock()
    limits = Limits(clock=clock, tenants=RateLimits(requests_per_minute=2))
    caller = Caller(tenant="acme", id="alice")
    breaker = Breaker()
    pressure = Pressure(
        clock=clock,
        lane=lambda: Lane(waiting=1, submitted=1, full=False),
        memory=lambda: 0,
        soon=lambda _: None,
        thresholds=Thresholds(),
    )
    pressure.start()
    for number in range(2):
        limits.take(caller, None, f"call-{number}")
    for number in range(5):
        breaker.failed(f"call-{number}", clock.monotonic())
    clock.jump(jump_s)
    assert _limited(limits, caller)
    clock.advance(29.0)
    assert _limited(limits, caller) and breaker.look(clock.monotonic()) is Circuit.OPEN
    clock.advance(1.0)
    assert not _limited(limits, caller)
    clock.advance(OPEN_S - 30.0)
    assert breaker.look(clock.monotonic()) is Circuit.HALF_OPEN
    assert pressure.lag_s < OPEN_S  # as late as the test let it be, whatever the wall says


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_the_window_of_a_signature_follows_the_wall_clock(jump_s: float) -> None:
    clock, secret, body = JumpingClock(), Secret("whsec_" + "c2VjcmV0" * 4), b"{}"

    def signed() -> dict[bytes, bytes]:
        return sign_headers(secret, id="msg_1", timestamp=int(clock.now().timestamp()), body=body)

    before = signed()
    assert check(before, body, secrets=(secret,), now=clock.now(), strict=True).problem is None
    clock.jump(jump_s)
    found = check(before, body, secrets=(secret,), now=clock.now(), strict=True).problem
    assert found is SignatureProblem.OUT_OF_RANGE
    assert check(signed(), body, secrets=(secret,), now=clock.now(), strict=True).problem is None


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_jump_is_logged_and_counted_and_a_correction_is_not(jump_s: float, caplog: pytest.LogCaptureFixture) -> None:
    clock = JumpingClock()
    watch = WallWatch(clock)
    with caplog.at_level(logging.WARNING, "dragoman"):
        for _ in range(3):
            clock.jump(1.5)
            clock.advance(1.0)
            watch.look()
        assert watch.jumps == 0 and not caplog.records
        clock.jump(jump_s)
        watch.look()
        watch.look()
    assert watch.jumps == 1
    (line,) = caplog.records
    assert getattr(line, "fields", None) == {"seconds": jump_s}


def _limited(limits: Limits, caller: Caller) -> bool:
    try:
        limits.take(caller, None, "call")
    except RateLimited:
        return True
    return False
