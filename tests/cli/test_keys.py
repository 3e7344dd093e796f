"""`dragoman keys rotate-signing`: what it asks, and what it says."""

from tests.cli.stub_hub import StubHub
from tests.cli.terminal import piped


def test_the_signing_key_is_followed_in_an_hour_or_at_once(hub: StubHub, env: dict[str, str]) -> None:
    later = piped("keys", "rotate-signing", env=env)
    assert (later.code, later.out) == (0, "Z8Q0c1fHq7wFz0gW3v5Y\n")
    assert later.err == "it is published, and signs from 2026-01-12T11:00:00.000Z on\n"
    now = piped("keys", "rotate-signing", "--now", "--yes", env=env)
    assert (now.code, now.err) == (0, "it signs now\n")
    assert [seen.body for seen in hub.requests if seen.path == "/v1/signing-keys/rotate"] == [
        {"now": False},
        {"now": True},
    ]


def test_making_tokens_void_is_asked_for_first(hub: StubHub, env: dict[str, str]) -> None:
    asked = piped("keys", "rotate-signing", "--now", env=env)
    assert asked.code == 2
    assert [seen for seen in hub.requests if seen.path == "/v1/signing-keys/rotate"] == []
