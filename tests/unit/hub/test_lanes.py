"""Lanes: so many at a time to one origin, the rest waits, and there is an end to waiting."""

import pytest

from dragoman.hub.lanes import Lane, Lanes, origin_of
from dragoman.ports.store import CALLBACKS, Job, Owner

OWNER = Owner(replica="hub", epoch=1)


def job(number: int) -> Job:
    return Job(id=number, queue=CALLBACKS, tenant="t", task_id="c", attempt=1, payload=b"", owner=OWNER)


def test_what_comes_above_waits_and_goes_in_the_lane_of_one_that_ended() -> None:
    lanes = Lanes(lanes=2, waiting=2)
    assert [lanes.enter("a", job(n)) for n in range(4)] == [Lane.FREE, Lane.FREE, Lane.WAITS, Lane.WAITS]
    assert lanes.enter("b", job(9)) is Lane.FREE, "one origin does not hold up another"
    assert lanes.following("a") == job(2)
    assert lanes.following("a") == job(3)
    assert lanes.following("a") is None
    lanes.leave("a")
    assert lanes.enter("a", job(5)) is Lane.FREE


def test_where_too_many_wait_the_next_is_sent_away_until_there_is_room() -> None:
    lanes = Lanes(lanes=1, waiting=1)
    assert [lanes.enter("a", job(n)) for n in range(3)] == [Lane.FREE, Lane.WAITS, Lane.FULL]
    assert lanes.following("a") == job(1)
    assert lanes.enter("a", job(3)) is Lane.WAITS


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example/x?y", "https://a.example:443"),
        ("HTTPS://A.example:443/z", "https://a.example:443"),
        ("http://a.example", "http://a.example:80"),
        ("http://[::1]:8080/", "http://::1:8080"),
        ("http://a.example:x/", "http://a.example:x/"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin
