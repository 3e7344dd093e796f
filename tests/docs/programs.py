"""Run examples as their readers would: as programs of their own, against a hub of their own."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Generator, Mapping

from tests.cli.terminal import Ran, piped
from tests.docs.blocks import ROOT

EXAMPLES = ROOT / "examples"
RUN_S = 60.0


@contextlib.contextmanager
def started(name: str, env: Mapping[str, str], ready: str, *words: str) -> Generator[None]:
    """An example that goes on, from its word that it is ready to its end."""
    program = subprocess.Popen(
        [sys.executable, EXAMPLES / name, *words], env={**os.environ, **env}, stderr=subprocess.PIPE, text=True
    )
    assert program.stderr is not None
    try:
        assert any(ready in line for line in iter(program.stderr.readline, "")), f"{name} ended"
        yield
    finally:
        program.terminate()
        program.communicate(timeout=RUN_S)
    assert program.returncode == 0


def command(env: Mapping[str, str], *words: str) -> Ran:
    return piped("call", *words, env=env)


def output(python: str, name: str, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        [python, EXAMPLES / name], env={**os.environ, **env}, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
