"""The names that the Agent Platform's document imports for calls between agents. Everything is `dragoman`'s."""

from dragoman import A2AClient, call_agent, tool

__all__ = ["A2AClient", "call_agent", "tool"]
__dragoman__ = True
