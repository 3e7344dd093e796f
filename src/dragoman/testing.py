"""What tests of agents and callers need: a hub in process, agents that only pretend, exchanges kept and played back."""

from dragoman.sdk.testing.hubs import FakeAgent, check, hub, record, replay

__all__ = ["FakeAgent", "check", "hub", "record", "replay"]
