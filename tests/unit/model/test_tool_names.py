"""What skills are called as tools: names that every framework takes, each of one skill of one agent alone."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.tool_names import Pair, tool_name, tool_names

# Few letters, so that names meet; and those that frameworks refuse.
WORDS = st.one_of(st.text("ab_-.1 é", min_size=1, max_size=8), st.text(min_size=1, max_size=128))
PAIRS = st.lists(st.tuples(WORDS, WORDS), max_size=30)
GRAMMAR = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


@pytest.mark.parametrize(
    ("agent", "skill", "name"),
    [
        ("agt_archive", "web_search", "agt_archive__web_search"),
        ("my-agent", "find-it", "my-agent__find-it"),
        ("a", "b__c", "a__b__c"),
        # What had to be changed says so, and stays the same name for ever: clients remember what they allowed.
        ("my.agent", "find it", "my_agent__find_it_480ccb07"),
        ("1a", "x", "_1a__x_8a136dc6"),
        ("a__b", "c", "a__b__c_a92700ce"),
        ("a", "b_12345678", "a__b_12345678_5f8048a8"),
        ("a" * 128, "short", f"{'a' * 48}__short_a6c3070a"),
        ("a" * 128, "b" * 128, f"{'a' * 21}__{'b' * 32}_07a09e14"),
    ],
)
def test_a_name_says_agent_and_skill_as_well_as_it_can(agent: str, skill: str, name: str) -> None:
    assert tool_name(agent, skill) == name


def test_a_name_for_programs_is_an_identifier() -> None:
    assert tool_name("my-agent", "find-it", identifier=True) == "my_agent__find_it_a7844b5e"
    assert tool_name("agt_archive", "web_search", identifier=True) == "agt_archive__web_search"


def test_names_that_differ_in_their_signs_alone_are_told_apart_where_signs_do_not_count() -> None:
    pairs: list[Pair] = [("a", "b_c"), ("a_b", "c"), ("a", "d")]
    assert list(tool_names(pairs).values()) == ["a__b_c", "a__d", "a_b__c"]
    folded = tool_names(pairs, folded=True)
    assert folded["a", "d"] == "a__d"
    assert folded["a", "b_c"].startswith("a__b_c_") and folded["a_b", "c"].startswith("a_b__c_")


@settings(deadline=None)  # a busy machine proves nothing
@given(PAIRS, st.booleans(), st.booleans())
def test_names_fit_every_framework_and_no_two_are_alike(pairs: list[Pair], identifier: bool, folded: bool) -> None:
    names = tool_names(pairs, identifier=identifier, folded=folded)
    assert names.keys() == set(pairs)
    assert all(GRAMMAR.fullmatch(name) for name in names.values())
    assert not identifier or all(name.isidentifier() for name in names.values())
    seen = [re.sub("[_-]", "", name).lower() if folded else name for name in names.values()]
    assert len(set(seen)) == len(seen)


@settings(deadline=None)  # a busy machine proves nothing
@given(WORDS, WORDS, PAIRS)
def test_a_name_does_not_depend_on_the_others(agent: str, skill: str, others: list[Pair]) -> None:
    assert tool_names([*others, (agent, skill)])[agent, skill] == tool_name(agent, skill)
