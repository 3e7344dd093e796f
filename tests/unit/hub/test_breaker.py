"""The breaker of one target on a clock of the test's: every move of the table, and a plain model beside it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.hub.flow.breaker import Breaker
from dragoman.model.circuit import Circuit


class Told:
    """A breaker, and what it is told at which time."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.now = 1000.0

    def after(self, seconds: float) -> "Told":
        self.now += seconds
        return self

    def fails(self, times: int = 1, call: str = "a") -> "Told":
        for _ in range(times):
            self.breaker.failed(call, self.now)
        return self

    def answers(self, times: int = 1) -> "Told":
        for _ in range(times):
            self.breaker.answered(self.now)
        return self

    def begins(self, call: str = "a") -> float | None:
        return self.breaker.begin(call, self.now)

    def lets_in(self) -> float | None:
        return self.breaker.let_in(self.now)

    @property
    def state(self) -> Circuit:
        return self.breaker.look(self.now)


def opened() -> Told:
    return Told().fails(5)


def probing() -> Told:
    told = opened().after(60)
    assert told.begins("probe") is None
    return told


@pytest.mark.req("P-33")
@pytest.mark.parametrize(
    ("told", "state"),
    [
        (lambda: Told().fails(4), Circuit.CLOSED),
        (lambda: Told().fails(5), Circuit.OPEN),
        (lambda: Told().fails(4).answers().fails(4), Circuit.CLOSED),
        (lambda: Told().fails(4).after(3000).fails(1), Circuit.OPEN),
        # half of at least twenty calls in thirty seconds
        (lambda: alternating(9), Circuit.CLOSED),
        (lambda: alternating(10), Circuit.OPEN),
        (lambda: alternating(9).answers(2).fails(), Circuit.CLOSED),
        (lambda: alternating(9).after(31).answers().fails(), Circuit.CLOSED),
        (lambda: alternating(9).after(29).answers().fails(), Circuit.OPEN),
        # open, half open, closed, open for longer
        (lambda: opened().after(59.9), Circuit.OPEN),
        (lambda: opened().after(60), Circuit.HALF_OPEN),
        (lambda: opened().answers(3), Circuit.OPEN),
        (lambda: probing().answers(), Circuit.CLOSED),
        (lambda: probing().answers().fails(4), Circuit.CLOSED),
        (lambda: probing().answers().fails(5).after(60), Circuit.HALF_OPEN),
        (lambda: probing().fails(call="probe"), Circuit.OPEN),
        (lambda: probing().fails(call="probe").after(119), Circuit.OPEN),
        (lambda: probing().fails(call="probe").after(120), Circuit.HALF_OPEN),
        (lambda: probing().fails(9, call="an earlier one"), Circuit.HALF_OPEN),
    ],
)
def test_a_breaker_stands_where_the_table_has_it(told: Callable[[], Told], state: Circuit) -> None:
    assert told().state is state


def alternating(failures: int) -> Told:
    """So many failures, each after a call that went well."""
    told = Told()
    for _ in range(failures):
        told.answers().fails()
    return told


@pytest.mark.req("P-33")
def test_each_failed_probe_doubles_the_time_up_to_five_minutes() -> None:
    told, open_for = opened(), list[float]()
    for number in range(5):
        wait_s = told.begins(f"probe {number}")
        assert wait_s is not None
        open_for.append(wait_s)
        assert told.after(wait_s).begins(f"probe {number}") is None
        told.fails(call=f"probe {number}")
    assert open_for == [60, 120, 240, 300, 300]


@pytest.mark.req("P-33")
def test_one_probe_at_a_time() -> None:
    told = opened().after(60)
    assert told.lets_in() is None
    assert told.lets_in() == 5  # somebody is on the way
    assert told.begins("first") is None
    assert told.begins("second") == 5
    assert told.begins("first") is None  # its own next try
    assert told.after(59).begins("second") == 1
    assert told.after(1).begins("second") is None  # the first takes too long to be waited for
    assert told.fails(call="first").state is Circuit.HALF_OPEN
    assert told.fails(call="second").state is Circuit.OPEN


def test_a_call_that_was_let_in_and_never_sent_holds_nobody_up_for_long() -> None:
    told = opened().after(60)
    assert told.lets_in() is None
    assert told.after(5).lets_in() is None


def test_a_probe_that_says_nothing_makes_room_for_another() -> None:
    told = probing()
    told.breaker.given_up("another", told.now)
    assert told.begins("second") == 5
    told.breaker.given_up("probe", told.now)
    assert told.begins("second") is None


def test_calls_that_went_well_before_the_first_failure_count() -> None:
    breaker = Breaker([(990.0, 50)])
    for _ in range(4):
        breaker.failed("a", 1000.0)
        breaker.answered(1000.0)
    for _ in range(6):
        breaker.answered(1000.0)
        breaker.failed("a", 1000.0)
    assert breaker.state is Circuit.CLOSED
    assert (breaker.calls, breaker.failures) == (70, 10)


def test_a_breaker_is_forgotten_when_all_is_well_for_half_a_minute() -> None:
    told = Told().fails()
    assert not told.breaker.is_well(told.now)
    told.answers()
    assert not told.breaker.is_well(told.now)
    assert told.after(31).breaker.is_well(told.now)


class Model:
    """What the table says, with every call remembered."""

    def __init__(self) -> None:
        self.state = Circuit.CLOSED
        self.calls: list[tuple[int, bool]] = []
        self.row = 0
        self.until = 0.0
        self.open_s = 0.0
        self.probe: str | None = None
        self.probe_until = 0.0

    def look(self, now: float) -> None:
        if self.state is Circuit.OPEN and now >= self.until:
            self.state, self.probe, self.probe_until = Circuit.HALF_OPEN, None, now

    def begin(self, call: str, now: float) -> bool:
        self.look(now)
        if self.state is not Circuit.HALF_OPEN:
            return self.state is Circuit.CLOSED
        if self.probe in (None, call) or now >= self.probe_until:
            self.probe, self.probe_until = call, now + 60
            return True
        return False

    def ended(self, call: str, now: float, *, failed: bool) -> None:
        self.look(now)
        if self.state is Circuit.CLOSED:
            self.calls.append((int(now), failed))
            self.row = self.row + 1 if failed else 0
            recent = [bad for at, bad in self.calls if at >= int(now - 30)]
            if self.row >= 5 or (failed and len(recent) >= 20 and 2 * sum(recent) >= len(recent)):
                self._open(now, 60)
        elif self.state is Circuit.HALF_OPEN and not failed:
            self.state, self.calls, self.row = Circuit.CLOSED, [], 0
        elif self.state is Circuit.HALF_OPEN and call == self.probe:
            self._open(now, min(2 * self.open_s, 300))

    def _open(self, now: float, for_s: float) -> None:
        self.state, self.open_s, self.until = Circuit.OPEN, for_s, now + for_s


STEPS = st.tuples(
    st.sampled_from(["begin", "fails", "answers", "fails", "answers"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 7.3, 31.0, 60.0, 120.0, 300.0]),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(STEPS, max_size=120))
def test_a_breaker_does_what_a_plain_model_does(steps: list[tuple[Any, str, float]]) -> None:
    breaker, model, now = Breaker(), Model(), 1000.0
    for what, call, later_s in steps:
        now += later_s
        if what == "begin":
            assert (breaker.begin(call, now) is None) == model.begin(call, now)
        elif what == "fails":
            breaker.failed(call, now)
            model.ended(call, now, failed=True)
        else:
            breaker.answered(now)
            model.ended(call, now, failed=False)
        assert breaker.state is model.state
