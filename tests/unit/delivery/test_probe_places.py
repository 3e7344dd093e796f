"""Where a look goes: the addresses of cards and endpoints."""

import pytest

from dragoman.delivery.probe.places import CARD_PATHS, card_places, each_once, name_of, real_places, toggled
from dragoman.dialects import DIALECTS


def test_the_paths_of_every_dialect_are_looked_at() -> None:
    assert {path for dialect in DIALECTS.values() for path in dialect.card_paths} <= set(CARD_PATHS)


def test_a_card_is_looked_for_at_the_url_then_below_it_then_below_its_origin() -> None:
    places = [place for place, _ in card_places("https://host.test/a/b")]
    assert places[0] == "https://host.test/a/b"
    assert places[1:7] == [f"https://host.test/a/b{path}" for path in CARD_PATHS]
    assert places[7:] == [f"https://host.test{path}" for path in CARD_PATHS]


def test_no_place_is_looked_at_twice() -> None:
    assert len(list(card_places("https://host.test/"))) == 1 + len(CARD_PATHS)


def test_a_query_that_names_the_agent_goes_along() -> None:
    places = dict(card_places("http://h:1/?assistant_id=x"))
    assert "http://h:1/.well-known/agent-card.json?assistant_id=x" in places


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("http://h:1/a", "http://h:1/a/"),
        ("http://h:1/a/", "http://h:1/a"),
        ("http://h:1/a?q=1", "http://h:1/a/?q=1"),
        ("http://h:1/", None),
        ("http://h:1", None),
    ],
)
def test_a_final_slash_is_toggled_where_there_is_a_path(url: str, other: str | None) -> None:
    assert toggled(url) == other


@pytest.mark.parametrize(
    ("named", "given", "places"),
    [
        ("http://0.0.0.0:9/x", "http://127.0.0.1:8/", ("http://127.0.0.1:8/x",)),
        ("http://localhost:9/x", "https://agents.test/me", ("https://agents.test/x",)),
        ("http://localhost:9/x", "http://127.0.0.1:9/", ("http://localhost:9/x",)),
        ("http://backend:9/x", "https://agents.test/", ("http://backend:9/x", "https://agents.test/x")),
        ("http://a.svc.cluster.local/x", "https://b.test/", ("http://a.svc.cluster.local/x", "https://b.test/x")),
        ("http://10.0.0.9/x", "https://b.test/", ("http://10.0.0.9/x", "https://b.test/x")),
        ("https://other.test/x", "https://b.test/", ("https://other.test/x",)),
    ],
)
def test_a_name_that_means_nothing_here_becomes_the_host_that_was_given(
    named: str, given: str, places: tuple[str, ...]
) -> None:
    assert real_places(named, given) == places


def test_addresses_that_differ_in_their_slash_are_one_place() -> None:
    assert each_once(["http://h/a", "http://h/a/", "http://h/b"]) == ["http://h/a", "http://h/b"]


def test_an_agent_without_a_name_is_called_by_its_host() -> None:
    assert name_of("http://me:secret@h.test:81/x") == "h.test:81"
