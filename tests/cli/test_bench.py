"""`dragoman bench`: load on a hub of this machine."""

import json

import pytest

from tests.cli.stub_hub import StubHub, refusal
from tests.cli.terminal import on_terminal, piped, plain

LOAD = ("bench", "--skill", "echo", "--text", "hi", "-c", "3", "-d", "300ms")


def test_load_is_measured(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped(*LOAD, "--json", env=env)
    told = json.loads(ran.out)
    assert (ran.code, told["errors"], told["at_once"]) == (0, 0, 3)
    assert told["calls"] == len([seen for seen in hub.requests if seen.path == "/v1/a2a/call"]) > 0
    assert told["p50_ms"] <= told["p99_ms"]
    assert told["calls_per_s"] == pytest.approx(told["calls"] / told["seconds"], rel=0.01)
    assert told["hub_overhead_ms"] == 0, "the stub says that its agent took 2.4 s"


def test_a_person_sees_a_bar_and_the_figures(hub: StubHub, env: dict[str, str]) -> None:
    shown = plain(on_terminal(*LOAD, "--agent", "agt_echo", env=env).out)
    assert "measuring" in shown
    assert "100%" in shown
    assert "\ncalls per s " in shown


def test_failures_are_counted_by_their_codes(hub: StubHub, env: dict[str, str]) -> None:
    hub.answers["POST", "/v1/a2a/call"] = (503, refusal("AGENT_UNAVAILABLE", "It is away."))
    ran = piped(*LOAD, "--json", env=env)
    told = json.loads(ran.out)
    assert (ran.code, told["calls"], told["p50_ms"]) == (1, 0, None)
    assert told["error_codes"] == {"AGENT_UNAVAILABLE": told["errors"]}


def test_only_this_machine_is_put_under_load(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped(*LOAD, "--hub", "http://hub.example:8700", env=env)
    assert (ran.code, "bench is for a hub of this machine" in ran.err) == (2, True)
    assert piped(*LOAD[:-1], "11m", env=env).code == 2
