"""Meters and limits: exactly so many; a call that is refused has taken nothing, and knows when to come back."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import load
from dragoman.hub.flow.limits import FEWEST_SWEPT, SECOND, Meter, Meters
from dragoman.model.agent import RateLimits
from dragoman.model.errors import RateLimited
from dragoman.model.operations import Wait
from dragoman.server.from_settings import tenant_limits
from tests.unit.hub.flow_parts import World, agent, caller

MINUTE = 60 * SECOND


def a_minute(limit: int) -> Meter:
    """So many a minute."""
    return Meter("agent", "requests_per_minute", limit)


class Bucket:
    """The same rule in the plainest words: a bucket of tokens that fills up with time. Exact, in fractions."""

    def __init__(self, limit: int, period_ns: int) -> None:
        self.limit = limit
        self.share = Fraction(-(-period_ns // limit))
        self.tokens = Fraction(limit)
        self.at = 0

    def fill(self, now_ns: int) -> None:
        self.tokens = min(Fraction(self.limit), self.tokens + (now_ns - self.at) / self.share)
        self.at = now_ns


@given(
    st.integers(1, 120),
    st.lists(st.tuples(st.integers(0, 10 * SECOND), st.integers(1, 40)), min_size=1, max_size=30),
)
def test_a_meter_lets_pass_what_a_bucket_of_tokens_would(limit: int, bursts: list[tuple[int, int]]) -> None:
    meter, bucket, now = a_minute(limit), Bucket(limit, MINUTE), 1_000_000 * SECOND
    bucket.at = now
    for pause_ns, calls in bursts:
        now += pause_ns
        bucket.fill(now)
        for _ in range(calls):
            wait_ns = meter.wait_ns(now)
            assert (wait_ns == 0) == (bucket.tokens >= 1)
            assert wait_ns == max(0, -((bucket.tokens - 1) * bucket.share).__floor__())
            if wait_ns == 0:
                meter.take(now)
                bucket.tokens -= 1


@given(st.integers(1, 1000), st.integers(0, 3600 * SECOND), st.integers(0, 3600 * SECOND))
def test_what_is_given_back_is_never_more_than_what_was_taken(limit: int, later: int, further: int) -> None:
    meter, plain = a_minute(limit), a_minute(limit)
    meter.take(0)
    for each in (meter, plain):
        each.take(later)
    meter.give_back(later, 0)
    assert meter.whole_in_ns(later + further) >= plain.whole_in_ns(later + further)
    if later == 0:
        assert meter.whole_in_ns(further) == plain.whole_in_ns(further)


def test_only_meters_that_are_not_whole_are_remembered() -> None:
    meters, sixty, one = Meters("agent"), RateLimits(requests_per_minute=60), RateLimits(requests_per_minute=1)

    def take(name: str, limits: RateLimits, now_ns: int) -> None:
        (meter,) = meters.of(name, limits, now_ns)
        meter.take(now_ns)

    for number in range(FEWEST_SWEPT - 1):
        take(f"{number}", sixty, 0)
    take("old", one, 0)
    assert len(meters) == FEWEST_SWEPT, "each of them counts for a second yet"
    for number in range(FEWEST_SWEPT):
        take(f"later {number}", sixty, 2 * SECOND)
    assert len(meters) <= FEWEST_SWEPT + 1
    assert [meter.wait_ns(2 * SECOND) for meter in meters.of("old", one, 2 * SECOND)] == [58 * SECOND]


def test_a_limit_that_is_changed_begins_anew_and_the_other_one_goes_on() -> None:
    meters = Meters("key")
    before = meters.of("alice", RateLimits(requests_per_minute=1, requests_per_hour=10), 0)
    for meter in before:
        meter.take(0)
    minute, hour = meters.of("alice", RateLimits(requests_per_minute=2, requests_per_hour=10), 0)
    assert (minute.whole_in_ns(0), hour) == (0, before[1])
    assert meters.of("alice", RateLimits(requests_per_minute=2, requests_per_hour=10), 0) == (minute, hour)
    assert meters.of("alice", RateLimits(), 0) == ()


@pytest.mark.req("P-30")
def test_the_sixty_first_of_sixty_a_minute_is_refused_and_comes_back_in_time() -> None:
    world, target = World(), agent(RateLimits(requests_per_minute=60))
    for _ in range(60):
        world.opened(target)
    with pytest.raises(RateLimited) as refused:
        world.opened(target)
    now = round(world.clock.now().timestamp())
    assert refused.value.details == {
        "limit": "requests_per_minute",
        "scope": "agent",
        "allowed": 60,
        "remaining": 0,
        "reset": now + 60,
        "retry_after": 1,
    }
    assert refused.value.retry_after_s == 1
    world.clock.advance(0.999)
    with pytest.raises(RateLimited):
        world.opened(target)
    world.clock.advance(0.001)
    world.opened(target)
    with pytest.raises(RateLimited):
        world.opened(target)


@pytest.mark.req("P-30")
def test_of_several_limits_the_one_that_lasts_longest_says_when_to_come_back() -> None:
    world = World(tenants=RateLimits(requests_per_minute=30))
    target, alice = agent(RateLimits(requests_per_hour=3)), caller("alice", RateLimits(requests_per_minute=2))
    world.opened(target, by=alice)
    world.opened(target, by=alice)
    with pytest.raises(RateLimited) as refused:
        world.opened(target, by=alice)
    assert (refused.value.details["scope"], refused.value.details["retry_after"]) == ("key", 30)
    world.opened(target, by=caller("bob"))
    for by in (alice, caller("bob")):
        with pytest.raises(RateLimited) as refused:
            world.opened(target, by=by)
        assert (refused.value.details["limit"], refused.value.details["retry_after"]) == ("requests_per_hour", 1200)


def test_a_refused_call_has_taken_nothing_from_any_meter() -> None:
    world = World(tenants=RateLimits(requests_per_minute=3))
    limited = agent(RateLimits(requests_per_minute=1))
    world.opened(limited)
    for _ in range(5):
        with pytest.raises(RateLimited):
            world.opened(limited)
    free = agent(uuid="u2")
    world.opened(free)
    world.opened(free)
    with pytest.raises(RateLimited) as refused:
        world.opened(free)
    assert refused.value.details["scope"] == "tenant"


def test_what_came_to_nothing_is_given_back() -> None:
    world, target = World(tenants=RateLimits(requests_per_minute=2)), agent(RateLimits(requests_per_minute=2))
    alice = caller("alice", RateLimits(requests_per_minute=2, concurrent_requests=1))
    for _ in range(5):
        opened = world.opened(target, by=alice, key="k")
        world.flow.given_up(opened.call)
    world.flow.ended(world.opened(target, by=alice).task)
    world.opened(target, by=alice)
    with pytest.raises(RateLimited):
        world.opened(target, by=alice)


def test_calls_of_one_key_at_once_count_until_they_have_ended() -> None:
    world, target = World(per_agent=10), agent()
    alice = caller("alice", RateLimits(concurrent_requests=2))
    first, _ = world.opened(target, by=alice), world.opened(target, by=alice, wait=Wait.NONE)
    with pytest.raises(RateLimited) as refused:
        world.opened(target, by=alice)
    assert refused.value.details["limit"] == "concurrent_requests"
    assert refused.value.message == "2 requests at once are allowed with this key"
    world.opened(target, by=caller("bob"))
    world.flow.ended(first.task)
    world.flow.ended(first.task)
    world.opened(target, by=alice)
    with pytest.raises(RateLimited):
        world.opened(target, by=alice)


def test_what_an_owner_sets_overrules_the_card_and_leaves_the_rest() -> None:
    card = RateLimits(requests_per_minute=60, concurrent_requests=10)
    target = agent(card, set_=RateLimits(requests_per_minute=5, requests_per_hour=7))
    assert target.limits == RateLimits(requests_per_minute=5, requests_per_hour=7, concurrent_requests=10)


def test_the_limits_of_tenants_are_settings() -> None:
    assert tenant_limits(load({}, {}, None)) is None
    given = {"DRAGOMAN_QUOTAS_REQUESTS_PER_HOUR": "100", "DRAGOMAN_QUOTAS_CONCURRENT_REQUESTS": "5"}
    assert tenant_limits(load({}, given, None)) == RateLimits(requests_per_hour=100, concurrent_requests=5)
