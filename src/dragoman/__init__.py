"""Dragoman, the interpreter and switchboard for AI agents.

Importing it costs nothing: no sockets, threads, environment reads or logging set-up. Each name is imported when it is
first used, so that neither the command line nor a program that only calls pays for what it does not need.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman import errors as errors
    from dragoman import models as models
    from dragoman import orchestrate as orchestrate
    from dragoman import sync as sync
    from dragoman import testing as testing
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.agent.tools import tool
    from dragoman.sdk.client.client import A2AClient, call_agent
    from dragoman.sdk.client.step import Step
    from dragoman.sdk.content import Data, File, Message, Text
    from dragoman.sdk.work.context import Context
    from dragoman.security.key_manager import KeyManager

__all__ = [
    "A2AClient",
    "Agent",
    "Context",
    "Data",
    "File",
    "KeyManager",
    "Message",
    "Step",
    "Text",
    "call_agent",
    "tool",
]

# A constant, because asking the installed package's metadata takes longer than all the rest; a test compares the two.
__version__ = "0.1.0"

_PLACES = {
    "A2AClient": "sdk.client.client",
    "Agent": "sdk.agent.agent",
    "Context": "sdk.work.context",
    "Data": "sdk.content",
    "File": "sdk.content",
    "KeyManager": "security.key_manager",
    "Message": "sdk.content",
    "Step": "sdk.client.step",
    "Text": "sdk.content",
    "call_agent": "sdk.client.client",
    "tool": "sdk.agent.tools",
}
_SUBMODULES = ("errors", "models", "orchestrate", "sync", "testing")


def __getattr__(name: str) -> object:
    if name in _PLACES:
        found = getattr(import_module(f"dragoman.{_PLACES[name]}"), name)
        globals()[name] = found  # the next look finds it without asking here
        return found
    if name in _SUBMODULES:
        return import_module(f"dragoman.{name}")
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
