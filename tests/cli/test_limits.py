"""`dragoman keys create` and `dragoman agents limit`: limits and budgets as they are set and shown."""

import json

from dragoman.cli.limits import in_a_line
from tests.cli.stub_hub import StubHub
from tests.cli.terminal import piped


def test_a_key_is_made_with_its_limits_and_budget(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped(
        "keys", "create", "--name", "ci", "--per-minute", "60", "--concurrent", "5", "--usd-per-day", "2.5",
        "--tokens-per-day", "100000", "--usd-per-conversation", "1", "--calls-per-conversation", "20", env=env,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (sent,) = [seen.body for seen in hub.requests if seen.path == "/v1/keys" and seen.method == "POST"]
    assert sent == {
        "name": "ci",
        "scopes": ["a2a:call"],
        "rate_limits": {"requests_per_minute": 60, "concurrent_requests": 5},
        "budget": {
            "usd_per_day": 2.5,
            "tokens_per_day": 100_000,
            "usd_per_conversation": 1.0,
            "calls_per_conversation": 20,
        },
    }
    assert piped("keys", "create", "--name", "ci", "--per-hour", "0", env=env).code == 2


def test_an_agents_limits_are_set_and_taken_away(hub: StubHub, env: dict[str, str]) -> None:
    agent = next(iter(hub.agents))
    assert piped("agents", "limit", agent, "--per-hour", "100", env=env).code == 0
    assert piped("agents", "limit", agent, env=env).code == 0
    bodies = [seen.body for seen in hub.requests if seen.method == "PATCH"]
    assert bodies == [{"rate_limits": {"requests_per_hour": 100}}, {"rate_limits": None}]


def test_keys_are_listed_with_what_they_may(hub: StubHub, env: dict[str, str]) -> None:
    key = next(iter(hub.keys.values()))
    key.update({"rate_limits": {"requests_per_minute": 60}, "budget": {"usd_per_day": 1.5}})
    ran = piped("keys", "ls", "--columns", "rate_limits,budget", env=env)
    assert [json.loads(each) for each in ran.out.strip().split("\t")] == [key["rate_limits"], key["budget"]]
    assert in_a_line({"requests_per_minute": 60, "concurrent_requests": 2}) == "60/min, 2 at once"
    assert in_a_line(None) == ""
