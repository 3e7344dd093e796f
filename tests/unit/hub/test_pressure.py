"""How hard pressed the hub is: by the loop's delay, what waits to be written, memory and the disk."""

from typing import TYPE_CHECKING

import pytest

from dragoman.hub.flow.pressure import LOOK_S, Pressure, Thresholds
from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import Overloaded
from dragoman.model.operations import Priority, SendTask
from dragoman.ports.store import Lane
from tests.contracts.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024


def asked(priority: Priority = Priority.NORMAL) -> SendTask:
    return SendTask(message=Message(id="m", role=Role.USER, parts=(Text(text="hello"),)), priority=priority)


class Pressed:
    """A hub's pressure, with everything that it looks at in the test's hands."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.turns: list[Callable[[], object]] = []  # what is done in the loop's next turn
        self.written = self.submitted = 0
        self.full = False
        self.memory = 0
        self.pressure = Pressure(
            clock=self.clock,
            lane=self.lane,
            memory=lambda: self.memory,
            soon=self.turns.append,
            thresholds=Thresholds(memory_bytes=100 * MIB),
        )

    def lane(self) -> Lane:
        return Lane(waiting=self.submitted - self.written, submitted=self.submitted, full=self.full)

    def looks(self, times: int, lag_s: float = 0.0) -> int:
        for _ in range(times):
            self.clock.advance(LOOK_S + lag_s)
            self.pressure.look(lag_s)
        return self.pressure.level

    def refuses(self, priority: Priority = Priority.NORMAL) -> str | None:
        try:
            self.pressure.refuse_call(asked(priority))
        except Overloaded as error:
            assert 1 <= (error.retry_after_s or 0) <= 5
            return str(error.details["reason"])
        return None


def test_a_loop_that_is_late_for_a_second_is_pressed_and_one_hiccup_is_not() -> None:
    hub = Pressed()
    assert hub.looks(20) == 0
    assert hub.looks(1, 0.4) == 0
    assert hub.looks(5, 0.15) == 1
    assert hub.looks(5, 0.3) == 2
    assert hub.looks(11) == 0
    assert sum(hub.pressure.lags) == 42 and hub.pressure.lag_sum_s == pytest.approx(0.4 + 0.75 + 1.5)


def test_what_waits_to_be_written_counts_by_its_number_and_by_its_age() -> None:
    hub = Pressed()
    hub.submitted = 2_001
    assert hub.looks(1) == 1
    hub.submitted = 5_001
    assert hub.looks(1) == 2
    hub.written = 5_000
    assert hub.looks(1) == 0
    assert hub.looks(12) == 1  # the one that is left is over a second old
    assert hub.looks(20) == 2
    assert hub.pressure.waited_s == pytest.approx(3.3)
    hub.written = 5_001
    assert hub.looks(1) == 0


def test_a_writer_that_is_always_two_seconds_behind_is_seen_to_be() -> None:
    hub = Pressed()
    levels: list[int] = []
    for look in range(60):
        hub.submitted += 10
        hub.written = max(0, 10 * (look - 20))
        levels.append(hub.looks(1))
    assert set(levels[30:]) == {1}
    assert hub.pressure.waited_s == pytest.approx(2.0, abs=0.2)


def test_memory_and_a_full_disk_refuse_every_new_call() -> None:
    hub = Pressed()
    hub.memory = 101 * MIB
    assert hub.looks(11) == 2
    assert hub.refuses() == "overloaded"
    hub.memory = 0
    assert hub.looks(11) == 0
    hub.full = True
    assert hub.looks(1) == 2
    assert hub.refuses() == "storage_full"
    assert hub.pressure.refused == {"overloaded": 1, "storage_full": 1}


def test_at_the_first_level_only_what_can_wait_is_refused() -> None:
    hub = Pressed()
    hub.submitted = 2_001
    assert hub.looks(1) == 1
    assert hub.refuses() is None
    assert hub.refuses(Priority.LOW) == "low_priority"
    with pytest.raises(Overloaded):
        hub.pressure.refuse_listing()
    hub.written = 2_001
    hub.looks(1)
    hub.pressure.refuse_listing()
    assert hub.pressure.refused == {"low_priority": 1, "listing": 1}


def test_a_late_loop_takes_calls_for_a_part_of_each_turn_and_stays_pressed_while_it_must_refuse() -> None:
    hub = Pressed()
    assert hub.looks(10, 0.3) == 2
    taken = [hub.refuses() for _ in range(3)]
    hub.clock.advance(0.03)  # more of this turn than new calls may take
    taken += [hub.refuses()]
    assert taken == [None, None, None, "overloaded"]
    (next_turn,) = hub.turns
    next_turn()
    assert hub.refuses() is None
    # In time again, because it refuses: as long as it does, it is late.
    assert hub.looks(9) == 2
    assert hub.looks(12) == 0
