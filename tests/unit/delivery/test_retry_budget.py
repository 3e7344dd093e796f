"""The retry budget of a target, on a clock of the test's."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.delivery.budget import RetryBudget

TARGET = "one"


@pytest.mark.req("P-32")
def test_a_hundred_retries_in_ten_seconds_and_a_fifth_of_the_first_tries() -> None:
    budget = RetryBudget()
    assert sum(budget.take(TARGET, 50.0) for _ in range(200)) == 100
    for _ in range(100):
        budget.tried(TARGET, 51.0)
    assert sum(budget.take(TARGET, 51.0) for _ in range(200)) == 20
    assert not budget.take(TARGET, 59.9)
    assert budget.take("another", 59.9)


def test_what_was_spent_comes_back_after_ten_seconds() -> None:
    budget = RetryBudget()
    assert sum(budget.take(TARGET, 50.0) for _ in range(200)) == 100
    assert not budget.take(TARGET, 60.9)
    assert sum(budget.take(TARGET, 61.0) for _ in range(200)) == 100


def test_nothing_is_kept_of_targets_that_need_no_retries() -> None:
    budget = RetryBudget()
    budget.tried(TARGET, 50.0)
    assert not budget.targets
    assert budget.take(TARGET, 50.0)
    assert budget.take("another", 70.0)
    budget.tried(TARGET, 70.0)  # It was forgotten.
    assert sum(budget.take(TARGET, 70.0) for _ in range(200)) == 100


STEPS = st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.sampled_from([0.0, 0.2, 0.9, 1.0, 3.0])), max_size=60)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_no_ten_seconds_ever_hold_more_retries_than_that(steps: Sequence[tuple[bool, int, float]]) -> None:
    budget, now = RetryBudget(), 100.0
    tries, retries = list[float](), list[float]()
    for is_retry, count, later_s in steps:
        now += later_s
        for _ in range(count):
            if not is_retry:
                budget.tried(TARGET, now)
                tries.append(now)
            elif budget.take(TARGET, now):
                retries.append(now)
    for until in retries:
        allowed = 100 + 0.2 * sum(until - 10 < at <= until for at in tries)
        assert sum(until - 10 < at <= until for at in retries) <= allowed
