"""UUIDs that are made of what is known."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.uuids import uuid_at

AT = datetime(2026, 1, 12, 10, 0, tzinfo=UTC)


@given(st.text("0123456789abcdef", min_size=16, max_size=16), st.integers(1, 10**9))
def test_a_uuid_of_a_time_is_one_and_sorts_by_it(digits: str, later_ms: int) -> None:
    made, later = uuid_at(AT, digits), uuid_at(AT + timedelta(milliseconds=later_ms), "0" * 16)
    assert str(UUID(made)) == made
    assert (UUID(made).version, UUID(made).variant) == (7, "specified in RFC 4122")
    assert int(made.replace("-", "")[:12], 16) == AT.timestamp() * 1000
    assert made < later


def test_other_digits_make_another_uuid() -> None:
    digits = "0123456789abcdef"
    changed = {uuid_at(AT, f"{digits[:place]}x{digits[place + 1 :]}") for place in range(16)}
    assert len(changed) == 16
