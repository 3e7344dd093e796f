"""`dragoman deliveries`: what it asks and what it shows."""

import json
from datetime import UTC, datetime, timedelta

from tests.cli.stub_hub import StubHub, refusal, some_deliveries
from tests.cli.terminal import on_terminal, piped, plain


def test_deliveries_are_listed_with_attempts_last_answer_and_next_try(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("deliveries", "ls", env=env)
    assert ran.out.splitlines()[1].split("\t") == [
        "dlv_2", "pending", "http://127.0.0.1:9/done", "a2a_call_2", "1", "connection refused",
        "2036-01-12T10:05:00.000Z", "2026-01-12T10:00:00.000Z",
    ]  # fmt: skip
    assert "next: dragoman deliveries replay ID" in ran.err
    table = plain(on_terminal("deliveries", "ls", env=env, width=100, stderr_apart=True).out).splitlines()
    assert table[0].split() == ["id", "state", "url", "call", "tries", "last", "answer", "next", "try", "created"]
    assert max(map(len, table)) <= 100
    shown = json.loads(piped("deliveries", "ls", "--json", env=env).out)
    assert shown == {"items": some_deliveries(), "next_cursor": None}


def test_filters_are_asked_of_the_hub(hub: StubHub, env: dict[str, str]) -> None:
    url = "http://127.0.0.1:9/done?a=b&c"
    words = ("--state", "parked", "--url", url, "--call", "a2a_call_3", "--since", "2h", "--limit", "7")
    assert piped("deliveries", "ls", *words, env=env).code == 0
    query = hub.last("/v1/deliveries").query
    since = datetime.fromisoformat(query.pop("since"))
    assert timedelta(hours=1.9) < datetime.now(UTC) - since < timedelta(hours=2.1)
    assert query == {"state": "parked", "url": url, "call": "a2a_call_3", "limit": "7"}
    piped("deliveries", "ls", "--since", "2026-01-12T10:00:00Z", env=env)
    assert hub.last("/v1/deliveries").query["since"] == "2026-01-12T10:00:00Z"


def test_pages_are_followed_up_to_the_limit_and_the_cursor_is_shown(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("deliveries", "ls", "--limit", "2", env=env)
    assert (len(ran.out.splitlines()), ran.err) == (2, "more: --cursor 2\n")
    assert piped("deliveries", "ls", "--cursor", "2", "--columns", "id", env=env).out == "dlv_1\n"


def test_an_empty_list_says_what_to_do(hub: StubHub, env: dict[str, str]) -> None:
    hub.deliveries.clear()
    ran = piped("deliveries", "ls", env=env)
    assert (ran.code, ran.out) == (0, "")
    assert "nothing was to be delivered yet\nnext: " in ran.err
    assert "no delivery matches\n" in piped("deliveries", "ls", "--state", "parked", env=env).err
    ran = piped("deliveries", "replay", "--all", env=env)
    assert (ran.code, ran.out) == (0, ""), "nothing to send needs no --yes"
    assert "no delivery matches\n" in ran.err


def test_wrong_filters_are_refused_before_anything_is_asked(hub: StubHub, env: dict[str, str]) -> None:
    for words in (
        ("ls", "--state", "lost"),
        ("ls", "--since", "soon"),
        ("ls", "--columns", "size"),
        ("replay",),
        ("replay", "dlv_1", "--all"),
        ("replay", "dlv_1", "--state", "parked"),
        ("replay", "--all", "--state", "delivered"),
    ):
        ran = piped("deliveries", *words, env=env)
        assert (ran.code, "next: " in ran.err) == (2, True), words
    assert hub.requests == []


def test_one_is_replayed(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("deliveries", "replay", "dlv_3", env=env)
    assert (ran.code, ran.out) == (0, "dlv_3\tpending\n")
    assert "dragoman deliveries ls --call a2a_call_3" in ran.err
    assert json.loads(piped("deliveries", "replay", "dlv_3", "--json", env=env).out)["id"] == "dlv_3"


def test_an_unknown_delivery_is_not_found(hub: StubHub, env: dict[str, str]) -> None:
    for words in (("replay", "dlv_99"), ("enable", "dlv_99"), ("disable", "dlv_99", "--yes")):
        ran = piped("deliveries", *words, env=env)
        assert ran.code == 4
        assert ran.err == 'error: no delivery "dlv_99"\nnext: dragoman deliveries ls\n'


def test_a_key_without_the_scope_is_told_so(hub: StubHub, env: dict[str, str]) -> None:
    said = refusal("AUTHORIZATION_ERROR", "This key lacks the scope a2a:call.", missing=["a2a:call"])
    hub.answers["GET", "/v1/deliveries"] = (403, said)
    ran = piped("deliveries", "ls", env=env)
    assert ran.code == 3
    assert "--scope a2a:call" in ran.err


def test_all_that_were_given_up_are_replayed_after_a_question(hub: StubHub, env: dict[str, str]) -> None:
    ran = on_terminal("deliveries", "replay", "--all", env=env, keys="n\n")
    assert "Send 2 deliveries once more, to 2 addresses? [y/N]" in ran.out
    assert (ran.code, hub.deliveries["dlv_3"]["state"]) == (1, "parked")
    ran = on_terminal("deliveries", "replay", "--all", env=env, keys="y\n")
    assert (ran.code, "100%" in ran.out) == (0, True), "a bar shows how far it is"
    assert {one["state"] for one in hub.deliveries.values()} == {"pending"}
    assert hub.last("/v1/deliveries/replay").body == {"ids": ["dlv_3", "dlv_1"]}


def test_replaying_all_needs_yes_where_nobody_can_be_asked(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("deliveries", "replay", "--all", env=env).code == 2
    assert hub.deliveries["dlv_3"]["state"] == "parked"
    words = ("--all", "--state", "parked", "--url", "http://127.0.0.1:9/done", "--yes")
    ran = piped("deliveries", "replay", *words, env=env)
    assert (ran.code, ran.out) == (0, "dlv_3\n")
    assert ran.err == "1 delivery is on the way; dragoman deliveries ls shows what comes of it\n"


def test_many_are_replayed_some_at_a_time(hub: StubHub, env: dict[str, str]) -> None:
    parked = hub.deliveries["dlv_3"]
    hub.deliveries = {f"dlv_{n}": {**parked, "id": f"dlv_{n}"} for n in range(250)}
    ran = piped("deliveries", "replay", "--all", "--yes", "--json", env=env)
    assert len(json.loads(ran.out)["items"]) == 250
    sizes = [len(seen.body["ids"]) for seen in hub.requests if seen.path == "/v1/deliveries/replay"]
    assert (sum(sizes), max(sizes)) == (250, 20)


def test_an_address_is_disabled_and_enabled(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("deliveries", "disable", "dlv_3", env=env).code == 2
    assert piped("deliveries", "disable", "dlv_3", "--yes", env=env).out == "dlv_3\tparked\n"
    assert hub.last("/v1/deliveries/dlv_3").body == {"enabled": False}
    ran = piped("deliveries", "enable", "dlv_3", env=env)
    assert hub.last("/v1/deliveries/dlv_3").body == {"enabled": True}
    assert "dragoman deliveries replay --all --state disabled" in ran.err
