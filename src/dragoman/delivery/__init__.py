"""Carrying: an opened call goes to its agent in the agent's own dialect, and what happened comes back as events."""
