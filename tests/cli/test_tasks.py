"""`dragoman tasks`: what it asks and what it shows."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.stub_hub import EVENTS, StubHub, refusal, some_calls
from tests.cli.terminal import on_terminal, piped, plain


def test_calls_are_listed_newest_first_as_the_hub_has_them(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("tasks", "ls", env=env)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].split("\t") == [
        "a2a_call_7c1e", "completed", "agt_editor", "summarize", "platform", "2403",
        "2026-01-12T10:00:00.000Z",
    ]  # fmt: skip
    assert json.loads(piped("tasks", "ls", "--json", env=env).out) == {"items": some_calls(), "next_cursor": None}


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal(hub: StubHub, env: dict[str, str], width: int) -> None:
    table = plain(on_terminal("tasks", "ls", env=env, width=width, stderr_apart=True).out).splitlines()
    assert table[0].split() == ["id", "status", "agent", "skill", "dialect", "ms", "created"]
    assert len(table) == 4
    assert max(map(len, table)) <= width
    assert "input-required" in table[3]


def test_filters_are_asked_of_the_hub(hub: StubHub, env: dict[str, str]) -> None:
    words = {
        "agent": "agt_editor", "caller": "key:1", "skill": "summarize", "status": "failed", "dialect": "a2a-1.0",
        "trace": "4bf9", "conversation": "conv_1",
    }  # fmt: skip
    given = [word for name, value in words.items() for word in (f"--{name}", value)]
    assert piped("tasks", "ls", *given, "--since", "2h", "--limit", "7", env=env).code == 0
    query = hub.last("/v1/calls").query
    since = datetime.fromisoformat(query.pop("since"))
    assert timedelta(hours=1.9) < datetime.now(UTC) - since < timedelta(hours=2.1)
    assert query == {**words, "limit": "7"}


def test_a_list_is_paged_sorted_and_cut_to_columns(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("tasks", "ls", "--limit", "2", "--columns", "id,progress", env=env)
    assert (ran.out, ran.err) == ("a2a_call_7c1e\t\na2a_call_9d2b\t0.5\n", "more: --cursor 2\n")
    assert piped("tasks", "ls", "--cursor", "2", "--columns", "id", env=env).out == "task-9d2b\n"
    ran = piped("tasks", "ls", "--sort", "-id", "--columns", "id", env=env)
    assert ran.out.split() == ["task-9d2b", "a2a_call_9d2b", "a2a_call_7c1e"]
    ran = piped("tasks", "ls", "--sort", "duration_ms", "--columns", "id", env=env)
    assert ran.out.split()[0] == "a2a_call_7c1e", "what has no value comes last"
    hub.calls.clear()
    assert piped("tasks", "ls", "--skill", "x", env=env).err == "no call matches\nnext: dragoman tasks ls\n"


@pytest.mark.parametrize(
    "words",
    [("ls", "--status", "lost"), ("ls", "--since", "soon"), ("ls", "--columns", "size"), ("show",), ("cancel",)],
)
def test_wrong_usage_asks_nothing(hub: StubHub, env: dict[str, str], words: tuple[str, ...]) -> None:
    ran = piped("tasks", *words, env=env)
    assert (ran.code, "next: " in ran.err, hub.requests) == (2, True, [])


def test_an_unknown_field_to_sort_by_is_wrong_usage(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("tasks", "ls", "--sort", "size", env=env)
    assert (ran.code, "no field 'size' to sort by" in ran.err) == (2, True)


def test_a_call_is_shown_with_timing_attempts_events_result_and_usage(hub: StubHub, env: dict[str, str]) -> None:
    shown = plain(on_terminal("tasks", "show", "a2a_call_7", env=env, width=80).out)
    for line in (
        "status        completed",
        "agent         agt_editor 1.0.0",
        "took          2.4 s (queued 3 ms, agent 2.4 s)",
        "attempts      1",
        "usage         812 tokens · 0.001 USD",
        '    "summary": "Tides."',
        "     1       +0 ms  status    submitted",
        "     2       +3 ms  sent      agt_editor attempt 1",
        "     3      +1.2 s  status    working Reading 75 %",
        "     5      +2.4 s  status    completed",
    ):
        assert f"\n{line}" in shown, line
    assert max(map(len, shown.splitlines())) <= 80, "a long event is cut, not wrapped"
    piped_lines = piped("tasks", "show", "a2a_call_7c1e", env=env).out.splitlines()
    assert 'result\t{"summary": "Tides."}' in piped_lines
    assert "event\t3\t2026-01-12T10:00:01.200Z\tstatus\tworking Reading 75 %" in piped_lines
    whole = json.loads(piped("tasks", "show", "a2a_call_7c1e", "--json", env=env).out)
    assert whole == {**some_calls()[0], "events": EVENTS}


def test_a_question_is_shown_with_the_command_that_answers_it(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("tasks", "show", "task-9d2b", env=env)
    assert "question\tWhich city?\n" in ran.out
    assert ran.err == "next: dragoman call --continue task-9d2b --text TEXT\n"


def test_an_id_is_taken_by_a_unique_beginning(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("tasks", "cancel", "a2a_call_9", "--reason", "enough", env=env).out == "a2a_call_9d2b\tcanceled\n"
    assert hub.last("/v1/calls/a2a_call_9d2b/cancel").body == {"reason": "enough"}
    ran = piped("tasks", "show", "a2a_call_", "--json", env=env)
    assert ran.code == 2
    assert json.loads(ran.err)["error"]["details"] == {"candidates": ["a2a_call_7c1e", "a2a_call_9d2b"]}
    ran = piped("tasks", "show", "nothing", env=env)
    assert (ran.code, ran.err.splitlines()[0]) == (4, 'error: no call "nothing"')


def test_a_call_that_has_ended_cannot_be_cancelled(hub: StubHub, env: dict[str, str]) -> None:
    said = refusal("VALIDATION_ERROR", "a2a_call_7c1e has ended: completed.")
    hub.answers["POST", "/v1/calls/a2a_call_7c1e/cancel"] = (409, said)
    ran = piped("tasks", "cancel", "a2a_call_7c1e", env=env)
    assert (ran.code, ran.err.splitlines()[0]) == (1, "error: a2a_call_7c1e has ended: completed")
