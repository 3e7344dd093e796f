"""Times in words and in numbers, whichever second was told before."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.times import in_ms, in_words

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.datetimes(timezones=st.just(UTC))
LAST = datetime.max.replace(tzinfo=UTC)


@given(TIMES | st.just(LAST), st.integers(0, 999_999))
def test_a_time_is_told_the_same_whatever_was_told_before(at: datetime, microsecond: int) -> None:
    for each in (at, at.replace(microsecond=microsecond), at.replace(microsecond=0), LAST, at):
        assert in_words(each) == each.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        assert in_ms(each) == (each - EPOCH) // timedelta(milliseconds=1)
