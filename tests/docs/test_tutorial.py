"""The tutorial, step by step: what it starts answers, in every way it shows."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping

import pytest

from dragoman import A2AClient
from tests.cli.running import running
from tests.cli.terminal import piped
from tests.docs.blocks import blocks
from tests.docs.programs import EXAMPLES, RUN_S
from tests.end_to_end.world import eventually

TUTORIAL = EXAMPLES / "tutorial"
CURLS = [block.text for block in blocks() if block.page == "docs/tutorial.md" and "curl " in block.text]


def test_a_second_agent_calls_the_first_by_its_skill(world: Mapping[str, str]) -> None:
    with running("run", str(EXAMPLES / "hello.py"), env={**world}) as hello:
        hello.said("agt_hello is connected")
        with running("run", str(TUTORIAL / "host.py"), env={**world}) as host:
            host.said("agt_host is connected")
            welcomed = piped("call", "welcome", "--input", 'guests=["Ada", "Alan"]', env=world)
            assert json.loads(welcomed.out) == ["Hello, Ada!", "Hello, Alan!"]
            listed = piped("tasks", "ls", "--json", "--limit", "3", env=world)
            assert [item["skill"] for item in json.loads(listed.out)["items"]].count("greet") == 2
            assert host.end() == 0
        as_official = piped("call", "agt_hello", "greet", "--input", "name=Ada", "--as", "a2a-1.0", env=world)
        assert "TASK_STATE_COMPLETED" in as_official.out
        assert CURLS
        for curl in CURLS:
            shown = _in_shell(curl.replace("http://127.0.0.1:8700", world["DRAGOMAN_URL"]), world)
            assert shown.count("Hello, Ada!") >= len(curl.strip().splitlines())
        assert hello.end() == 0


@pytest.mark.full
def test_a_killed_agent_goes_on_with_its_call_when_it_comes_back(world: Mapping[str, str]) -> None:
    with running("run", str(TUTORIAL / "counter.py"), env={**world}) as counter:
        counter.said("agt_counter is connected")
        call_id = piped("call", "count", "--input", "to=3", "--async", env=world).out.strip()
        eventually(lambda: _task(call_id, world).get("message"), "the count began")
        counter.end(signal.SIGKILL)
    with running("run", str(TUTORIAL / "counter.py"), env={**world}) as again:
        again.said("agt_counter is connected")
        handle = A2AClient(world["DRAGOMAN_URL"]).handle(call_id)
        assert asyncio.run(handle.result(timeout_s=RUN_S)).text == "counted to 3"
        assert again.end() == 0


def test_the_tests_of_the_testing_guide_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", TUTORIAL],
        env=os.environ,
        cwd=TUTORIAL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"4 passed", done.stdout)


def _task(call_id: str, env: Mapping[str, str]) -> dict[str, object]:
    return json.loads(piped("tasks", "show", call_id, "--json", env=env).out)


def _in_shell(text: str, env: Mapping[str, str]) -> str:
    done = subprocess.run(["bash", "-ec", text], env=env, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
