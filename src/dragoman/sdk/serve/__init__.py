"""An agent that listens itself: a hub with one agent at its root."""
