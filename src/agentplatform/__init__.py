"""The name under which the Agent Platform's document imports its SDK. Everything is `dragoman`'s.

Another package has this name, too, and installing it takes this one's place; so nothing of ours imports through it.
"""

from dragoman import Agent, tool

__all__ = ["Agent", "tool"]
__dragoman__ = True
