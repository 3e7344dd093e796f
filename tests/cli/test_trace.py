"""`dragoman trace`: what it draws, at which width, and what it says where there is nothing."""

import json

import pytest

from dragoman.cli.waterfall import bar, span_took
from tests.cli.stub_hub import WATERFALL, StubHub
from tests.cli.terminal import on_terminal, piped, plain

DRAWN = """\
trace 4bf92f3577b34da6a3ce929d0e0e4736 · completed · 2.4 s · 2 calls to 2 agents
                                0                     1.2 s                2.4 s
Editor · summarize       2.4 s  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
  attempt 1 a2a-1.0     400 ms  ━━━━━━━━
    ✘ AGENT_UNAVAILABLE, HTTP 503
  attempt 2 a2a-1.0      1.0 s                             ╺━━━━━━━━━━━━━━━━━━━━
    another owner      running                               ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
"""


def test_a_trace_is_a_tree_with_bars(hub: StubHub, env: dict[str, str]) -> None:
    shown = plain(on_terminal("trace", "a2a_call_7c1e", env=env, width=80).out)
    assert [line.rstrip() for line in shown.splitlines()] == DRAWN.splitlines()


@pytest.mark.parametrize("width", [60, 120])
def test_it_fits_whatever_width(hub: StubHub, env: dict[str, str], width: int) -> None:
    lines = piped("trace", "a2a_call_7c1e", "--width", str(width), env=env).out.splitlines()
    assert max(map(len, lines)) == width
    assert "\x1b" not in "".join(lines)


def test_programs_get_rows_or_the_document(hub: StubHub, env: dict[str, str]) -> None:
    rows = [line.split("\t") for line in piped("trace", "a2a_call_7c1e", env=env).out.splitlines()]
    assert rows[1][:6] == ["1", "3.0", "400.0", "attempt", "error", "AGENT_UNAVAILABLE"]
    assert json.loads(piped("trace", "a2a_call_7", "--json", env=env).out) == WATERFALL, (
        "by the beginning of a call's id"
    )


def test_what_is_unknown_or_ambiguous_is_said(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("trace", "nothing", env=env)
    assert (ran.code, 'no trace or call "nothing"' in ran.err) == (4, True)
    hub.calls["a2a_call_9d2b"]["trace_id"] = "0af7651916cd43dd8448eb211c80319c"
    ran = piped("trace", "a2a_call_", env=env)
    assert (ran.code, "is the beginning of 2 calls" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("start", "length", "drawn"),
    [
        (0, 100, "━━━━━"),
        (0, 0, "╸"),
        (100, 0, "    ╺"),
        (50, 10, "  ╺"),
        (40, 20, "  ━"),
        (30, None, " ┄┄┄┄"),
        (-5, 10, "╸"),
        (99, 500, "    ╺"),
    ],
)
def test_a_bar_lies_where_its_span_does(start: float, length: float | None, drawn: str) -> None:
    assert bar(start, length, 100.0, 5) == drawn


def test_a_trace_of_no_length_has_bars_too() -> None:
    assert bar(0, 0, 0, 5) == "╸"


@pytest.mark.parametrize(("ms", "shown"), [(0.04, "0.0 ms"), (9.94, "9.9 ms"), (412.3, "412 ms"), (2400, "2.4 s")])
def test_short_times_have_a_tenth(ms: float, shown: str) -> None:
    assert span_took(ms) == shown
