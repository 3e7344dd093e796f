"""Lists and facts: a table on a terminal, tab-separated in a pipe, one document with --json."""

import json
import subprocess

import pytest

from dragoman.cli.table import shortened
from dragoman.model.json import JsonObject
from tests.cli.stub_hub import StubHub, agent
from tests.cli.terminal import COMMAND, on_terminal, piped, plain

LONG_ID = "agt_" + "0123456789" * 4
SKILLS: list[JsonObject] = [{"name": f"skill_number_{n}", "input_schema": {}} for n in range(6)]


def test_rows_in_a_pipe_are_whole_and_separated_by_tabs(hub: StubHub, env: dict[str, str]) -> None:
    hub.agents = {LONG_ID: agent(LONG_ID, "Long\tand\nodd", SKILLS)}
    ran = piped("agents", "ls", env={**env, "COLUMNS": "40"})
    assert ran.out.rstrip("\n").split("\t") == [
        LONG_ID, "Long and odd", "1.0.0", "platform", "active", ",".join(str(skill["name"]) for skill in SKILLS), "4.8",
        "2026-01-12T10:00:00.000Z", "",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("words", [("agents", "ls"), ("discover",), ("keys", "ls"), ("config", "show", "--all")])
def test_a_table_fits_its_terminal_and_never_wraps(
    hub: StubHub, env: dict[str, str], width: int, words: tuple[str, ...]
) -> None:
    hub.agents[LONG_ID] = agent(LONG_ID, "An agent with quite a long name for its size", SKILLS)
    ran = on_terminal(*words, env=env, width=width, stderr_apart=True)
    lines = plain(ran.out).splitlines()
    assert ran.code == 0
    assert max(map(len, lines)) <= width
    if words[0] in ("agents", "discover"):
        assert len(lines) == 1 + len(hub.agents)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            80,
            [
                "id           name        skills      rating  p95 ms  available  dialect   state",
                "agt_editor   Editor      summarize      4.8    2500      0.999  platform  active",
                "agt_echo     Echo        echo           4.5    2500      0.999  a2a-1.0   active",
                "agt_eclipse  Eclipse     plan           4.8    2500      0.999  platform  paused",
                "agt_0…56789  An agent…   skill_num…     4.8    2500      0.999  platform  active",
            ],
        ),
        (
            120,
            [
                "id                       name                      skills                    rating  p95 ms  "
                "available  dialect   state",
                "agt_editor               Editor                    summarize                    4.8    2500  "
                "    0.999  platform  active",
                "agt_echo                 Echo                      echo                         4.5    2500  "
                "    0.999  a2a-1.0   active",
                "agt_eclipse              Eclipse                   plan                         4.8    2500  "
                "    0.999  platform  paused",
                "agt_0123456…90123456789  An agent with quite a l…  skill_number_0, skill_n…     4.8    2500  "
                "    0.999  platform  active",
            ],
        ),
    ],
)
def test_a_table_cuts_texts_at_their_end_and_ids_in_their_middle(
    hub: StubHub, env: dict[str, str], width: int, lines: list[str]
) -> None:
    hub.agents[LONG_ID] = agent(LONG_ID, "An agent with quite a long name", SKILLS)
    ran = on_terminal("discover", env={**env, "NO_COLOR": "1"}, width=width)
    assert [line.rstrip() for line in ran.out.splitlines()] == lines


def test_a_table_is_coloured_only_where_that_is_wanted(hub: StubHub, env: dict[str, str]) -> None:
    assert "\x1b[33mpaused" in on_terminal("agents", "ls", env=env).out
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("agents", "ls", env={**env, **more}).out
    assert "\x1b" not in piped("agents", "ls", env={**env, "FORCE_COLOR": "1"}).out


def test_times_are_relative_for_people_and_exact_for_programs(hub: StubHub, env: dict[str, str]) -> None:
    assert " d ago" in on_terminal("agents", "show", "agt_echo", env=env).out
    assert "updated_at\t2026-01-12T10:00:00.000Z\n" in piped("agents", "show", "agt_echo", env=env).out


@pytest.mark.parametrize("words", [("agents", "ls"), ("discover",), ("keys", "ls"), ("agents", "versions", "agt_echo")])
def test_lists_as_json_have_items_and_a_cursor(hub: StubHub, env: dict[str, str], words: tuple[str, ...]) -> None:
    document = json.loads(piped(*words, "--json", env=env).out)
    assert list(document) == ["items", "next_cursor"]
    assert document["items"]
    assert document["next_cursor"] is None


def test_a_list_is_read_over_all_its_pages_up_to_the_limit(hub: StubHub, env: dict[str, str]) -> None:
    hub.agents = {f"agt_{n:03}": agent(f"agt_{n:03}", "One", []) for n in range(250)}
    ran = piped("agents", "ls", "--limit", "220", "--columns", "id", env=env)
    assert ran.out.splitlines() == [f"agt_{n:03}" for n in range(220)]
    assert ran.err == "more: --cursor 220\n"
    rest = piped("agents", "ls", "--cursor", "220", "--columns", "id", env=env)
    assert rest.out.splitlines() == [f"agt_{n:03}" for n in range(220, 250)]


def test_filters_of_discover_reach_the_hub(hub: StubHub, env: dict[str, str]) -> None:
    words = (
        "--q",
        "two words",
        "--tag",
        "t&u",
        "--capability",
        "streaming",
        "--dialect",
        "platform",
        "--status",
        "active",
    )
    figures = ("--min-rating", "4", "--max-p95", "2s", "--min-availability", "0.9")
    piped("discover", "echo", *words, *figures, env=env)
    assert hub.requests[0].query == {
        "skill": "echo", "q": "two words", "tag": "t&u", "capability": "streaming", "dialect": "platform",
        "status": "active", "min_rating": "4.0", "max_p95_ms": "2000", "min_availability": "0.9", "limit": "20",
    }  # fmt: skip


def test_finding_nobody_says_what_is_near(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("discover", "sumarize", env=env) == (0, "", "no agent fits; did you mean summarize?\n")
    hub.agents = {}
    assert piped("discover", env=env) == (0, "", "no agent is registered\nnext: dragoman register URL\n")


def test_a_reader_who_leaves_early_sees_no_traceback(hub: StubHub, env: dict[str, str]) -> None:
    hub.agents = {f"agt_{n:03}": agent(f"agt_{n:03}", "x" * 2000, []) for n in range(200)}
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} agents ls --limit 200 | head -n 1"],
        env=env, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("agt_000")
    assert done.stderr == ""


def test_an_id_is_cut_in_its_middle() -> None:
    assert shortened("agt_0123456789", 14) == "agt_0123456789"
    assert shortened("agt_0123456789", 11) == "agt_0…56789"
