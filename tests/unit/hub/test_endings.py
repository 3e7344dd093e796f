"""A call that has ended is noted once, and counted before anybody reads the count."""

from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.hub.endings import COUNTED_S, MOST, SLICE, Endings
from dragoman.model.ended import Alike, Carried, Ended, alike, ended_call
from dragoman.model.errors import Failure
from dragoman.model.events import Usage
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.observe.metrics import Metrics
from dragoman.observe.scrape import Scrape
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.unit.observe.calls_made import ASKED, call


class Told:
    """Endings, and what they told of whom."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.turn: list[Callable[[], None]] = []
        self.carried: dict[str, Carried] = {}
        self.noted: list[str] = []
        self.counted: list[list[str]] = []
        self.written: list[str] = []
        self.endings = Endings(clock=self.clock, soon=self.turn.append)
        self.endings.listen(noted=self.note, told=self.write, counted=self.count, carried=lambda: self.carried)

    def ended(self, *names: str, skill: str = "echo") -> None:
        for name in names:
            self.endings.ended(call(id=name, skill=skill))

    def next_turn(self) -> None:
        turn, self.turn[:] = [*self.turn], []
        for each in turn:
            each()

    def note(self, task: Task) -> None:
        if task.id == "broken":
            raise RuntimeError("not this one")
        self.noted.append(task.id)

    def count(self, many: Alike) -> None:
        if many[0].task.skill == "broken":
            raise RuntimeError("not these")
        self.counted.append([each.task.id for each in many])

    def write(self, ended: Sequence[Ended]) -> None:
        self.written += [each.task.id for each in ended]


def test_a_call_is_noted_in_the_next_turn_and_counted_a_little_later_with_those_like_it() -> None:
    told = Told()
    told.ended("1", "2")
    told.ended("3", skill="other")
    told.ended("4")
    assert told.noted == []
    told.next_turn()
    assert (told.noted, told.counted) == (["1", "2", "3", "4"], [])
    told.clock.advance(COUNTED_S)
    assert told.counted == [["1", "2", "4"], ["3"]]
    assert told.written == ["1", "2", "3", "4"]
    assert (told.turn, told.clock.timers) == ([], 0)


def test_who_reads_finds_everything_counted_and_nothing_twice() -> None:
    told = Told()
    told.ended("1")
    told.endings.catch_up()
    assert (told.noted, told.counted) == (["1"], [["1"]])
    told.ended("1", "2")
    told.next_turn()
    told.ended("2", "3")
    told.endings.catch_up()
    told.endings.catch_up()
    told.next_turn()
    told.clock.advance(COUNTED_S)
    assert told.noted == told.written == ["1", "2", "3"]
    assert told.counted == [["1"], ["2", "3"]]


def test_what_is_left_at_the_end_is_counted_then() -> None:
    told = Told()
    told.ended("1")
    told.next_turn()
    told.ended("2")
    told.endings.close()
    assert (told.counted, told.clock.timers) == ([["1", "2"]], 0)


def test_no_more_than_so_many_wait_for_being_counted() -> None:
    told = Told()
    told.ended(*[str(number) for number in range(MOST - 1)])
    told.next_turn()
    assert told.counted == []
    told.ended("last")
    told.next_turn()
    assert [len(many) for many in told.counted] == [MOST]


def test_a_turn_of_the_loop_counts_a_few_and_leaves_the_others_to_the_next() -> None:
    told = Told()
    names = [str(number) for number in range(2 * SLICE + 1)]
    told.ended(*names)
    told.next_turn()
    told.clock.advance(COUNTED_S)
    assert told.written == names[:SLICE]
    told.next_turn()
    assert told.written == names[: 2 * SLICE]
    told.next_turn()
    assert told.written == names
    assert (told.turn, told.clock.timers) == ([], 0)


def test_who_reads_between_two_turns_finds_everything_counted_and_nothing_twice() -> None:
    told = Told()
    names = [str(number) for number in range(2 * SLICE)]
    told.ended(*names)
    told.next_turn()
    told.clock.advance(COUNTED_S)
    told.endings.catch_up()
    assert told.written == names
    told.next_turn()
    told.ended("later")
    told.next_turn()
    told.clock.advance(COUNTED_S)
    assert told.written == [*names, "later"]
    assert (told.turn, told.clock.timers) == ([], 0)


def test_one_that_breaks_keeps_no_other_from_being_noted_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    told.ended("1", "broken", "2")
    told.ended("3", skill="broken")
    told.ended("4", skill="last")
    told.endings.catch_up()
    assert told.noted == ["1", "2", "3", "4"]
    assert told.counted == [["1", "broken", "2"], ["4"]]
    assert told.written == ["1", "broken", "2", "3", "4"]
    assert len(caplog.records) == 2


def test_how_a_call_was_carried_goes_with_it() -> None:
    told = Told()
    told.carried["1"] = Carried(dialect="a2a-1.0", attempts=1, took_s=0.02)
    told.carried["2"] = Carried(dialect="a2a-1.0", attempts=1, took_s=5.0)
    found: list[Ended] = []
    told.endings.listen(noted=told.note, told=found.extend, counted=told.count, carried=lambda: told.carried)
    told.ended("1", "2", "3")
    told.endings.catch_up()
    assert [each.carried is None for each in found] == [False, False, True]
    assert [each.hub_s for each in found] == [pytest.approx(0.01), 0.0, 0.0]
    assert told.carried == {}
    assert told.counted == [["1", "2"], ["3"]]


CALLS = st.builds(
    call,
    st.sampled_from((0.25, 0.5, 2.0)),  # so that no sum is rounded
    caller_id=st.sampled_from("abc"),
    agent_id=st.sampled_from("xyz"),
    skill=st.sampled_from(("echo", None)),
    dialect=st.sampled_from(("platform", "a2a-1.0")),
    state=st.sampled_from((TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED)),
    failure=st.sampled_from((None, Failure(code="AGENT_ERROR", message=""), Failure(code="odd", message=""))),
    usage=st.sampled_from((None, Usage(tokens=3, cost_usd=0.5))),
    asked=st.sampled_from((ASKED, msgspec.structs.replace(ASKED, wait=Wait.NONE))),
)
CARRIED = st.sampled_from((None, Carried(), Carried(dialect="a2a-1.0", attempts=1, took_s=0.125)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(CALLS, CARRIED), max_size=20))
def test_calls_counted_together_come_to_the_same_as_one_by_one(calls: list[tuple[Task, Carried | None]]) -> None:
    ended = [ended_call(*each) for each in calls]
    texts: list[set[str]] = []
    for many in (alike(ended), [[each] for each in ended]):
        metrics = Metrics(clock=ManualClock())
        for each in many:
            metrics.ended(each)
        texts.append(set(run(Scrape(metrics, clock=_Idle()).text(is_open=False)).decode().splitlines()))
    assert texts[0] == texts[1]


class _Idle(ManualClock):
    async def sleep(self, seconds: float) -> None:
        """Time need not pass."""
