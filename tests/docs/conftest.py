"""One hub with its demo agents for all examples, as a newcomer starts it."""

from collections.abc import Generator, Mapping

import pytest

from tests.cli.running import Running
from tests.cli.terminal import environment
from tests.support.ports import free_port


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[Mapping[str, str]]:
    """The environment in which programs find the hub."""
    home = tmp_path_factory.mktemp("examples")
    port = free_port()
    env = environment(home, DRAGOMAN_URL=f"http://127.0.0.1:{port}")
    dev = Running("dev", "--port", str(port), env=env)
    try:
        dev.said("terminal_bench_agent")
        yield env
        assert dev.end() == 0
    finally:
        dev.close()
