"""Blocking twins, for code that cannot await."""

from dragoman.sdk.client.sync import SyncClient, SyncHandle, call_agent

__all__ = ["SyncClient", "SyncHandle", "call_agent"]
