"""Scopes, and the targets and skills a key is limited to."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.security.scopes import ADMIN, ALL_SCOPES, CALL, RECEIVE, allows, is_pattern, missing

FEW = st.text(alphabet="ab*", max_size=8)


def test_missing_scopes_are_named_in_the_order_asked() -> None:
    assert missing({CALL}, [ADMIN, CALL, RECEIVE]) == (ADMIN, RECEIVE)
    assert missing(frozenset(ALL_SCOPES), ALL_SCOPES) == ()
    assert missing((), ()) == ()


def test_no_scope_stands_for_another() -> None:
    for scope in ALL_SCOPES:
        assert missing({scope}, ALL_SCOPES) == tuple(other for other in ALL_SCOPES if other != scope)


@pytest.mark.parametrize(
    ("pattern", "target", "skill", "allowed"),
    [
        ("agt_a:search", "agt_a", "search", True),
        ("agt_a:search", "agt_a", "searches", False),
        ("agt_a:search", "agt_b", "search", False),
        ("agt_a:*", "agt_a", "anything", True),
        ("*:search", "agt_b", "search", True),
        ("agt_*:s*h", "agt_x", "search", True),
        ("agt_*:s*h", "agt_x", "sh", True),
        ("agt_*:s*h", "agt_x", "s", False),
        ("*:*", "agt_x", "a:b", True),
        ("agt_a:a:b", "agt_a", "a:b", True),
        ("agt_a:ab*ba", "agt_a", "aba", False),
        ("agt_a:[a-z]", "agt_a", "b", False),
        ("agt_a:?", "agt_a", "b", False),
        ("agt_a", "agt_a", "search", False),
        ("agt_A:search", "agt_a", "search", False),
    ],
)
def test_a_pattern_limits_target_and_skill(pattern: str, target: str, skill: str, allowed: bool) -> None:
    assert allows((pattern,), target, skill) is allowed
    assert allows(("other:other", pattern), target, skill) is allowed


def test_no_pattern_allows_all() -> None:
    assert allows((), "agt_a", "search")
    assert allows((), "agt_a", None)


def test_a_call_without_a_skill_needs_a_pattern_for_every_skill() -> None:
    assert allows(("agt_a:*",), "agt_a", None)
    assert not allows(("agt_a:search",), "agt_a", None)
    assert not allows(("agt_a:s*",), "agt_a", None)


@given(pattern=FEW, text=st.text(alphabet="ab", max_size=12))
def test_the_star_means_what_it_means_in_file_names(pattern: str, text: str) -> None:
    assert allows((f"t:{pattern}",), "t", text) == fnmatch.fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("text", "usable"),
    [("a:b", True), ("*:*", True), ("a", False), (":b", False), ("a:", False), ("a:b c", False), ("a:\n", False)],
)
def test_a_pattern_names_both_a_target_and_a_skill(text: str, usable: bool) -> None:
    assert is_pattern(text) is usable
