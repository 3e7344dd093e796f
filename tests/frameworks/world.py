"""Agents of other frameworks at one hub: each framework in an environment of its own, with models that need no network.

A program of `tests/peers/` makes the framework's objects, wraps them, and connects them to the hub that the environment
names. Its environment has the framework and what our base install needs; our own code is that of this tree.
"""

import os
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from dragoman import A2AClient
from tests.support.callers.a2a_v10 import A2AV10Caller
from tests.support.callers.agentvault import AgentVaultCaller
from tests.support.callers.platform import PlatformCaller
from tests.support.hub import HubProcess
from tests.support.peers import RECIPES, ROOT, PeerProcess, peer_python

CALLERS: Final = (PlatformCaller, A2AV10Caller, AgentVaultCaller)
PATIENCE_S: Final = 30.0
QUIET: Final = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "OPENAI_AGENTS_DISABLE_TRACING": "1"}


def alone(framework: str, *words: str) -> list[str]:
    """What a framework's program says that tries its first agent without a hub."""
    done = subprocess.run(
        [peer_python(framework), RECIPES / _program(framework), *words],
        env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class FrameworkProcess(PeerProcess):
    """A framework's program, whose agents are at the hub from `start` until `stop`."""

    listens = False

    def __init__(self, framework: str, hub: HubProcess) -> None:
        super().__init__(framework, _program(framework))
        self.hub = hub
        self.environment = {
            **os.environ,
            **QUIET,
            "PYTHONPATH": str(ROOT / "src"),
            "DRAGOMAN_URL": hub.url,
            "DRAGOMAN_TOKEN": hub.token or "",
        }

    def tell(self, line: str) -> None:
        """Say something to the program."""
        process = self._process
        assert process is not None and process.stdin is not None, "it was started"
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()

    def client(self) -> A2AClient:
        """Somebody who calls the agents."""
        return A2AClient(self.hub.url, self.hub.token)


def agents_of(framework: str) -> object:
    """A fixture: the agents of a framework at the hub of the test module."""

    @pytest.fixture(scope="module")
    def agents(hub: HubProcess) -> Iterator[FrameworkProcess]:
        with FrameworkProcess(framework, hub) as process:
            yield process

    return agents


def agent_id(framework: str, kind: str) -> str:
    """The id of one of a framework's agents."""
    return f"agt_{_snake(framework)}_{kind}"


def _program(framework: str) -> str:
    return f"{_snake(framework)}_agents.py"


def _snake(framework: str) -> str:
    return framework.replace("-", "_")
