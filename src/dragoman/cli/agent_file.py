"""An agent out of a Python file: which one is meant, and in plain words what is wrong with the file. What is named and
is an object of another framework, or a function, is wrapped.

The file is run as if it were imported. What it starts at its end (`agent.start()`, `agent.serve()`) is not started:
whoever loads it says how the agent is to run.
"""

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Generator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

from dragoman.cli.fault import Fault, not_found, wrong_usage
from dragoman.sdk.agent.agent import Agent

# What the file is called while it runs: no name that it, or what it imports, may look for.
MODULE: Final = "__dragoman_run__"


def place_of(target: str) -> tuple[Path, str | None]:
    """The file and the name in FILE[:NAME]. Raises Fault."""
    path = Path(target)
    name: str | None = None
    if not path.exists() and ":" in target:
        before, _, name = target.rpartition(":")
        path = Path(before)
    if path.is_dir():
        raise wrong_usage(f"{path} is a folder", next=f"dragoman run {path / 'agent.py'}")
    if not path.exists():
        raise not_found("FILE_NOT_FOUND", f"there is no file {path}", next="dragoman new NAME makes one")
    if path.suffix != ".py":
        raise wrong_usage(f"{path} is no Python file", next="dragoman run FILE.py")
    return path, name or None


def load_agent(target: str) -> Agent:
    """The agent in FILE[:NAME]. Raises Fault."""
    path, name = place_of(target)
    with _nothing_starts():
        module = _run(path)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Agent)}
    if name is not None:
        return _named(path, vars(module), found, name)
    agents = {id(agent): agent for agent in found.values()}
    if not agents:
        raise wrong_usage(f"{path} defines no agent", next='define one at its top level: agent = Agent("Name")')
    if len(agents) > 1:
        names = ", ".join(found)
        raise wrong_usage(f"{path} defines several agents: {names}", next=f"dragoman run {path}:{next(iter(found))}")
    return next(iter(agents.values()))


def _named(path: Path, values: Mapping[str, object], found: Mapping[str, Agent], name: str) -> Agent:
    if name in found:
        return found[name]
    known = f"it has: {', '.join(found)}" if found else "it defines no agent"
    if name in values:
        try:
            return Agent.wrap(values[name])
        except TypeError as error:
            shown = type(values[name]).__name__
            raise wrong_usage(f"{name} in {path} is no agent but a {shown}", next=known, lines=[str(error)]) from None
    raise not_found("AGENT_NOT_FOUND", f"{path} has no agent {name}; {known}", next=f"dragoman run {path}")


def _run(path: Path) -> ModuleType:
    path = path.resolve()
    # As `python FILE` does: the file finds its neighbours.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise wrong_usage(f"{path} cannot be loaded", next="dragoman run FILE.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise _unreadable(path, error) from error
    except SystemExit as error:
        raise wrong_usage(f"{path} ended by itself (exit {error.code})", next="let it only define the agent") from error
    except Exception as error:
        raise _broken(path, error) from error
    return module


def _unreadable(path: Path, error: SyntaxError) -> Fault:
    file = Path(error.filename).name if error.filename else path.name
    lines = [error.text.rstrip()] if error.text else []
    return wrong_usage(f"{file}, line {error.lineno}: {error.msg}", next="mend that line", lines=lines)


def _broken(path: Path, error: Exception) -> Fault:
    """What somebody's file raised, with the lines of it that led there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename) == path]
    line = f", line {own[-1].lineno}" if own else ""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    shown = traceback.format_list(frames[frames.index(own[0]) if own else 0 :])
    next_step = "mend that line"
    if isinstance(error, ModuleNotFoundError) and error.name:
        next_step = f"pip install {error.name.partition('.')[0]}, or check the name"
    return wrong_usage(f"{path.name}{line}: {said}", next=next_step, lines="".join(shown).splitlines())


@contextlib.contextmanager
def _nothing_starts() -> Generator[None]:
    """While a file is run, its own `start` and `serve` do nothing."""
    start, serve = Agent.start, Agent.serve

    def later(self: Agent, *_args: object, **_options: object) -> None:
        return None

    Agent.start = Agent.serve = later
    try:
        yield
    finally:
        Agent.start, Agent.serve = start, serve
