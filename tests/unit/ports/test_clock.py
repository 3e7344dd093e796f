"""Ids grow with time, are one word, and do not repeat."""

import re
import time

from dragoman.ports.clock import SystemClock, base32


def test_ids_sort_by_the_time_they_were_made() -> None:
    assert base32(1) < base32(2) < base32(32) < base32(2**47)
    clock = SystemClock()
    stamps = [clock.new_id("")[:10] for _ in range(2000)]
    assert stamps == sorted(stamps)


def test_an_id_is_one_word_and_never_comes_twice() -> None:
    clock = SystemClock()
    ids = [clock.new_id("a2a_call_") for _ in range(20_000)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"a2a_call_[0-9a-z]{10}[0-9A-Za-z]{22}", each) for each in ids)
    assert len({each[-22:] for each in ids}) == len(ids)


def test_an_id_begins_with_the_time_it_was_made() -> None:
    clock = SystemClock()
    for _ in range(2000):
        before = base32(time.time_ns() // 1_000_000)
        assert before <= clock.new_id("")[:10] <= base32(time.time_ns() // 1_000_000)
