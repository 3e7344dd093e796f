"""Flow control: what is let through to an agent, when, and in which order."""
