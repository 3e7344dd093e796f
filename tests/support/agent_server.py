"""An agent's own server in a process of its own: `agent.serve()`, talked to as a hub is."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.hub import HubProcess


class AgentServer(HubProcess):
    """One agent server from `start` to `stop`; its data outlives it."""

    register_at = ""

    def ended(self) -> int:
        """The exit code of a process that was told to stop."""
        process, self._process = self._process, None
        assert process is not None, "the server was not started"
        return process.wait(40)

    def command(self) -> list[str]:
        """The program that serves the agent."""
        program = [sys.executable, "-m", "tests.support.served_agent"]
        return [*program, str(self.port), str(self.data), self.auth, self.register_at]


@contextmanager
def running_server(data: Path, *, auth: str = "none") -> Generator[AgentServer]:
    """An agent server that runs within the block."""
    server = AgentServer(data, auth=auth).start()
    try:
        yield server
    finally:
        server.stop()
