"""API keys: their form, what a typo does, what is stored of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.secret import Secret
from dragoman.security.keys import BASE62, DUMMY_DIGEST, base62, digest, matches, new_key, parse_key

PEPPER = bytes(range(32))


def counting(start: int) -> bytes:
    return bytes(start + i & 255 for i in range(64))


def test_a_key_has_the_published_form() -> None:
    made = new_key(lambda count: counting(7)[:count])
    head, keyid, secret = made.key.reveal().split("_")
    assert (head, len(keyid), len(secret)) == ("ap", 12, 49)
    assert keyid == made.keyid == parse_key(made.key.reveal())


def test_a_key_keeps_all_256_bits_of_its_secret() -> None:
    low = new_key(lambda count: b"\xff" * (count - 1) + b"\xfe")
    high = new_key(lambda count: b"\xff" * count)
    assert low.key != high.key
    value = 0
    for character in high.key.reveal().split("_")[2][:43]:
        value = value * 62 + BASE62.index(character)
    assert value == 2**256 - 1


def test_two_keys_differ_and_the_key_is_not_shown_by_accident() -> None:
    one, other = new_key(), new_key()
    assert one.keyid != other.keyid and one.key != other.key
    assert one.key.reveal() not in repr(one)


@given(at=st.integers(0, 64), other=st.sampled_from(BASE62))
def test_every_typo_of_one_character_is_noticed_without_a_database(at: int, other: str) -> None:
    text = new_key(lambda count: counting(3)[:count]).key.reveal()
    mistyped = text[:at] + other + text[at + 1 :]
    assert (parse_key(mistyped) is None) == (mistyped != text)


@given(st.text(max_size=90))
def test_rubbish_is_no_key(text: str) -> None:
    assert parse_key(text) is None


@pytest.mark.parametrize(
    ("before", "after", "cut"), [("", "\n", 0), (" ", "", 0), ("", "a", 0), ("", "", 1), ("", "é", 1)]
)
def test_a_key_must_be_exact(before: str, after: str, cut: int) -> None:
    text = new_key().key.reveal()
    assert parse_key(before + text[: len(text) - cut] + after) is None


def test_only_the_whole_key_under_the_same_pepper_matches() -> None:
    key, other = new_key().key, new_key().key
    stored = digest(PEPPER, key)
    assert matches(PEPPER, key, stored)
    assert not matches(PEPPER, other, stored)
    assert not matches(bytes(32), key, stored)
    assert key.reveal().encode() not in stored and len(stored) == 32


def test_an_unknown_keyid_never_matches_not_even_the_dummy() -> None:
    assert not matches(PEPPER, new_key().key, None)
    assert not matches(PEPPER, Secret(""), None)
    assert digest(PEPPER, Secret("")) != DUMMY_DIGEST


def test_base62_fills_its_length() -> None:
    assert base62(0, 6) == "000000"
    assert base62(62**6 - 1, 6) == "zzzzzz"
